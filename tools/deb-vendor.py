#!/usr/bin/env python3
"""usage: tools/deb-vendor.py DIRECTORY

Writes the crates of Cargo.lock into DIRECTORY, for a build without a network. A crate
that no Linux needs keeps its Cargo.toml and licences only: cargo reads the former to accept the
lock file, and most of these crates are binaries of Windows without their source. Compiled files of
other crates are removed, too.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

CPUS = ("x86_64", "aarch64", "powerpc64le", "s390x", "riscv64gc")
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.I)


def needed() -> set[str]:
    """The directories, NAME-VERSION, of all crates that some Linux needs."""
    triples = [arg for cpu in CPUS for arg in ("--filter-platform", f"{cpu}-unknown-linux-gnu")]
    metadata = subprocess.run(
        ["cargo", "metadata", "--locked", "--all-features", "--format-version=1", *triples],
        check=True, stdout=subprocess.PIPE,
    )
    return {f"{each['name']}-{each['version']}" for each in json.loads(metadata.stdout)["packages"]}


def hollow(crate: Path) -> None:
    """Leaves the manifest and the licences of a crate, and an empty library."""
    package = json.loads((crate / ".cargo-checksum.json").read_text())["package"]
    for each in crate.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != "Cargo.toml" and not LICENCE_FILE.match(each.name):
            each.unlink()
    library = crate / tomllib.loads((crate / "Cargo.toml").read_text()).get("lib", {}).get("path", "src/lib.rs")
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_text("// No Linux needs this crate.\n")
    (crate / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": package}))


def without_objects(crate: Path) -> None:
    """Removes compiled files, such as the objects of ring for Windows."""
    sums = json.loads((crate / ".cargo-checksum.json").read_text())
    objects = [name for name in sums["files"] if name.endswith((".o", ".obj", ".lib", ".a", ".dll"))]
    for name in objects:
        (crate / name).unlink()
        del sums["files"][name]
    (crate / ".cargo-checksum.json").write_text(json.dumps(sums))


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    vendor = Path(sys.argv[1])
    subprocess.run(
        ["cargo", "vendor", "--locked", "--quiet", "--versioned-dirs", str(vendor)],
        check=True, stdout=subprocess.DEVNULL,
    )
    keep = needed()
    crates = sorted(each for each in vendor.iterdir() if each.is_dir())
    empty = [each for each in crates if each.name not in keep]
    for each in crates:
        hollow(each) if each in empty else without_objects(each)
    print(f"{len(crates) - len(empty)} crates, and {len(empty)} manifests of other systems")


main()
