#!/usr/bin/env bash
# pg_cron runs the sampler for 20 ticks of a second: no slot has two ticks, and missing
# ticks are reported. start, stop and status may be called again.
set -euo pipefail

[[ "$TACHO_PRELOAD" == *pg_cron* ]] || { echo "skipped: pg_cron is not installed here"; exit 0; }
psql() { command psql -qAtX -v ON_ERROR_STOP=1 -d postgres "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
status() { psql -c "select regexp_replace(value, '\d+', 'N') from tacho.status() where metric = '$1'"; }
until_at_least() { # COUNT QUERY: for a minute at most that a job begins, and more
	local i
	for ((i = 0; i < 900; i++)); do
		[ "$(psql -c "$2")" -lt "$1" ] || return 0
		sleep 0.2
	done
	echo "waited in vain for $1 of: $2"
	psql -c "select * from cron.job_run_details"
	return 1
}

psql -c "create extension pg_cron" -f sql/tacho.sql >/dev/null
same "$(status pg_cron)" "available, no job: select * from tacho.start()" "before the start"
same "$(psql -c "select step from tacho.start(every => '1 second') where step = 'pg_cron'")" pg_cron "start"
job=$(psql -c "select jobid from cron.job")
psql -c "select * from tacho.start()" >/dev/null
same "$(psql -c "select jobid from cron.job")" "$job" "start again: the same job"
same "$(psql -c "select count(*) from tacho.marker where kind = 'start'")" 1 "and one marker"
same "$(status pg_cron)" "job N, active" "status"

psql -c "
	create view tick as
	select p.first_tick + coalesce(p.tick_offsets[i], i - 1) as tick,
		p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms
	from (select * from tacho._hot_packs(0, 9223372036854775807) union all select * from tacho.pack) p, generate_series(1, p.n_ticks) i"
until_at_least 17 "select count(*) from tick"
same "$(status recording)" on "status: recording"
# slots in which nothing can be stored
psql -c "begin" -c "lock table tacho.mutex_sampler in exclusive mode" -c "select count(pg_sleep(3.2))" -c commit >/dev/null
known=$(psql -c "select count(*) from tick")
until_at_least $((known + 3)) "select count(*) from tick"
for _ in 1 2; do psql -c "select result from tacho.stop()" >/dev/null; done
until_at_least 1 "select (count(*) = 0)::integer from pg_stat_activity where query like 'call tacho.run_sampler%' and state = 'active'"
same "$(psql -c "select count(*) from cron.job")" 0 "stop takes the job away"
same "$(psql -c "select count(*) from tacho.marker where kind = 'stop'")" 1 "stop again: one marker"
same "$(status recording), $(status pg_cron)" "off: call tacho.start(), available, no job: select * from tacho.start()" "status: off"

same "$(psql -c "select count(*) - count(distinct ms) from tick")" 0 "no tick twice"
same "$(psql -c "select count(*) from tick where ms % 1000 <> 0")" 0 "slots of a second"
same "$(psql -c "select bool_and(ms - least_ms = (tick - least_tick) * 1000)
	from tick, (select min(ms) as least_ms, min(tick) as least_tick from tick) x")" t "missed slots are holes in the numbers"
read -r expected observed coverage < <(psql -F ' ' -c "select a.ticks_expected, a.ticks_observed, a.coverage_pct
	from (select min(ms) as since, max(ms) + 1000 as until from tick) x,
		tacho.aas(to_timestamp(since / 1000), to_timestamp(until / 1000)) a")
same "$observed" "$(psql -c "select count(*) from tick")" "all ticks are observed ones"
same "$expected" "$(psql -c "select max(tick) - min(tick) + 1 from tick")" "a tick a second is expected"
same "$coverage" "$(psql -c "select round(100.0 * $observed / $expected, 4)")" "and the coverage says how many came"
same "$(psql -c "select count(*) from cron.job_run_details")" 1 "one run, one row of pg_cron's log"
[ $((expected - observed)) -ge 2 ] || { echo "three seconds without room for a tick, but $observed of $expected"; exit 1; }
echo "# pg_cron $(psql -c "select extversion from pg_extension where extname = 'pg_cron'"): $expected slots of 1 s, $observed ticks, none twice; 3 s were blocked"
