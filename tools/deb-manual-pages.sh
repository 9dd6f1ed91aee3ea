#!/usr/bin/env bash
# usage: tools/deb-manual-pages.sh
#
# Prints the pages of the manual that the package tacho has, a path below docs in each line. They
# are the pages that docs/SUMMARY.md lists before its part "How it works", and the reference.
# debian/rules installs these pages, and tools/test-deb.sh looks for them.
set -euo pipefail

cd "$(dirname "$0")/../docs"
[ $# = 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "../tools/${0##*/}" >&2; exit 2; }
grep -q '^# How it works$' SUMMARY.md || { echo 'error: docs/SUMMARY.md has no part "How it works"' >&2; exit 1; }
{
	sed -n '/^# How it works/q; s/.*](\([^.)][^)]*\.md\)).*/\1/p' SUMMARY.md
	ls reference/*/*.md
} | sort -u
