#!/usr/bin/env bash
# usage: tools/check-prose.sh [-u | FOLDER]
#
# Counts sentences that a reader has to read twice. These have a marker of the older
# prose, more than 25 words, or a synonym of a term of the glossary. Also counts names of
# tests that continue the name before. It reads comments of all languages, docstrings, the
# text of Markdown pages, and the strings that users see: messages, help, descriptions
# and the page. tools/prose.pl decides about each sentence. The counts are a smoke
# detector; CONTRIBUTING.md has the rules.
#
# Without arguments it fails when a folder has more than tools/prose.txt allows.
#   -u      writes the counts that have become smaller to tools/prose.txt
#   FOLDER  prints the sentences of a folder ("docs" is all Markdown)
#
# tools/prose.txt has a line "COUNT FOLDER" for the markers of each folder, and "COUNT
# FOLDER KIND" for each other kind. A folder without a line may have none. A line "keep
# WORDS" lets every sentence pass that contains WORDS: a marker that is right there.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
-u | '') ;;
-*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac

# prints KIND<tab>FOLDER<tab>FILE<tab>SENTENCE
found() {
	git ls-files --cached --others --exclude-standard -- '*.rs' '*.c' '*.h' '*.ts' '*.svelte' '*.py' '*.sh' '*.sql' '*.pl' '*.pm' '*.toml' '*.md' '*.html' catalog/waits.txt '*Makefile' '*Dockerfile' '*.yml' '*.yaml' '*.service' .ci/run |
		grep -vE '^(extension/test/expected|page/node_modules|CHANGELOG)' | tools/prose.pl
}

if [ -n "${1:-}" ] && [ "$1" != -u ]; then
	found | awk -F '\t' -v folder="$1" '$2 == folder { print $1 ": " $3 ": " $4 }'
	exit
fi

# lines "COUNT FOLDER KIND", markers without their kind
counts=$(found | awk -F '\t' '{ n[$2 ($1 == "marker" ? "" : " " $1)]++ } END { for (key in n) print n[key], key }')
if [ "${1:-}" = -u ]; then
	new=$(awk '{ key = $2 " " $3 } NR == FNR { now[key] = $1; next }
		/^[0-9]/ { n = now[key] + 0; print (n < $1 ? n : $1), $2 ($3 == "" ? "" : " " $3); next } { print }' <(echo "$counts") tools/prose.txt)
	printf '%s\n' "$new" >tools/prose.txt
	exit
fi
awk '{ key = $2 " " $3 } NR == FNR { if (/^[0-9]/) allowed[key] = $1; next }
	$1 > allowed[key] + 0 { printf "%s: %d sentences (%s), at most %d: tools/check-prose.sh %s\n", $2, $1, $3 == "" ? "marker" : $3, allowed[key], $2; bad = 1 }
	END { exit bad }' tools/prose.txt <(echo "$counts") >&2
