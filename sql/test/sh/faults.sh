#!/usr/bin/env bash
# Faults of the server: all connections in use, a crash with samples outside the WAL.
set -euo pipefail

psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
export PGDATABASE=t_faults
createdb "$PGDATABASE"
psql -f sql/tacho.sql >/dev/null
psql -c "update tacho.setting set enabled = true, sample_interval = '100 milliseconds'"

# the sampler has its connection, so it continues when no one can connect
psql -c "call tacho.run_sampler('1 minute')" >/dev/null 2>&1 &
sampler=$!
for ((i = 0; i < 600; i++)); do [ "$(psql -c "select count(*) from tacho.hot")" = 0 ] || break; sleep 0.1; done
coproc inside { exec 2>&1; command psql -qAtX; } # it has its connection, too
exec 7<&"${inside[0]}" 8>&"${inside[1]}"
rm -f hold # of an earlier attempt
mkfifo hold
crowd=()
trap 'kill "${crowd[@]}" 2>/dev/null || true' EXIT
join_crowd() {
	command psql -qAtX -c "select 1" -f hold >/dev/null 2>&1 &
	crowd+=($!)
}
for ((i = 0; i < 60; i++)); do join_crowd; done
exec 9>hold
# a server without time to accept refuses for another reason, also some of the crowd
is_full() { ! command psql -qAtX -c "select" 2>nobody.err && grep -q 'too many clients\|remaining connection slots' nobody.err; }
for ((i = 0; i < 600; i++)); do
	! is_full || break
	join_crowd
	sleep 0.1
done
same "$(if is_full; then echo t; else cat nobody.err; fi)" t "nobody can connect"
seen=f
for ((i = 0; i < 600; i++)); do
	echo "select count(*) > 0 from tacho.hot where connections >= 47;" >&8
	read -r -t 120 seen <&7
	[ "$seen" != t ] || break
	sleep 0.1
done
same "$seen" t "ticks are taken meanwhile"
# also those that have not opened the pipe yet, which would wait forever
kill "${crowd[@]}" 2>/dev/null || true
wait "${crowd[@]}" || true
crowd=()
exec 9>&-
echo "\\q" >&8
# the status of a backend ends a moment after its client
for ((i = 0; i < 600; i++)); do ! command psql -qAtX -c "select" 2>/dev/null || break; sleep 0.1; done
same "$(psql -c "select count(*) from tacho.marker where kind = 'gap'")" 0 "and none of them is missing for long"
psql -c "select tacho.stop()" >/dev/null
wait "$sampler" || true

# hours whose ticks cannot be packed are summed up when they are
step() { psql -c "select tacho._step('$1', tacho._ms('2026-02-01 22:10+00'))"; }
psql >/dev/null <<-END
	delete from tacho.hot;
	delete from tacho.pack;
	alter table tacho.pack add constraint no_room check (false) not valid;
	create temp table line as
	select timestamptz '2026-02-01 20:00+00' + n * interval '10 seconds' as time, 1 as pid from generate_series(0, 779) n;
	select tacho.import_sessions('line', '10 seconds');
END
same "$(step pack | cut -d: -f1)" failed "ticks cannot be packed"
same "$(step 'sum up')" 0 "their hours are not complete"
psql -c "alter table tacho.pack drop constraint no_room"
same "$(step pack)" 130 "ticks are packed"
same "$(step 'sum up')" 2 "and summed up"
same "$(psql -c "select source, avg_aas from tacho.aas('2026-02-01 20:00+00', '2026-02-01 22:00+00')")" "hour|1.0000" "they are in the history"
same "$(psql -c "select string_agg(hour % 24 || ': ' || (select sum(n) from unnest(n_observed) n), ', ' order by hour) from tacho.hour_tick")" \
	"20: 360, 21: 360" "also in hour rows"

# a crash with an unlogged ring: hours stay, samples are lost and marked
psql >/dev/null <<-END
	delete from tacho.hot;
	delete from tacho.pack; -- a minute may have ended meanwhile
	select tacho.configure_ring(logged => false);
	create temp table line as
	select timestamptz '2026-03-01 20:00+00' + n * interval '10 seconds' as time, 1 as pid, 'IO' as wait_event_type, 'Read' as wait_event
	from generate_series(0, 500) n;
	select tacho.import_sessions('line', '10 seconds');
	select tacho._pack(tacho._ms('2026-03-01 22:10+00')), tacho._roll_up_hours(tacho._ms('2026-03-01 21:00+00'));
END
pg_ctl -D data -m immediate stop >/dev/null
pg_ctl -D data -l server.log -w start >/dev/null
lost="'2026-03-01 21:00+00', '2026-03-01 21:20+00'"
same "$(psql -c "select source, avg_aas from tacho.aas($lost)")" "none|" "what was lost is unknown, not idle"
psql -c "update tacho.setting set enabled = true" -c "select tacho.take_sample()" >/dev/null
same "$(psql -c "select count(*) from tacho.hot")" 1 "it goes on"
same "$(psql -c "select detail || ' from ' || to_char(period_start at time zone 'UTC', 'HH24:MI') from tacho.markers('2026-03-01 21:00+00') where kind = 'gap'")" \
	"the samples were lost: the server crashed, and they are not in the WAL from 21:00" "a marker says so"
same "$(psql -c "select source, avg_aas from tacho.aas('2026-03-01 20:00+00', '2026-03-01 21:00+00')")" "hour|1.0000" "hours are kept"
same "$(command psql -qAtX -c "select * from tacho.samples('2026-03-01 20:00+00', '2026-03-01 21:00+00')" 2>&1 | grep -c 'ERROR:  samples before .* are not kept')" 1 \
	"an error names the boundary"
same "$(psql -c "select count(*) from tacho.marker where kind = 'gap'")" 1 "once"
