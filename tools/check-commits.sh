#!/usr/bin/env bash
# usage: tools/check-commits.sh [RANGE]
#
# Checks the subjects of commits: at most 72 characters, "area: summary" with areas of
# CONTRIBUTING.md, no full stop at the end. RANGE defaults to the commits since the rule
# was introduced.
set -euo pipefail
cd "$(dirname "$0")/.."

first=bdac35e # the last commit before the rule
if [ $# = 0 ]; then
	git cat-file -e $first 2>/dev/null || { echo "check-commits: a shallow clone, nothing to check"; exit 0; }
	set -- "$first..HEAD"
fi
areas=$(sed -n '/ Areas: /,/;/p' CONTRIBUTING.md | tr -d '\n' | sed 's/.*Areas: //; s/;.*//; s/([^)]*)//g; s/[ ,]\+/|/g')
bad=0
while IFS=$'\t' read -r hash subject; do
	if [ ${#subject} -gt 72 ]; then
		echo "$hash: ${#subject} characters, at most 72: $subject" >&2
	elif ! [[ "$subject" =~ ^($areas)(,\ ($areas))?:\ .*[^.]$ ]]; then
		echo "$hash: not \"area: summary\" with areas of CONTRIBUTING.md: $subject" >&2
	else
		continue
	fi
	bad=1
done < <(git log --no-merges --format='%h%x09%s' "$@")
exit $bad
