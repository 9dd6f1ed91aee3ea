#!/usr/bin/env bash
# usage: tools/test-matrix.sh [MAJOR]...
#
# Tests the extension and the SQL edition on each MAJOR (default: 15 to 19) with
# the program that is already built, and prints a table. tools/pg-major.sh
# provides the servers. Two majors run at a time and share one pool of tests
# (tools/pool.sh). A major that cannot be had is a failure, unless
# TACHO_MATRIX_SKIP names it. The last line is "N passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/.."
export TACHO_PROGRAM=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$PWD/target}/release/tacho}
[ $# -gt 0 ] || set -- 15 16 17 18 19
# shellcheck source=tools/pool.sh
source tools/pool.sh
pool_open
logs=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null; wait; rm -rf "$logs"' EXIT
passed=0 failed=0 table=

row() { table+=$(printf '%-6s %-8s %7s %7s %8s  %s' "$@")$'\n'; }

# one MAJOR: tests it; its output, seconds and result go to files
one() {
	local started=$SECONDS result=ok
	if ! tools/pg-major.sh "$1" >/dev/null; then
		result=missing
	else
		tools/pg-hints.sh "$1" || echo "pg_hint_plan is not to be had"
		tools/in-pg.sh -b "$TACHO_PROGRAM" -b "$TACHO_PROGRAM-record" -b "$TACHO_PROGRAM-doctor" "$1" tools/test.sh --servers ||
			result=FAILED
	fi >"$logs/$1.log" 2>&1
	echo "$((SECONDS - started)) $result" >"$logs/$1.result"
}

# report MAJOR: shows its output and adds it up
report() {
	local seconds result version ok bad
	echo "== PostgreSQL $1"
	cat "$logs/$1.log"
	read -r seconds result <"$logs/$1.result"
	read -r version ok bad < <(
		sed -nE 's/^([0-9][0-9a-z.]*): ([0-9]+) passed, ([0-9]+) failed$/\1 \2 \3/p' "$logs/$1.log" |
			awk '{ version = $1; ok += $2; bad += $3 } END { print (NR ? version : "-"), ok + 0, bad + 0 }'
	)
	if [ "$result" != ok ] && [ "$bad" = 0 ]; then bad=1; fi
	[ "$result" != missing ] ||
		result="FAILED: no PostgreSQL $1 here (TACHO_MATRIX_SKIP=$1 skips it)"
	passed=$((passed + ok)) failed=$((failed + bad))
	row "$1" "$version" "$ok" "$bad" "$seconds" "$result"
}

skipped() { [[ " ${TACHO_MATRIX_SKIP:-} " == *" $1 "* ]]; }

for major; do
	skipped "$major" && continue
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
	one "$major" &
done
row major version passed failed seconds result
for major; do
	if skipped "$major"; then
		row "$major" - - - - "skipped: TACHO_MATRIX_SKIP names it"
		continue
	fi
	until [ -e "$logs/$major.result" ]; do wait -n || break; done
	report "$major"
done

printf '\n%s\n' "$table"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
