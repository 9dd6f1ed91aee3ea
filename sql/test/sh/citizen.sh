#!/usr/bin/env bash
# Installed by a role that is no superuser; dumped and restored; on a standby.
set -euo pipefail

psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }

# an ordinary owner of a database with pg_monitor
psql -c "create role plain_r login" -c "create database t_citizen owner plain_r" -c "create role busy_r login"
export PGDATABASE=t_citizen
psql -U plain_r -f sql/tacho.sql >/dev/null
same "$(psql -U plain_r -c "select count(*) from tacho.start() where result like 'missing: grant pg_monitor to plain_r%'")" 1 "start says what is missing"
same "$(psql -U plain_r -c "select value from tacho.status() where metric = 'permission'")" "sees only sessions of plain_r" "so does status"
psql -c "grant pg_monitor to plain_r"
command psql -qAtX -U busy_r -c "select pg_sleep(3600)" -d postgres >/dev/null 2>&1 &
busy=$!
for ((i = 0; i < 600; i++)); do
	[ "$(psql -c "select count(*) from pg_stat_activity where usename = 'busy_r' and state = 'active' and wait_event = 'PgSleep'")" = 0 ] || break
	sleep 0.1
done
same "$(psql -U plain_r -c "select replace(tacho.take_sample(), 'late', 'ok')")" ok "a tick with pg_monitor alone"
same "$(psql -U plain_r -c "select username || ' ' || wait_event from tacho.samples() where username = 'busy_r'")" "busy_r PgSleep" "other roles are seen"
psql -c "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'busy_r'" >/dev/null
wait $busy || true
same "$(command psql -qAtX -U plain_r -c "select count(*) from tacho.server_history()" 2>&1 | sed 's/.*NOTICE: *//' | head -n 1)" \
	"the SQL edition does not record the server and its host" "a notice for what needs the host"
same "$(command psql -qAtX -U plain_r -c "select count(*) from tacho.explain('top')" 2>&1 | sed 's/.*NOTICE: *//' | head -n 1)" \
	"the SQL edition has no files whose plan could be explained" "a notice for what needs files"

# a failing installation leaves nothing, says why, and stops also where psql would
# continue
createdb t_broken
refused() { # ROLE MESSAGE WHAT
	echo '\i sql/tacho.sql' | PGOPTIONS='-c search_path=nowhere' command psql -qX -U "$1" -d "${4:-t_broken}" -v ON_ERROR_STOP=0 >/dev/null 2>broken.err || true
	same "$(sed -nE 's/.*(ERROR|DETAIL|HINT): +//p' broken.err | paste -sd' ')" "$2" "$3"
}
refused plain_r 'permission denied for database "t_broken" Its owner may say: grant create on database t_broken to plain_r' "no CREATE"
refused plain_r "tacho is installed already Run sql/upgrade.sql, which keeps the history; tacho.uninstall('yes') removes it." twice t_citizen
psql -d t_broken -c "create schema tacho authorization busy_r"
refused postgres 'schema "tacho" already exists It is empty, and belongs to role "busy_r". Rename or drop it, or install into another database.' "a schema of somebody else"
psql -d t_broken -c "create table tacho.own ()"
refused plain_r 'schema "tacho" already exists It is not of tacho, and belongs to role "busy_r". Rename or drop it, or install into another database.' "a schema that may not be used"
psql -d t_broken -c "drop table tacho.own"
refused busy_r "tacho is installed already Run sql/upgrade.sql, which keeps the history; tacho.uninstall('yes') removes it." "installed by another role" t_citizen
same "$(psql -d t_broken -c "select count(*) from pg_class where relnamespace = 'tacho'::regnamespace")" 0 "transactional"

# dump and restore keep it working
psql -U plain_r >/dev/null <<-END
	create temp table line as
	select timestamptz '2026-03-01 20:00+00' + n * interval '10 seconds' as time, 1 as pid, 'IO' as wait_event_type, 'Read' as wait_event
	from generate_series(0, 800) n;
	delete from tacho.hot;
	select tacho.import_sessions('line', '10 seconds');
	select tacho._pack(tacho._ms('2026-03-01 22:10+00')), tacho._roll_up_hours(tacho._ms('2026-03-01 22:10+00'));
	select tacho.rotate(true);
END
answers() {
	psql -d "$1" -c "select * from tacho.top('wait_event', '2026-03-01 19:00+00', '2026-03-01 23:00+00')" \
		-c "select * from tacho.samples('2026-03-01 19:00+00', '2026-03-01 23:00+00', n => 3)"
}
before=$(answers t_citizen)
createdb t_restored
pg_dump -d t_citizen | command psql -qX -d t_restored -v ON_ERROR_STOP=1 >/dev/null
same "$(answers t_restored)" "$before" "restored"
same "$(psql -d t_restored -c "update tacho.setting set enabled = true" -c "select replace(tacho.take_sample(), 'late', 'ok')" -c "select tacho.rotate(true)")" $'ok\nrotated' "and goes on"

# a standby reads and does not write
calls() { for ((i = 0; i < $1; i++)); do echo "select 'counted'::text;"; done | psql -f - >/dev/null; }
if [[ "$TACHO_PRELOAD" == *pg_stat_statements* ]]; then
	psql -c "create extension pg_stat_statements"
fi
pg_basebackup -D standby -c fast -R -X stream >/dev/null
cat >>standby/postgresql.conf <<-END
	port = 5433
END
pg_ctl -D standby -l standby.log -w start >/dev/null
trap 'pg_ctl -D standby -m immediate stop >/dev/null' EXIT
export PGPORT=5433
same "$(psql -c "select tacho.take_sample()")" standby "a tick on a standby"
same "$(psql -c "select result from tacho.maintain()")" standby "maintenance on a standby"
same "$(psql -c "select left(result, 7) from tacho.start()")" standby "start on a standby"
same "$(psql -c "select value from tacho.status() where metric = 'recording'")" "standby: nothing is recorded here" "status on a standby"
same "$(answers t_citizen)" "$before" "a standby answers alike"
pass() { psql -c "select tacho._record_statements(tacho._ms(clock_timestamp()))" >/dev/null; }
if [[ "$TACHO_PRELOAD" == *pg_stat_statements* ]]; then
	calls 1000
	PGPORT=5432 pass
	PGPORT=5432 calls 1
	PGPORT=5432 pass
fi
primary=$(PGPORT=5432 psql -c "select pg_current_wal_insert_lsn()")
for ((i = 0; i < 600; i++)); do [ "$(psql -c "select pg_last_wal_replay_lsn() >= '$primary'")" != t ] || break; sleep 0.1; done
pg_ctl -D standby -w promote >/dev/null
same "$(psql -c "select replace(tacho.take_sample(), 'late', 'ok')")" ok "promoted"

# the counters of the standby are its own, and began before the last pass on the primary
if [[ "$TACHO_PRELOAD" == *pg_stat_statements* ]]; then
	counted() {
		psql -c "select coalesce(sum(calls), 0) from tacho.statement_counters c join tacho.statement s on s.id = c.statement
			where c.pass_ms = (select ms from tacho.watermark where name = 'statements')
				and s.query_id = (select queryid from pg_stat_statements where calls >= 1000)"
	}
	same "$(psql -c "select count(*) from pg_stat_statements where calls = 1000")" 1 "a thousand calls on the standby"
	pass
	same "$(counted)" 0 "they are not calls of the minute of the failover"
	calls 3
	pass
	same "$(counted)" 3 "and the next pass counts"
fi
