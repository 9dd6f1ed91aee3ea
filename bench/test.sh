#!/usr/bin/env bash
# usage: bench/test.sh
#
# Runs every scenario of `tacho bench` once, tiny, on a private PostgreSQL, and its failures:
# Ctrl-C, continuing, a missing extension, a foreign result, a full disk, bad arguments; the same
# on a running server (--dsn). The last line counts: "15.20: N passed, N failed".
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd -P)
program=${TACHO_PROGRAM:-${CARGO_TARGET_DIR:-$repo/target}/release/tacho}
dir=$(mktemp -d "${TMPDIR:-/tmp}/tacho-bench-test.XXXXXX")
small='' given='' # a small disk; data directory of a running server
cleanup() {
	[ -z "$given" ] || as_server "$bin/pg_ctl" -D "$given" -m immediate stop >/dev/null || true
	[ -z "$small" ] || umount "$small" || true
	rm -rf "$dir"
}
as_server() { "$repo/tools/as-server.sh" "$@"; }
trap cleanup EXIT
chmod 755 "$dir"
config=$(TACHO_PROGRAM=$program "$repo/tools/stage.sh" "$dir" 2>"$dir/stage.log") || { cat "$dir/stage.log"; exit 1; }
bin=${config%/*}
version=$("$config" --version | cut -d' ' -f2)
[ "$(id -u)" != 0 ] || chown -R "$("$repo/tools/as-server.sh" --user)" "$dir/pg"
passed=0 failed=0

# check NAME COMMAND...: passes if the command exits with 0
check() {
	local name=$1
	shift
	if "$@" >"$dir/check.log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'not ok %s\n' "$name"
		sed 's/^/# /' "$dir/check.log"
		[ ! -e "$dir/log" ] || sed 's/^/# > /' "$dir/log"
	fi
}

# shellcheck source=bench/test.functions.sh
source "$repo/bench/test.functions.sh"

check "overhead runs" bench overhead --variants none,pg_stat_statements,tacho --clients 2 --seconds 1 \
	--rounds 1 --scale 1 --workloads select-only --output "$dir/overhead"
check "overhead has a run for each variant" runs overhead 3
check "overhead is reported" whole overhead
check "versions, libraries and settings are on the page" grep -Eq \
	'^\| [0-9.a-z]+ \| tacho \| .*tacho [0-9.]+.* \| tacho: sha256 [0-9a-f]{12}.* \| .*shared_preload_libraries = tacho' \
	"$dir/overhead/report.md"
check "and CPU time of others" grep -q 'CPU time of others: ' "$dir/overhead/report.md"
check "churn runs" bench churn --variants none,tacho --workloads 100k --clients 4 --seconds 2 --rounds 1 \
	--output "$dir/churn"
check "churn counts every call" grep -Eq '\| tacho \|( [0-9.]+ \|)+ 1 \|$' "$dir/churn/report.md"
check "analyze runs, io_method where there is one" bench analyze --rounds 1 --scale 1 --output "$dir/analyze"
check "analyze is reported" whole analyze
# one database, the first and the last layout
awk '/^databases/ {$3 = 1} /^\[\[codec.layout/ {n++} /^\[\[variant/ {n = 0} n < 2 || n == 9' \
	"$repo/bench/scenarios/codec.toml" >"$dir/codec.toml"
check "codec runs in every form and reads what it wrote" bench "$dir/codec.toml" --rounds 1 --output "$dir/codec"
forms=$((4 - $(grep -c 'built without Parquet' "$dir/codec/report.md" || true)))
check "codec has a run for each form and layout" runs codec $((2 * forms))
check "codec is reported" whole codec
sed 's/^hours = 6/hours = 1/' "$repo/bench/scenarios/history.toml" >"$dir/history.toml"
check "history asks the tape; the edition is left out when it is not given" bench "$dir/history.toml" --rounds 1 \
	--output "$dir/history"
check "history has a run for each question" runs history 6
check "and says what is left out" grep -q 'left out: --edition was not specified' "$dir/history/report.md"
check "any setting can be measured" bench setting --name work_mem --values 64kB,64MB --scale 1 --rounds 2 \
	--sql "select count(distinct aid) from pgbench_accounts" --output "$dir/setting"
check "setting has a run for each value and round" runs setting 4
check "two results are compared" bash -c "'$program' bench compare '$dir/setting' '$dir/setting' | grep -q 'B ÷ A'"

slow_servers
one_run() { [ "$(wc -l <"$dir/cut/runs.jsonl")" -ge 1 ]; }
small_overhead=(overhead --workloads select-only --variants "none,tacho" --clients 1 --seconds 1 --rounds 2 --scale 1)

cut_off "pgrep -f $dir/tacho-bench.*-w.start" "${small_overhead[@]}" --output "$dir/cut"
check "Ctrl-C while a server starts ends with 130" [ $status = 130 ]
check "and leaves no server behind" nobody_left
cut_off one_run "${small_overhead[@]}" --output "$dir/cut" # the same again
check "Ctrl-C ends with 130" [ $status = 130 ]
check "Ctrl-C leaves no process and no data" nobody_left
check "a partial result says so" grep -q INCOMPLETE "$dir/cut/report.md"
check "an experiment goes on" bench "${small_overhead[@]}" --output "$dir/cut"
check "what was measured is not measured again" runs cut 4
check "it is complete then" whole cut

check "a piece ends behind a block" bench "${small_overhead[@]}" --minutes 0 --output "$dir/pieces"
check "which is whole" runs pieces 2
check "and says that there is more" grep -q 'INCOMPLETE: 2 of 4 runs' "$dir/pieces/report.md"
check "the next piece goes on" bench "${small_overhead[@]}" --output "$dir/pieces"
check "and the page has the machine of each" grep -q '^- piece 2, runs 3 to 4: ' "$dir/pieces/report.md"

check "results of another experiment are not touched" refused "contains results of another experiment" \
	overhead --variants none --output "$dir/cut"
mv "$("$config" --pkglibdir)/pg_stat_statements.so" "$dir/"
check "a missing extension is named" refused 'has no "pg_stat_statements"' overhead \
	--variants none,pg_stat_statements --output "$dir/missing"
check "or left out" bench overhead --workloads select-only --variants none,pg_stat_statements --skip-missing --clients 1 --seconds 1 \
	--rounds 1 --scale 1 --output "$dir/missing"
check "and the report says so" grep -q 'left out: PostgreSQL .* has no "pg_stat_statements"' "$dir/missing/report.md"
mv "$dir/pg_stat_statements.so" "$("$config" --pkglibdir)/"
check "a directory without PostgreSQL is refused" refused 'program "postgres" not found' overhead --pg-bin "$dir"
check "an unknown scenario is refused" refused 'unknown scenario "nothing"' nothing
check "an unknown variant is refused" refused 'unknown variant "x"' overhead --variants x
check "no rounds are refused" refused "rounds must be at least 1" overhead --rounds 0
check "a server that does not start tells why" refused "could not start the server" overhead \
	--variants none --set shared_buffers=x --output "$dir/broken"
if [ "$(id -u)" = 0 ] && mkdir "$dir/small" && mount -t tmpfs -o size=8m none "$dir/small" 2>/dev/null; then
	small=$dir/small
	chmod 777 "$small"
	scratch=$small
	check "a full disk is an error, not a result" refused "could not create data directory" overhead \
		--variants none --output "$dir/full"
	check "and leaves nothing there" [ -z "$(ls -A "$small")" ]
fi
check "nothing is left at the end" nobody_left

# shellcheck source=bench/test_costs.sh
source "$repo/bench/test_costs.sh"
# shellcheck source=bench/test_reload.sh
source "$repo/bench/test_reload.sh"
# shellcheck source=bench/test_given.sh
source "$repo/bench/test_given.sh"

echo "$version: $passed passed, $failed failed"
[ $failed = 0 ]
