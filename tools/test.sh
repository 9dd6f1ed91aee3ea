#!/usr/bin/env bash
# usage: tools/test.sh [--servers]
#
# Everything for one PostgreSQL: the Rust tests and the benchmarks' (not with
# --servers), the extension, the SQL edition. The last line is "N passed, N failed".
# Environment: see tools/test-pg.sh.
set -euo pipefail

cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# run NAME COMMAND...: adds up what its output counts. A command that fails
# without counting a failure counts as one.
run() {
	local name=$1 status=0 ok bad
	shift
	echo "== $name"
	"$@" 2>&1 | tee "$log" || status=$?
	# cargo: "test result: ok. 3 passed; 0 failed"; ours: "15.20: 3 passed, 0 failed"
	read -r ok bad < <(sed -nE 's/^(test result|[0-9][0-9a-z.]*): .*\b([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p' "$log" |
		awk '{ ok += $1; bad += $2 } END { print ok + 0, bad + 0 }')
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
	passed=$((passed + ok)) failed=$((failed + bad))
}

[ "${1:-}" = --servers ] || run "Rust" cargo test --workspace --locked --no-fail-fast --quiet
[ "${1:-}" = --servers ] || run "benchmarks" bench/test.sh
run "extension" tools/test-pg.sh
[ ! -x sql/test/run.sh ] || run "SQL edition" sql/test/run.sh
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
