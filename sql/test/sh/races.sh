#!/usr/bin/env bash
# Two sessions, one of them in the middle of its work:
# - rotation beside the sampler, the hourly sums and the cleanup
# - hourly sums beside a tick that is not committed
# - the sampler beside maintenance
# - uninstall beside a reader and the sampler
set -euo pipefail

export PGDATABASE=t_races
createdb "$PGDATABASE"
psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
psql -f sql/tacho.sql >/dev/null

# a session that stays in its transaction
coproc first { exec 2>&1; PGAPPNAME=first command psql -qAtX; }
exec 7<&"${first[0]}" 8>&"${first[1]}"
first() { # COMMANDS: its last line
	local line answer=''
	printf '%s;\n\\echo done.\n' "$1" >&8
	while read -r -t 120 line <&7 && [ "$line" != "done." ]; do answer=$line; done
	echo "$answer"
}
# a command of another session that has to wait for the first one
behind() { # COMMAND
	PGAPPNAME=second psql -c "$1" >second.out 2>&1 &
	second=$!
	local i
	for ((i = 0; i < 600; i++)); do
		[ "$(psql -c "select count(*) from pg_stat_activity where application_name = 'second' and wait_event_type = 'Lock'")" = 0 ] || return 0
		kill -0 $second 2>/dev/null || break
		sleep 0.05
	done
	echo "did not wait: $1"
	cat second.out
	exit 1
}
answered() { # EXPECTED WHAT
	wait $second || true
	same "$(tail -n 1 second.out)" "$1" "$2"
}

psql -c "update tacho.setting set enabled = true, sample_interval = '10 milliseconds'" >/dev/null
tick() { # DATABASE TIME QUERY: SQL that adds one as the sampler does
	echo "lock table tacho.mutex_sampler in exclusive mode; select tacho._store_tick(row(coalesce((tacho._last_tick()).tick, 0) + 1, tacho._ms('$2'), 10000, 1, null, null, null)::tacho.tick,
		array[jsonb_populate_record(null::tacho.sampled, '{\"pid\": 7, \"category\": \"foreground\", \"state\": \"active\", \"wait_event_type\": \"IO\", \"wait_event\": \"Read\", \"database\": \"$1\", \"query_id\": $3}')])"
}
day=2026-03-01

# rotation waits for the tick that is being added; ids and partition agree
psql -c "begin" -c "$(tick one "$day 20:00:00+00" 1)" -c "commit" >/dev/null
first "begin; $(tick two "$day 20:00:10+00" 2)" >/dev/null
behind "select tacho.rotate(true)"
first commit >/dev/null
answered rotated "rotation behind a tick"
psql -c "begin" -c "$(tick three "$day 20:00:20+00" 3)" -c "commit" >/dev/null
samples="select string_agg(concat_ws(' ', database, query_id), ', ' order by sample_time) from tacho.samples('$day', '2026-03-02', n => null)"
same "$(psql -c "$samples")" "one 1, two 2, three 3" "every tick with its own names"
# … also for one that fails
first "begin; $(tick lost "$day 20:00:30+00" 4)" >/dev/null
behind "select tacho.rotate(true)"
first rollback >/dev/null
answered rotated "rotation behind a tick that is undone"
same "$(psql -c "$samples")" "one 1, two 2, three 3" "which is gone"

# maintenance waits for a tick of the last slot of an hour before it sums it up
psql -c "alter function tacho.maintain() set lock_timeout = '2min'" # patience for a test on a busy machine
psql -c "begin" -c "$(tick four "$day 21:59:40+00" 4)" -c "commit" >/dev/null
first "begin; $(tick five "$day 21:59:50+00" 5)" >/dev/null
behind "select string_agg(step || ' ' || result, ', ') from tacho.maintain() where step in ('maintain', 'sum up')"
first commit >/dev/null
answered "sum up 2" "maintenance behind a tick"
same "$(psql -c "select array_to_string(n_observed[60:60], ' ') from tacho.hour_tick order by hour desc limit 1")" 2 "the last minute has both ticks"
# and neither import nor sampler adds a tick to an hour that is summed up
psql -c "create table line as select timestamptz '$day 21:59:55+00' as time, 1 as pid"
same "$(command psql -qAtX -c "select tacho.import_sessions('line')" 2>&1 | sed -n 's/^ERROR:  //p')" "time is in an hour that is summed up" "import"
same "$(psql -c "begin" -c "lock table tacho.mutex_sampler in exclusive mode" -c "select tacho._take_sample(tacho._ms('$day 21:59:55+00'), 10000)" -c "commit")" taken "a tick of an hour ago"

# hourly sums and cleanup hold what rotation waits for
psql -c "begin" -c "$(tick six "$day 22:00:00+00" 6)" -c "select tacho._pack(tacho._ms('$day 23:00+00'))" -c commit >/dev/null
first "begin; lock table tacho.mutex_maintenance in exclusive mode; select tacho._roll_up_hours(tacho._ms('$day 23:00+00'))" >/dev/null
behind "select tacho.rotate(true)"
same "$(psql -c "select result from tacho.maintain()")" busy "maintenance beside maintenance"
same "$(psql -c "select replace(tacho.take_sample(), 'late', 'ok')")" ok "a tick beside maintenance"
first commit >/dev/null
answered rotated "rotation behind the hourly sums"
first "begin; lock table tacho.mutex_maintenance in exclusive mode; select tacho._forget(tacho._ms(now()))" >/dev/null
behind "select tacho.rotate(true)"
first commit >/dev/null
answered "not due" "rotation behind the cleanup: nothing came since"

# two rotations at once are one
psql -c "select replace(tacho.take_sample(), 'late', 'ok')" >/dev/null
first "begin; select tacho.rotate(true)" >/dev/null
behind "select tacho.rotate(true)"
first commit >/dev/null
answered "not due" "the second of two rotations"

# uninstall waits for readers without a deadlock, and gives up in time
same "$(first "begin; select avg_aas from tacho.aas('$day 21:59+00', '$day 22:00+00', scope => 'all')")" 1.0000 "a reader"
same "$(command psql -qAtX -c "select tacho.uninstall('yes', '0.1 seconds')" 2>&1 | sed -n 's/^ERROR:  //p')" "tacho is in use" "uninstall beside a reader"
same "$(first "select count(*) from tacho.periods('$day 22:00+00')")" 6 "the reader goes on"
psql -c "update tacho.setting set sample_interval = '20 milliseconds'" >/dev/null
PGAPPNAME=sampler command psql -qAtX -c "call tacho.run_sampler()" >sampler.out 2>&1 &
sampler=$!
PGAPPNAME=second psql -c "select tacho.uninstall('yes', '2 minutes')" >second.out 2>&1 &
second=$!
same "$(first "select pg_sleep(0.3); select count(*) from tacho.timeline('$day 21:30+00', '$day 22:30+00', by => 'query_id', scope => 'all', n => 1) where key <> '(other)'")" 60 "with all of its tables"
first commit >/dev/null
answered removed "uninstall, when the reader is gone"
wait $sampler || true
grep -qE 'the sampler ends|does not exist' sampler.out || { echo "the sampler did not end as it should"; cat sampler.out; exit 1; }
same "$(psql -c "select to_regnamespace('tacho') is null, deadlocks from pg_stat_database where datname = current_database()")" "t|0" "nothing is left, nobody was in a deadlock"
echo "\\q" >&8
