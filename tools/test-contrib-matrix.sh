#!/usr/bin/env bash
# usage: tools/test-contrib-matrix.sh [MAJOR]...
#
# Runs the suite of pg_stat_statements (tools/test-contrib.sh) of each MAJOR (default:
# 15, 17, 18 and 19) on tacho in that major; 19 gets the suite of 18, which its own
# module answers first. No Debian release at hand has the source of 16. A suite that
# cannot be downloaded is left out, with a message. The last line counts suites: "N
# passed, N failed".
set -euo pipefail

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 15 17 18 19
passed=0 failed=0
for major; do
	echo "== contrib's suite on PostgreSQL $major"
	if ! source=$(tools/pg-source.sh "$((major == 19 ? 18 : major))"); then
		echo "left out: contrib's suite on PostgreSQL $major"
	elif tools/in-pg.sh -b "$source" "$major" tools/test-contrib.sh "$source"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
