-- Resets all statistics, some, and extremes only.
create extension tacho;
select oid as dbid from pg_database where datname = current_database() \gset
select oid as userid from pg_roles where rolname = current_user \gset
create view public.seen as
	select query, calls from tacho.statements
		where dbid = (select oid from pg_database where datname = current_database())
			and query ~ 'as (kept|gone)'
			and query !~ 'tacho' order by query collate "C";

select tacho.statements_reset() is not null as reset;
select 1 as kept;
select 1, 1 as gone;
select queryid as gone from tacho.statements where query = 'select $1, $2 as gone' \gset
select tacho.statements_reset(:userid, :dbid, :gone) is not null as reset;
select * from seen;
-- nothing matches
select tacho.statements_reset(:userid, :dbid, 1) is not null as reset;
select tacho.statements_reset(1, 0, 0) is not null as reset;
select * from seen;
-- null does nothing
select tacho.statements_reset(null);
select * from seen;
select tacho.statements_reset(0, :dbid, 0) is not null as reset;
select * from seen;

-- extremes only: totals, mean and deviation stay
select 1 as kept;
select 2 as kept;
select 3 as kept;
create table public.before as select * from tacho.statements where query = 'select $1 as kept';
select tacho.statements_reset(:userid, :dbid, queryid, true) as at from public.before \gset
select s.calls, s.total_exec_time = b.total_exec_time as total,
		s.mean_exec_time = b.mean_exec_time as mean,
		s.stddev_exec_time = b.stddev_exec_time as stddev,
		s.min_exec_time, s.max_exec_time,
		s.stats_since = b.stats_since as since,
		s.minmax_stats_since = :'at' as minmax_since,
		i.stats_reset < :'at' as info
	from tacho.statements s join public.before b using (queryid), tacho.statements_info i;
-- the next execution is minimum and maximum, although there were calls before
select 4 as kept;
select s.calls, s.min_exec_time > 0 as min, s.min_exec_time = s.max_exec_time as same,
		s.total_exec_time - b.total_exec_time - s.min_exec_time < 1e-9 as last
	from tacho.statements s join public.before b using (queryid);
drop table public.before;

-- all affected entries get the time that the function returns
select 1, 1 as gone;
select tacho.statements_reset(0, :dbid, 0, true) as at \gset
select count(*) > 2 as several, bool_and(minmax_stats_since = :'at') as same
	from tacho.statements where dbid = :dbid and stats_since < :'at';

-- a text is as old as its entry; texts can be selected by age
select text_since = stats_since as same from tacho.statements where query = 'select $1 as kept';
select count(*) from tacho.statements(false) where query is not null;
select now() as now \gset
select 1, 1, 2 as newer;
select query from tacho.statements(true, :'now') where query is not null and query !~ 'tacho|now';

drop view public.seen;
drop extension tacho;
