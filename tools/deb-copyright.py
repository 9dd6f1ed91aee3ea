#!/usr/bin/env python3
"""usage: tools/deb-copyright.py VENDOR >debian/copyright

Writes the copyright file of the packages (DEP 5). It names tacho, each crate below VENDOR
(tools/deb-vendor.py), and each npm package that is part of the page. It takes the npm
packages from the source map of a build of the page, so page/node_modules must be there
(tools/page.sh). Each licence is printed once, from a file of a crate that has this licence.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PAGE = REPO / "page"
# Debian's names of licences that SPDX calls otherwise
NAMES = {"MIT": "Expat", "BSL-1.0": "BSL-1.0", "LGPL-2.1-or-later": "LGPL-2.1+"}
# licences that every Debian system has
COMMON = {"Apache-2.0": "Apache-2.0", "LGPL-2.1+": "LGPL-2.1", "CC0-1.0": "CC0-1.0"}
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
COPYRIGHT = re.compile(r"^\W*copyright\b\s*(\(c\)|©|:|[0-9])", re.I)
# lines of templates
TEMPLATE = re.compile(r"\[yyyy\]|\{yyyy\}|<year>|\[year\]|copyright (notice|owner|holder)", re.I)


@dataclass
class Part:
    """A package of others: its directory in the source, licence and copyright lines."""

    name: str
    place: str
    licence: str
    holders: list[str]
    files: dict[str, str]


def expression(spdx: str) -> str:
    """An SPDX expression in the words of Debian."""
    text = re.sub(r"\s*/\s*", " OR ", spdx)
    text = re.sub(r"[A-Za-z0-9.+-]+", lambda m: NAMES.get(m[0], m[0]), text)
    text = re.sub(r"\(([^()]*)\) AND (\S+)", r"\1, AND \2", text)
    text = text.replace("Apache-2.0 WITH LLVM-exception", "Apache-2.0 with LLVM exception")
    return text.replace(" OR ", " or ").replace(" AND ", " and ")


def licence_files(directory: Path) -> dict[str, str]:
    """The texts of licences in a package, by file name."""
    return {
        each.name: each.read_text(errors="replace")
        for each in sorted(directory.iterdir())
        if each.is_file() and LICENCE_FILE.match(each.name)
    }


def holders(files: dict[str, str], authors: list[str], name: str) -> list[str]:
    """Lines of copyright, without the word; else the authors."""
    found = []
    for text in files.values():
        for line in text.splitlines():
            if COPYRIGHT.match(line) and not TEMPLATE.search(line):
                line = re.sub(r"^\W*copyright\b\W*?(\(c\)|©|:)?\s*(\(c\)|©)?\s*", "", line, flags=re.I)
                found.append(re.sub(r"\s*all rights reserved\.?", "", line, flags=re.I).rstrip(" .,"))
    return list(dict.fromkeys(filter(None, found))) or authors or [f"the developers of {name}"]


def crate(directory: Path) -> Part:
    package = tomllib.loads((directory / "Cargo.toml").read_text())["package"]
    files = licence_files(directory)
    return Part(
        package["name"], f"vendor/{directory.name}/*", expression(package["license"]),
        holders(files, package.get("authors", []), package["name"]), files,
    )


def npm_packages() -> list[Part]:
    """The packages whose modules a build of the page takes."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            ["npx", "vite", "build", "--sourcemap", "--logLevel", "error", "--emptyOutDir", "--outDir", out],
            cwd=PAGE, check=True, stdout=sys.stderr,
        )
        sources = [
            source for each in Path(out).rglob("*.js.map") for source in json.loads(each.read_text())["sources"]
        ]
    pattern = re.compile(r".*node_modules/((?:@[^/]+/)?[^/]+)/")
    names = sorted({found[1] for source in sources if (found := pattern.match(source))})
    parts = []
    for name in names:
        directory = PAGE / "node_modules" / name
        manifest = json.loads((directory / "package.json").read_text())
        author = manifest.get("author", [])
        authors = [author] if isinstance(author, str) else [author["name"]] if author else []
        files = licence_files(directory)
        parts.append(Part(name, "page/dist/*", expression(manifest["license"]), holders(files, authors, name), files))
    return parts


def field(name: str, lines: list[str]) -> str:
    """A field of several lines."""
    return f"{name}: " + "\n".join(line if i == 0 else f" {line or '.'}" for i, line in enumerate(lines)) + "\n"


def body(text: str) -> list[str]:
    """The text of a licence without its title and the holders of one package."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    start = re.compile(r"(Redistribution and use|Permission )")
    lines = lines[next((i for i, line in enumerate(lines) if start.match(line)), 0):]
    while lines and (not lines[0] or COPYRIGHT.match(lines[0]) or len(lines[0]) < 50 and "Permission" not in lines[0]):
        lines.pop(0)
    return ["", *lines]


def text_of(licence: str, parts: list[Part]) -> list[str]:
    """The text of a licence, from the first package that has a file for it, or no other licence."""
    if licence in COMMON:
        return ["", f"On Debian systems, /usr/share/common-licenses/{COMMON[licence]} has the text."]
    spdx = next((key for key, value in NAMES.items() if value == licence), licence)
    word = {"BSL-1.0": "boost", "0BSD": "0bsd", "BSD-2-Clause": "bsd"}.get(spdx, spdx.split("-")[0].lower())
    for part in parts:
        for name, text in part.files.items():
            if licence in part.licence and word in name.lower():
                return body(text)
    for part in parts:
        for name, text in part.files.items():
            if part.licence == licence and "third" not in name.lower():
                return body(text)
    sys.exit(f"error: no package has the text of licence {licence}")


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    crates = [crate(each) for each in sorted(Path(sys.argv[1]).iterdir()) if (each / "Cargo.toml").exists()]
    page = npm_packages()
    own = (REPO / "LICENSE").read_text()
    ours = next(line for line in own.splitlines() if COPYRIGHT.match(line))
    ours = re.sub(r"^Copyright \(c\) ", "", ours)
    out = [field("Format", ["https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"])
           + field("Upstream-Name", ["tacho"])]
    out.append(field("Files", ["*"]) + field("Copyright", [ours]) + field("License", ["PostgreSQL"]))
    bundled = ", ".join(f"{part.name} ({part.licence})" for part in page)
    out.append(
        field("Files", ["page/dist/*"])
        + field("Copyright", [ours] + [f"{line} ({part.name})" for part in page for line in part.holders])
        + field("License", [" and ".join(dict.fromkeys(["PostgreSQL", *(part.licence for part in page)]))])
        + field("Comment", [f"Built from page/src, with code of npm packages: {bundled}."])
    )
    out += [
        field("Files", [part.place]) + field("Copyright", part.holders) + field("License", [part.licence])
        for part in crates
    ]
    licences = {
        each for part in crates + page
        for each in re.split(r",? (?:or|and) ", part.licence)
    }
    out.append(field("License", ["PostgreSQL", *body(own)]))
    for licence in sorted(licences):
        if licence.endswith("with LLVM exception"):
            found = next(text for part in crates for text in part.files.values() if "LLVM Exceptions" in text)
            exception = found[found.index("--- LLVM Exceptions"):].strip().splitlines()
            out.append(field("License", [licence, *text_of("Apache-2.0", crates)[1:], "", *exception]))
        else:
            out.append(field("License", [licence, *text_of(licence, crates)[1:]]))
    print("\n".join(out), end="")


main()
