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
psql >/dev/null <<-END
	create table line as
	select t as time, p as pid, 'IO' as wait_event_type, 'Read' as wait_event, 7 as query_id, 'select 7' as query_text, case when p = 1 then 2 end as blocked_by
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
	insert into tacho.text (query_id, body) select 8, format('call f(%s, ''secret'')', i) from generate_series(1, 3) i;
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
psql -c "create view mine as select * from tacho.periods()"
same "$(command psql -qAtX -f sql/upgrade.sql 2>&1 | sed -n 's/.*ERROR:  //p')" "views depend on schema tacho" "views of others"
same "$(answers)" "$before" "after an upgrade that failed"
psql -c "drop view mine"

psql -f sql/upgrade.sql >/dev/null
same "$(answers)" "$before" "after the upgrade"
same "$(psql -c "select version <> '0.0.9', record_starts from tacho.setting")" "t|t" "the version, and its new column"
# shellcheck disable=SC2016 # parameters of SQL
same "$(psql -c "select body from tacho.text where query_id = 8")" 'call f($1, $2)' "constants of utility statements are gone"
same "$(psql -c "set role upgrade_reader" -c "select count(*) from tacho.periods('2026-03-01 22:00+00')")" 6 "readers stay readers"
same "$(psql -c "select detail from tacho.markers(now() - interval '1 hour') where detail like 'upgraded%'" | cut -d' ' -f1-3)" "upgraded from 0.0.9" "a marker"
same "$(psql -c "select to_regnamespace('tacho_old')")" "" "nothing is left of the old one"
psql -c "update tacho.setting set enabled = true" -c "delete from tacho.hot" >/dev/null
same "$(psql -c "select replace(tacho.take_sample(), 'late', 'ok')" -c "select tacho.rotate(true)")" $'ok\nrotated' "and it goes on"
psql -c "drop owned by upgrade_reader" -c "drop role upgrade_reader"
