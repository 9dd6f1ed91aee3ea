-- Statement history: differences by minute, a reset is not a negative number.
\getenv preload TACHO_PRELOAD
select :'preload' like '%pg_stat_statements%' as has_pgss \gset
\if :has_pgss
create schema elsewhere;
create extension pg_stat_statements schema elsewhere;
create table work (i integer);
select elsewhere.pg_stat_statements_reset();
insert into work select 1;
select test.equal(tacho._record_statements(tacho._ms('2026-03-01 20:00+00'))::text, '0', 'the first time it only looks');
insert into work select 2;
insert into work select 3;
select test.equal((tacho._record_statements(tacho._ms('2026-03-01 20:01+00')) > 0)::text, 'true', 'the second time it counts');
select elsewhere.pg_stat_statements_reset();
insert into work select 4;
select tacho._record_statements(tacho._ms('2026-03-01 20:02+00'));
select test.equal(
	test.rows($$
		select h.bucket_start, h.calls, h.rows
		from tacho.statements_history('2026-03-01 20:00+00', '2026-03-01 20:03+00', '1 minute') h
		where h.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')
			and h.database = current_database()
		order by 1$$),
	'("2026-03-01 20:01:00+00",2,2) ("2026-03-01 20:02:00+00",1,1)', 'calls and rows by minute, across a reset');
select test.equal((select sum(calls)::text
	from tacho.statements_history('2026-03-01 20:00+00', '2026-03-01 20:03+00', database => current_database())
	where query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')), '3', 'whole window');

-- texts of query ids that were sampled
create table line as
select timestamptz '2026-03-01 20:00+00' as time, 1 as pid, (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%') as query_id;
select tacho.import_sessions('line');
select test.equal(tacho._find_texts()::text, '1', 'a text is looked up');
select test.equal(tacho._find_texts()::text, '0', 'once');
select test.equal((select query_text from tacho.top('query_id', '2026-03-01 20:00+00', '2026-03-01 20:01+00')), 'insert into work select $1', 'and shown');
select tacho._forget_statements(tacho._ms('2026-03-20'));
select test.equal((select count(*)::text from tacho.statement_counters), '0', 'old statistics go');
drop extension pg_stat_statements;
create function public.pg_stat_statements(boolean) returns table (queryid bigint, query text) language sql as 'select 1::bigint, ''spoofed''::text';
select test.equal(tacho._pgss(), null, 'a view of that name is not trusted');
\endif
