-- A counter that a major version of PostgreSQL lacks is null; no other is.
create extension tacho;
select current_setting('server_version_num')::int / 10000 as major \gset
create table public.things (n int);
insert into things values (1), (2);
select tacho.statements_reset() is not null as reset;

set plan_cache_mode = force_generic_plan;
prepare thing (int) as select n from things where n = $1;
execute thing (1);
execute thing (2);
create view public.thing as
	select * from tacho.statements where query ~ '^prepare thing';

-- as in the columns of pg_stat_statements of each major
create table public.added (name text, major int);
insert into added values
	('local_blk_read_time', 17), ('local_blk_write_time', 17),
	('jit_deform_count', 17), ('jit_deform_time', 17),
	('wal_buffers_full', 18),
	('parallel_workers_to_launch', 18), ('parallel_workers_launched', 18),
	('generic_plan_calls', 19), ('custom_plan_calls', 19);
select name, value is null as is_null, :major >= major as is_known
	from added left join (select key, value #>> '{}' as value
			from thing, jsonb_each(to_jsonb(thing))) s on key = name
	where (value is null) <> (:major < major);
select key
	from thing, jsonb_each(to_jsonb(thing))
	where value = 'null' and key not in (select name from added)
	order by key collate "C";

-- the others are counted
select calls, rows, shared_blks_hit > 0 as blocks,
		case when :major >= 19
			then generic_plan_calls = 2 and custom_plan_calls = 0
			else generic_plan_calls is null and custom_plan_calls is null
		end as origins
	from thing;


deallocate thing;
drop view thing;
drop table things, added;
drop extension tacho;
