#!/usr/bin/env bash
# usage: tools/test.sh [--servers]
#
# Everything for one PostgreSQL: the Rust tests and the benchmarks' (not with
# --servers), the extension, the SQL edition. Those that start servers run side
# by side (tools/pool.sh). The last line is "N passed, N failed".
# Environment: see tools/test-pg.sh; TACHO_PROFILE is the profile that cargo tests
# (default: dev).
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tools/scratch.sh
source tools/scratch.sh
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run NAME COMMAND...: what its output counts goes to NAME.result. A command
# that fails without counting a failure counts as one.
run() {
	local name=$1 status=0 ok bad
	shift
	echo "== $name"
	"$@" 2>&1 | tee "$logs/$name" || status=$?
	# cargo: "test result: ok. 3 passed; 0 failed"; ours: "15.20: 3 passed, 0 failed";
	# a second try counts alone
	read -r ok bad < <(sed -nE 's/^(test result|[0-9][0-9a-z.]*): .*\b([0-9]+) passed[;,] ([0-9]+) failed.*/\2 \3/p; /^UNSTEADY/p' "$logs/$name" |
		awk '/^U/ { ok = bad = 0; next } { ok += $1; bad += $2 } END { print ok + 0, bad + 0 }')
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
	echo "$ok $bad" >"$logs/$name.result"
}

rust() {
	local try=1
	until cargo test --workspace --locked --profile "${TACHO_PROFILE:-dev}" --no-fail-fast --quiet 2>&1 | tee "$logs/cargo"; do
		again $((try++)) Rust "$logs/cargo" || return 1
	done
}

# shellcheck source=tools/pool.sh
source tools/pool.sh
pool_open
run "extension" tools/test-pg.sh &
[ ! -x sql/test/run.sh ] || run "SQL edition" sql/test/run.sh &
[ "${1:-}" = --servers ] || run "Rust" rust
[ "${1:-}" = --servers ] || run "benchmarks" bench/test.sh
[ "${1:-}" = --servers ] || run "packaging" tools/test-packaging.sh
wait
read -r passed failed < <(cat "$logs"/*.result | awk '{ ok += $1; bad += $2 } END { print ok + 0, bad + 0 }')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
