#!/usr/bin/env bash
# An upgrade keeps history, settings, partitions and readers; one that fails
# changes nothing.
set -euo pipefail

export PGDATABASE=t_upgrade
createdb "$PGDATABASE"
psql() { command psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
same() { [ "$1" = "$2" ] || { printf '%s\n     got: %s\nexpected: %s\n' "$3" "$1" "$2"; exit 1; }; }
psql -f sql/tacho.sql >/dev/null
psql -c "create role upgrade_reader" -c "select tacho.grant_reader('upgrade_reader')" >/dev/null
# it may call one function, and no more
psql -c "create role upgrade_caller" -c "grant usage on schema tacho to upgrade_caller" -c "grant execute on function tacho.take_sample() to upgrade_caller"
psql >/dev/null <<-END
	create table line as
	select t as time, p as pid, 'IO' as wait_event_type, 'Read' as wait_event, 7 as query_id, 'table t' as query_text, case when p = 1 then 2 end as blocked_by
	from generate_series(timestamptz '2026-03-01 20:00+00', '2026-03-01 22:10+00', '10 seconds') t, generate_series(1, 2) p;
	select tacho.configure_ring(6);
	select tacho.configure('period', '10 minutes'), tacho.configure('vcpus', '4');
	select tacho.import_sessions('line', '10 seconds');
	select tacho._pack(tacho._ms('2026-03-01 22:10+00')), tacho._roll_up_hours(tacho._ms('2026-03-01 22:10+00'));
	select tacho.rotate(true);
	-- as an older version was: without a column that this one has
	update tacho.setting set version = '0.0.9';
	alter table tacho.setting drop column record_starts;
	alter table tacho.setting drop column utility_literals;
	insert into tacho.statement (query_id, toplevel, user_oid, database_oid) values (7, true, 10, 5);
	insert into tacho.statement_counters select id, 1772395500000, 60000, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 from tacho.statement;
	alter table tacho.statement_counters rename column pass_ms to minute_ms;
	create function tacho.gone() returns integer language sql return 1;
	revoke all on function tacho.gone() from public;
	grant execute on function tacho.gone() to upgrade_caller, upgrade_reader;
	create type tacho.gone_kind as (x integer);
	create function tacho.gone_of(kind tacho.gone_kind) returns integer language sql return 1;
	revoke all on function tacho.gone_of(tacho.gone_kind) from public;
	grant execute on function tacho.gone_of(tacho.gone_kind) to upgrade_caller;
	-- ... and masked no numbers
	alter function tacho._without_constants(text) rename to _literals_only;
	insert into tacho.text (query_id, body) select 8, format('call f(%s, ''secret'')', i) from generate_series(1, 3) i;
	insert into tacho.text (query_id, body) values (8, 'select 4711');
END
answers() {
	local window="'2026-03-01 19:00+00', '2026-03-01 23:00+00'"
	psql -c "select * from tacho.top('query_id', $window, by => 'wait_event')" \
		-c "select * from tacho.samples($window, n => 3)" \
		-c "select * from tacho.blocking(since => '2026-03-01 20:00+00', until => '2026-03-01 23:00+00')" \
		-c "select node, period, vcpus from tacho.setting" \
		-c "select slot, is_current, since_ms, generation from tacho.ring order by slot"
}
before=$(answers)

# what stands in its way leaves everything as it was
psql >/dev/null <<-END
	create view mine as select * from tacho.periods();
	create function count_of(c tacho.counter) returns bigint language sql return c.value;
	create table noted (
		status tacho.tick,
		at bigint default tacho._ms(now()) check (tacho._time(at) is not null)
	);
	create publication everything for table tacho.marker;
END
command psql -qAtX -f sql/upgrade.sql >/dev/null 2>refused.err || true
same "$(sed -n 's/.*ERROR:  //p' refused.err)" "other objects depend on schema tacho" "objects of others"
same "$(sed -n 's/.*DETAIL:  //p' refused.err)" \
	"They are column status of table public.noted, constraint noted_at_check on table public.noted, default value for column at of table public.noted, function public.count_of(tacho.counter), publication of table tacho.marker in publication everything, view public.mine." \
	"all of them are named"
same "$(answers)" "$before" "after an upgrade that failed"
psql -c "drop view mine" -c "drop function count_of" -c "drop table noted" -c "drop publication everything" 2>/dev/null

psql -f sql/upgrade.sql >/dev/null 2>upgrade.err || { cat upgrade.err; exit 1; }
same "$(sed -n 's/.*DETAIL:  //p' upgrade.err)" "They are EXECUTE on tacho.gone() to upgrade_caller, EXECUTE on tacho.gone_of(tacho.gone_kind) to upgrade_caller." "grants on what is gone"
same "$(answers)" "$before" "after the upgrade"
same "$(psql -c "select version <> '0.0.9', record_starts from tacho.setting")" "t|t" "the version, and its new column"
# shellcheck disable=SC2016 # parameters of SQL
same "$(psql -c "select body from tacho.text where query_id = 8")" $'call f($1, $2)\nselect $1' "constants are gone"
same "$(psql -c "set role upgrade_reader" -c "select count(*) from tacho.periods('2026-03-01 22:00+00')")" 6 "readers stay readers"
same "$(psql -c "select pass_ms, elapsed_ms, calls from tacho.statement_counters")" "1772395500000|60000|3" "counters of statements"
may() { psql -c "select string_agg(k.relname, ',' order by k.relname) from pg_class k where k.relnamespace = 'tacho'::regnamespace and has_table_privilege('$1', k.oid, 'select')"; }
same "$(may upgrade_caller)" "" "a caller of one function reads no table"
same "$(psql -c "select string_agg(p.proname, ',') from pg_proc p where p.pronamespace = 'tacho'::regnamespace and has_function_privilege('upgrade_caller', p.oid, 'execute')")" take_sample "but calls it"
same "$(psql -c "select detail from tacho.markers(now() - interval '1 hour') where detail like 'upgraded%'" | cut -d' ' -f1-3)" "upgraded from 0.0.9" "a marker"
same "$(psql -c "select to_regnamespace('tacho_old')")" "" "nothing is left of the old one"
psql -c "update tacho.setting set enabled = true" -c "delete from tacho.hot" >/dev/null
same "$(psql -c "select replace(tacho.take_sample(), 'late', 'ok')" -c "select tacho.rotate(true)")" $'ok\nrotated' "and it goes on"

# the texts that this version has recorded have no constants: they are not read again
psql -c "insert into tacho.text (query_id, body) values (9, 'call f(1)')"
psql -f sql/upgrade.sql >/dev/null
same "$(psql -c "select body from tacho.text where query_id = 9")" "call f(1)" "texts of this version are not masked again"
psql -c "drop owned by upgrade_reader, upgrade_caller" -c "drop role upgrade_reader, upgrade_caller"
