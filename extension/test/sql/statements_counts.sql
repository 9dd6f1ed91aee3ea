-- Counters of each kind of statement. Every value is exact.
create extension tacho;
set tacho.statements_track = 'top';
set tacho.statements_track_utility = on;
create view public.seen as
	select query, toplevel, plans, calls, rows, errors, cancellations,
			last_sqlstate
		from tacho.statements(true) s
		where s.userid = (select oid from pg_roles where rolname = current_user)
			and s.dbid = (select oid from pg_database where datname = current_database())
			and query !~ 'tacho|seen|regress'
		order by query collate "C", toplevel;
create table public.numbers (n int primary key);

-- constants make one statement, shape makes two
select tacho.statements_reset() is not null as reset;
select 1 as one;
select 2 as one;
select n from numbers where n = 1;
insert into numbers select generate_series(1, 10);
select n from numbers where n between 3 and 5;
update numbers set n = n + 100 where n > 7;
delete from numbers where n > 100;
select count(*) from numbers;
/* a comment stays */ select /* inside */ 1 as commented;
select * from seen;

-- several statements in one string
select tacho.statements_reset() is not null as reset;
select 1 as first\; select 'two' as second\; select 3.0 as third;
select * from seen;

-- prepared statements are counted, EXECUTE and PREPARE are not
select tacho.statements_reset() is not null as reset;
prepare known (int) as select n from numbers where n = $1 or n = 2;
execute known (1);
execute known (3);
select * from seen where query !~ '^deallocate';
deallocate known;

-- a failed execution is no call; its error is counted
select tacho.statements_reset() is not null as reset;
select 1 / (n - 1) from numbers where n = 1;
select n / 0 from numbers where n = 2;
select n / 0 from numbers where n = 1;
set statement_timeout = '1s';
select pg_sleep(10);
reset statement_timeout;
lock table absent;
select query, calls, errors, cancellations, last_sqlstate from seen
	where errors + cancellations > 0;

-- functions: inside of them only with track = all
create function public.nested(int) returns int language plpgsql as
'begin perform count(*) from numbers where n > $1; return $1; end';
select tacho.statements_reset() is not null as reset;
select nested(1);
select query, toplevel, calls, rows from seen;
set tacho.statements_track = 'all';
select tacho.statements_reset() is not null as reset;
select nested(2);
select nested(3);
select query, toplevel, calls, rows from seen;

-- an error inside a block that catches it belongs to the inner statement
select tacho.statements_reset() is not null as reset;
do $$ begin perform 1 / (n - 1) from numbers where n = 1; exception when division_by_zero then null; end $$;
select query ~ '^do' as outer, toplevel, calls, errors, last_sqlstate from seen;
set tacho.statements_track = 'none';
select tacho.statements_reset() is not null as reset;
select 1 as untracked;
select * from seen;
set tacho.statements_track = 'top';

-- utility commands
set tacho.statements_track_utility = off;
select tacho.statements_reset() is not null as reset;
create table public.gone (a int);
drop table public.gone;
select query from seen;
set tacho.statements_track_utility = on;
copy numbers to program 'cat >/dev/null';
begin;
declare pages cursor for select n from numbers;
fetch 2 from pages;
fetch 2 from pages;
close pages;
commit;
create table public.made as select n from numbers where n < 4;
select regexp_replace(query, '\$?\d', 'N', 'g') as query, calls, rows
	from seen where query !~ '^(set|select)';
drop table public.made;

-- planning
set tacho.statements_track_planning = on;
select tacho.statements_reset() is not null as reset;
select 1 as planned;
select 2 as planned;
select query, plans, calls from seen where plans > 0 and query ~ 'planned';
select total_plan_time > 0 as total, min_plan_time > 0 as min, max_plan_time >= mean_plan_time as max
	from tacho.statements where query = 'select $1 as planned';
reset tacho.statements_track_planning;

-- the histogram holds every call; percentiles lie between the extremes
select tacho.statements_reset() is not null as reset;
select pg_sleep(0.002) from generate_series(1, 1);
select calls = (select sum(b) from unnest(histogram) b) as all_calls,
		array_length(histogram, 1) as buckets,
		p50_exec_time between min_exec_time and max_exec_time as p50,
		p99_exec_time between p50_exec_time and max_exec_time as p99,
		mean_exec_time = total_exec_time / calls as mean, stddev_exec_time
	from tacho.statements where query ~ '^select pg_sleep';

-- ... also after a reset of the extremes, which then cover later executions only
select tacho.statements_reset() is not null as reset;
select pg_sleep(0.05);
select tacho.statements_reset(0, 0, 0, true) is not null as reset;
select pg_sleep(0.001);
select calls, p99_exec_time > 30 as p99
	from tacho.statements where query ~ '^select pg_sleep';

-- other views show the EXECUTE, as the server does; it is not counted
prepare looking as select query_id from pg_stat_activity where pid = pg_backend_pid();
execute looking \gset
select :query_id <> 0 as reported, count(*) from tacho.statements where queryid = :query_id;
deallocate looking;

drop view public.seen;
drop function public.nested;
drop table public.numbers;
drop extension tacho;
