#!/usr/bin/env python3
"""usage: tools/prose-change.py BASE [FILE]...

Guards a change that rewrites comments: compares each FILE of the working tree (default:
all that differ) with its state in the commit BASE. Fails if anything but comments and
documentation strings differs. Lists each number, unit, name and reason that the comments
of a file had in BASE and have no longer. The author then restores it or knows why it may
go. Needs Pygments (Debian: python3-pygments), which knows the comments of all languages
here.
"""

import re
import subprocess
import sys

from pygments import lexers
from pygments.token import Comment, String

KINDS = {
    "rs": "rust", "c": "c", "h": "c", "py": "python", "pl": "perl", "pm": "perl", "sh": "bash",
    "sql": "postgresql", "ts": "typescript", "svelte": "html", "toml": "toml",
}
FACT = re.compile(
    r"`[^`\n]+`"  # a name in quotes
    r"|\b[A-Za-z]\w*(?:_\w+|::\w+|\(\))+"  # snake_case, a path, a function
    r"|\b[A-Z]+[a-z]+[A-Z]\w*"  # CamelCase
    r"|\b[A-Z][A-Z0-9]{2,}\b"  # SIGTERM
    r"|\b\d[\d.,]*\d\b|\b\d\b"
    r"|\b(?:ns|µs|us|ms|kB|kiB|KiB|MB|MiB|GB|bytes?|seconds?|minutes?|hours?|days?)\b"
    r"|\b(?:because|since|so that|otherwise|never|always|must|only|unless|until)\b"
)


def is_comment(token):
    if token in Comment:
        return token not in Comment.Preproc and token not in Comment.PreprocFile and token not in Comment.Hashbang
    return token in String.Doc


def split(path, text):
    """The code of a file without its comments and blank lines, and the comments."""
    code, comments = [], []
    lexer = lexers.get_lexer_by_name(KINDS[path.rsplit(".", 1)[-1]], stripnl=False)
    for token, value in lexer.get_tokens(text):
        (comments if is_comment(token) else code).append(value)
        if is_comment(token) and value.endswith("\n"):
            code.append("\n")
    lines = (line.rstrip() for line in "".join(code).split("\n"))
    return [line for line in lines if line], "\n".join(comments)


def facts(comments):
    return {each.strip("`").lower() for each in FACT.findall(comments)}


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    base, files = sys.argv[1], sys.argv[2:]
    files = files or git("diff", "--name-only", "--diff-filter=M", base).split()
    failed = False
    for path in files:
        if path.rsplit(".", 1)[-1] not in KINDS:
            continue
        code, old = split(path, git("show", f"{base}:{path}"))
        now, new = split(path, open(path, encoding="utf-8").read())
        if code != now:
            failed = True
            at = next((i for i, pair in enumerate(zip(code, now)) if pair[0] != pair[1]), min(len(code), len(now)))
            print(f"{path}: more than comments differ, first at: {(now + ['(end)'])[at]}")
        lost = sorted(facts(old) - facts(new))
        if lost:
            print(f"{path}: no longer in a comment: {', '.join(lost)}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
