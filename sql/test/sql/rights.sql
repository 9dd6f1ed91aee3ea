-- Nothing for PUBLIC; grant_reader() gives reading, all of it and no more.
create role stranger_r;
create role reader_r;
select test.equal((
	select string_agg(p.oid::regprocedure::text, ', ')
	from pg_proc p
	where p.pronamespace = 'tacho'::regnamespace and has_function_privilege('stranger_r', p.oid, 'execute')), null, 'functions of PUBLIC');
select test.equal((
	select string_agg(k.oid::regclass::text, ', ')
	from pg_class k
	where k.relnamespace = 'tacho'::regnamespace and k.relkind in ('r', 'p', 'v')
		and has_table_privilege('stranger_r', k.oid, 'select, insert, update, delete, truncate')), null, 'tables of PUBLIC');
select test.equal(has_schema_privilege('stranger_r', 'tacho', 'usage')::text, 'false', 'the schema');

create table line as
select timestamptz '2026-03-01 20:00+00' + n * interval '1 minute' as time, 1 as pid, 'shop' as database, 2 as query_id, 'select 1' as query_text
from generate_series(0, 150) n;
select tacho.import_sessions('line', '1 minute');
select tacho._pack(tacho._ms('2026-03-01 22:20+00')), tacho._roll_up_hours(tacho._ms('2026-03-01 22:20+00'));
select tacho.grant_reader('reader_r');
grant usage on schema test to reader_r;
set role reader_r;
select test.equal((select source || ' ' || avg_aas from tacho.aas('2026-03-01 20:00+00', '2026-03-01 22:30+00')), 'raw, hour 1.0000', 'aas');
select test.equal((select count(*)::text from tacho.periods('2026-03-01 22:30+00', database => 'shop')), '6', 'periods');
select test.equal((select query_text from tacho.top('query_id', '2026-03-01 20:00+00', '2026-03-01 22:30+00', by => 'blocked_by')), 'select 1', 'top');
select test.equal((select count(*)::text from tacho.timeline('2026-03-01 20:00+00', '2026-03-01 22:30+00', '1 hour', 'wait_event', tz => 'Europe/Berlin')), '3', 'timeline');
select test.equal((select count(*)::text from tacho.chart('2026-03-01 20:00+00', '2026-03-01 22:30+00', '1 hour')), '4', 'chart');
select test.equal((select count(*)::text from tacho.samples('2026-03-01 20:00+00', '2026-03-01 22:30+00', wait_event => '!ClientRead')), '100', 'samples');
select test.equal((select count(*)::text from tacho.sessions(since => '2026-03-01 20:00+00', until => '2026-03-01 22:30+00')), '1', 'sessions');
select test.equal((select count(*)::text from tacho.blocking(since => '2026-03-01 20:00+00', until => '2026-03-01 22:30+00')), '0', 'blocking');
select test.equal((select count(*)::text from tacho.compare('query_id', '2026-03-01 20:00+00', '2026-03-01 21:00+00', '2026-03-01 21:00+00', '2026-03-01 22:00+00')), '1', 'compare');
select test.equal((select report ->> 'tree_left_out' from tacho.report(at => '2026-03-01 22:00+00', query_id => '2')), '0', 'report');
select test.equal((select count(*)::text from tacho.summary('2026-03-01 20:00+00', '2026-03-01 22:30+00')), '16', 'summary');
select test.equal((select count(*)::text from tacho.markers('2026-03-01 20:00+00', '2026-03-01 22:30+00')), '0', 'markers');
select test.equal((select count(*) > 15 from tacho.status())::text, 'true', 'status');
select test.equal((select count(*)::text from tacho.statements_history()), '0', 'statements_history');
select test.equal(test.error('select tacho.take_sample()'), '42501: permission denied for function take_sample', 'no sampling');
select test.equal(test.error('select tacho.rotate()'), '42501: permission denied for function rotate', 'no rotation');
select test.equal(test.error('delete from tacho.hour_tick'), '42501: permission denied for table hour_tick', 'no writing');
select test.equal(test.error($$lock table tacho.mutex_sampler in exclusive mode$$), '42501: permission denied for table mutex_sampler', 'no stopping of the sampler');
reset role;
select tacho.revoke_reader('reader_r');
set role reader_r;
select test.equal(test.error('select tacho.aas()'), '42501: permission denied for schema tacho', 'taken back');
reset role;
select test.equal(test.error(format('select tacho.revoke_reader(%L)', current_user)), format('22023: role "%s" owns tacho', current_user), 'the owner stays');
revoke all on schema test from reader_r;

-- every object has a comment
select test.equal((
	select string_agg(p.oid::regprocedure::text, ', ')
	from pg_proc p
	where p.pronamespace = 'tacho'::regnamespace and obj_description(p.oid, 'pg_proc') is null), null, 'functions without comment');
select test.equal((
	select string_agg(k.oid::regclass::text, ', ')
	from pg_class k
	where k.relnamespace = 'tacho'::regnamespace and k.relkind in ('r', 'p', 'S') and not k.relispartition
		and k.relname !~ '_id_seq$' and obj_description(k.oid, 'pg_class') is null), null, 'tables without comment');
-- and looks up names in pg_catalog only
select test.equal((
	select string_agg(p.oid::regprocedure::text, ', ')
	from pg_proc p
	where p.pronamespace = 'tacho'::regnamespace and p.prosqlbody is null and p.prokind in ('f', 'p') and p.proname <> 'run_sampler'
		and not coalesce(array_to_string(p.proconfig, ' '), '') like '%search_path=pg_catalog, pg_temp%'), null, 'functions without pinned search_path');

select test.equal(test.error('select tacho.uninstall()'), '22023: uninstalling removes the whole history', 'uninstall asks');
select test.equal(tacho.uninstall('yes'), 'removed', 'uninstall');
select test.equal(to_regnamespace('tacho')::text, null, 'nothing stays');
drop role stranger_r, reader_r;
