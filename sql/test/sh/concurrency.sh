#!/usr/bin/env bash
# Rotation beside readers: it never waits and never ends in a deadlock, and a reader's
# view does not change under it.
set -euo pipefail

export PGDATABASE=t_concurrency
createdb "$PGDATABASE"
psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
psql -f sql/tacho.sql >/dev/null

fill() { # SINCE UNTIL
	psql >/dev/null <<-END
		create temp table line as
		select t as time, s as pid, 'IO' as wait_event_type, 'Read' as wait_event
		from generate_series(timestamptz '$1', timestamptz '$2' - interval '10 seconds', '10 seconds') t, generate_series(1, 2) s;
		select tacho.import_sessions('line', '10 seconds');
		select tacho._pack(tacho._ms('$2'));
	END
}
fill '2026-03-01 20:00+00' '2026-03-01 21:00+00'
for hour in 21 22 23; do
	same "$(psql -c "select tacho.rotate(true)")" rotated "rotation before $hour"
	fill "2026-03-01 $hour:00+00" "2026-03-01 $hour:59+00"
done
psql -c "select tacho._roll_up_hours(tacho._ms('2026-03-02'))" >/dev/null
load="select avg_aas from tacho.aas('2026-03-01 20:00+00', '2026-03-01 23:59+00', scope => 'foreground')"

# a reader in a transaction holds its partitions: rotation gives up, loses nothing
coproc reader { exec 2>reader.err; command psql -qAtX; }
exec 7<&"${reader[0]}" 8>&"${reader[1]}"
echo "begin; $load;" >&8
read -r answer <&7
same "$answer" 2.0000 "a reader"
same "$(psql -c "select tacho.rotate(true, '0.2 seconds')")" readers "rotation beside a reader"
same "$(psql -c "$load")" 2.0000 "another reader meanwhile"
same "$(psql -c "select value from tacho.counter where name like '%readers'")" 1 "rotations put off are counted"
# the sampler continues
psql -c "update tacho.setting set enabled = true" >/dev/null
same "$(psql -c "select replace(tacho.take_sample(), 'late', 'ok')")" ok "a tick beside a reader"
echo "$load;" >&8
read -r answer <&7
same "$answer" 2.0000 "the reader again"
echo "commit;" >&8

# a snapshot from before the rotation does not read an empty partition as idle
echo "begin isolation level repeatable read; select 1;" >&8
read -r answer <&7
same "$(psql -c "select tacho.rotate(true)")" rotated "rotation when the reader is gone"
echo "\\set VERBOSITY sqlstate" >&8
echo "$load;" >&8
echo "rollback; select 'end';" >&8
read -r answer <&7
same "$answer" end "an old snapshot is refused"
echo "\\q" >&8

# many of each at once: no error, no deadlock
psql -c "update tacho.setting set enabled = false" >/dev/null
race() { # COMMAND TIMES
	local i
	for ((i = 0; i < $2; i++)); do echo "$1;"; done | psql >/dev/null 2>>race.err
}
: >race.err
race "select * from tacho.top('wait_event', now() - interval '1 day', by => 'pid', scope => 'all')" 60 &
race "select * from tacho.samples(now() - interval '1 day')" 60 &
race "select * from tacho.timeline(now() - interval '1 hour', by => 'wait_event', scope => 'foreground')" 60 &
race "select tacho.take_sample()" 60 &
race "select * from tacho.maintain()" 30 &
race "select tacho.rotate(true, '0.05 seconds')" 30 &
race "select * from tacho.blocking(since => now() - interval '1 day')" 30 &
# the work of maintain(), once an hour, in the order of its locks
race "begin; lock table tacho.mutex_maintenance in exclusive mode; select tacho._pack(tacho._ms(now())), tacho._roll_up_hours(tacho._ms(now())); select tacho._forget(tacho._ms(now())); commit" 30 &
psql -c "update tacho.setting set enabled = true, sample_interval = '10 milliseconds'" >/dev/null
wait
same "$(grep -vE '^(NOTICE|DETAIL|HINT): ' race.err || true)" "" "readers, sampler, maintenance, rotation at once"
same "$(psql -c "select count(*) from tacho.failure")" 0 "failures of maintenance"
same "$(psql -c "select deadlocks from pg_stat_database where datname = current_database()")" 0 "deadlocks"
