#!/usr/bin/env bash
# usage: tools/check-pages.sh [-l]
#
# Every page of figures must name the commit that was measured. Such pages are
# bench/results/*.md, docs/bench/*.md and README.md. A page of results has the words
# "commit HASH" before its first table. README and docs/bench name theirs through the
# results that they link to: each row of README's table must have such a link.
#   -l   prints for each page and each row of README: commit, its day, and the number of
#        commits since then that changed extension/src or tape/src
#
# A page also fails when a release came after its commit and changed extension/src or
# tape/src: its figures are older than that release. In a shallow clone the check is
# about words only.
set -euo pipefail
cd "${PAGES_ROOT:-$(dirname "$0")/..}"

list=
case ${1:-} in
-l) list=1 ;;
'') ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
shallow=$(git rev-parse --is-shallow-repository)
release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
measured=(extension/src tape/src)
bad=0
fail() {
	echo "$*" >&2
	bad=1
}

# commit_of PAGE: the first commit that a page of results names before its first table
commit_of() { sed '/^|/,$d' "$1" | grep -oE '\bcommit:? `?[0-9a-f]{7,40}\b' | grep -oE '[0-9a-f]{7,40}$' | head -1 || true; }

# results_of FILE: the pages of results that a text links to
results_of() { grep -oE '\(([^() ]*/)?bench/results/[a-z_A-Z0-9-]+\.md' "$@" | sed -E 's|^.*(bench/results/)|\1|' | sort -u || true; }

# line NAME PAGE: prints how old the figures of a page are
line() {
	local commit
	commit=$(commit_of "$2")
	[ -n "$list" ] && [ -n "$commit" ] || return 0
	if git cat-file -e "$commit^{commit}" 2>/dev/null; then
		printf '%s\t%s\t%s\t%s since\n' "$1" "$commit" "$(git log -1 --format=%as "$commit")" \
			"$(git rev-list --count "$commit..HEAD" -- "${measured[@]}")"
	else
		printf '%s\t%s\n' "$1" "$commit"
	fi
}

# dated PAGE: checks the commit of a page of results
dated() {
	local commit
	commit=$(commit_of "$1")
	if [ -z "$commit" ]; then
		fail "$1: no commit before the first table; write \"commit HASH\" of the measured tree"
	elif [ "$shallow" = true ]; then
		:
	elif ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
		fail "$1: commit $commit is not in this history"
	elif [ -n "$release" ] && git merge-base --is-ancestor "$commit" "$release" &&
		[ "$(git rev-list --count "$commit..$release" -- "${measured[@]}")" -gt 0 ]; then
		fail "$1: commit $commit is older than $release, which changed ${measured[*]}"
	fi
}

for page in bench/results/*.md; do
	dated "$page"
	line "$page" "$page"
done
for page in docs/bench/*.md; do
	[ "$page" != docs/bench/README.md ] || continue
	[ -n "$(commit_of "$page")" ] || [ -n "$(results_of "$page")" ] ||
		fail "$page: neither a commit nor a link to a page of bench/results"
	line "$page" "$page"
	for result in $(results_of "$page"); do
		if [ -e "$result" ]; then line "$page" "$result"; else fail "$page: there is no $result"; fi
	done
done
# the rows of the table of costs: those with a command in the last column
while IFS= read -r row; do
	name=$(cut -d'|' -f2 <<<"$row" | sed 's/^ *//; s/ *$//')
	result=$(results_of <<<"$row")
	case $result in
	'') fail "README.md: row \"$name\" links to no page of bench/results" ;;
	*) line "README.md: $name" "${result%%$'\n'*}" ;;
	esac
done < <(grep -E '^\|.*\| `(bench/|tacho bench)[^|]*\|$' README.md || true)
exit $bad
