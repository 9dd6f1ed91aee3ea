# shellcheck shell=bash disable=SC2034,SC2154 # variables and functions of test.sh
# The parts of bench/test.sh about the cost of a statement and about peers with an
# installer. Sourced, not run.
scratch= # the test with a full disk of servers is over

if [ -n "$small" ]; then
	head -c 16M /dev/zero >"$small/fill" 2>/dev/null || true
	results=(setting --name work_mem --values "1MB,2MB" --scale 0 --rounds 1 --sql "select 1" --output "$small/results")
	check "a full disk of results is an error" refused "could not write \"$small/results/experiment.json\"" "${results[@]}"
	rm "$small/fill"
	check "and none when there is room again" bench "${results[@]}"
	check "with a whole result" grep -q '^| 2MB |' "$small/results/report.md"
fi

check "the cost of a statement is measured without a load" bench overhead --variants none,tacho \
	--workloads "SELECT 1" --rounds 1 --scale 1 --output "$dir/cost"
check "in a run for each variant" runs cost 2
counted() { # METRIC PROGRAM WORDS: of tacho, or the reason why not
	if command -v "$2" >/dev/null; then
		grep -Eq "\"variant\":\"tacho\".*\"$1\":[0-9]*[1-9]" "$dir/cost/runs.jsonl"
	else
		grep -q "$3 are not counted: $2 is not installed" "$dir/cost/report.md"
	fi
}
check "instructions are counted, or the report says why not" counted instructions valgrind instructions
check "so are system calls" counted syscalls strace "system calls"
check "its time is reported" grep -Eq '^\| SELECT 1 \| [0-9.a-z]+ \| tacho \|.* [0-9]+ \|' "$dir/cost/report.md"

# the part of pg_ash 1 that the questions of the scenario need
cat >"$dir/ash-small.sql" <<'END'
create schema ash;
create function ash.epoch() returns timestamptz immutable language sql as $$ select timestamptz '2026-01-01 00:00:00+00' $$;
create table ash.wait_event_map (id smallserial, state text, type text, event text, unique (state, type, event));
create table ash.query_map_0 (id serial, query_id bigint unique);
create table ash.sample (sample_ts integer, datid oid, active_count smallint, data integer[], slot smallint);
create function ash.top_waits_at(since timestamptz, until timestamptz) returns setof bigint language sql as $$
	select sum(active_count) from ash.sample where sample_ts between extract(epoch from since - ash.epoch()) and extract(epoch from until - ash.epoch()) - 1
	having sum(active_count) = 180000 or (1 / (sum(active_count) - sum(active_count))) > 0 $$;
END
awk '/^\[\[history.question/ {n++} /^\[\[variant/ {n = 0} n < 2' "$dir/history.toml" >"$dir/ash.toml"
check "pg_ash is asked about the same hour" bench "$dir/ash.toml" --pg-ash "$dir/ash-small.sql" --rounds 1 \
	--skip-missing --output "$dir/ash"
check "in a variant of its own" grep -q '| pg_ash (ash-small) | 1 | ' "$dir/ash/report.md"
sed 's/ language sql as \$\$/&select pg_sleep(20);/' "$dir/ash-small.sql" >"$dir/ash-slow.sql"
sed -i 's/^limit_s = .*/limit_s = 1/' "$dir/ash.toml"
check "an answer that takes too long is not waited for" bench "$dir/ash.toml" --pg-ash "$dir/ash-slow.sql" --rounds 1 \
	--skip-missing --output "$dir/slow"
check "and the report says so" grep -q '| pg_ash (ash-slow) | > 1000.00 | > ' "$dir/slow/report.md"
check "an installer that is not there is named" refused "could not read \"$dir/none.sql\"" history --pg-ash "$dir/none.sql"
check "pg_ash is no variant of anything else" refused "--pg-ash is for scenarios with pg_ash in them" overhead \
	--pg-ash "$dir/ash-small.sql"

polled() { # by the script of its own, which stops reading by itself
	BENCH_DIR=$(mktemp -d "$dir/polled.XXXXXX") BENCH_BIN=$bin timeout 120 "$repo/bench/statements.sh" -w churn \
		-v "none tacho" -c 4 -R 55% -p 1 -r 1 -t 2 >"$dir/polled.md"
}
check "latencies are measured while the view is read, too" polled
check "and reported for both" grep -Eq '^\| tacho \|( [0-9]+\.[0-9]+ \|){8}$' "$dir/polled.md"
