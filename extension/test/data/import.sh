#!/usr/bin/env bash
# usage: import.sh DIRECTORY NODE <samples.csv
#
# Puts the history of another recorder, NODE, into DIRECTORY, into which a running
# server records. `tacho import` refuses a directory in use, so the script makes the
# file elsewhere and moves it in, like an inherited one. TACHO_PROGRAM names the
# program.
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT

"$TACHO_PROGRAM" import sessions - --tape "$aside" --node "$2" 2>"$aside/log" ||
	{ cat "$aside/log" >&2; exit 1; }

mkdir -p "$1"
chmod 700 "$1"
# file numbers far above the server's, different for each node
number=$((9000000000 + 16#$2 * 1000))
for file in "$aside"/*.tape; do
	cp "$file" "$1/import.new"
	mv "$1/import.new" "$1/$number.tape"
	number=$((number + 1))
done
