-- Statement history: differences by minute; a reset does not make negative numbers.
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
	'("2026-03-01 20:00:00+00",2,2) ("2026-03-01 20:01:00+00",1,1)', 'calls and rows by minute, across a reset');
select test.equal((select sum(calls)::text
	from tacho.statements_history('2026-03-01 20:00+00', '2026-03-01 20:03+00', database => current_database())
	where query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')), '3', 'whole window');
-- a pass counts in the minute with the middle of its interval
select tacho._record_statements(tacho._ms('2026-03-01 20:04:01+00'));
insert into work select 5;
select tacho._record_statements(tacho._ms('2026-03-01 20:05:01+00'));
select test.equal(
	test.rows($$
		select h.bucket_start, h.calls
		from tacho.statements_history('2026-03-01 20:03+00', '2026-03-01 20:07+00', '1 minute') h
		where h.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')$$),
	'("2026-03-01 20:04:00+00",1)', 'the middle is 20:04:31');
select test.equal(
	test.rows($$
		select h.calls
		from tacho.statements_history('2026-03-01 20:04:31+00', '2026-03-01 20:04:32+00') h
		where h.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')$$),
	'(1)', 'a window that has the middle');
select test.equal(
	test.rows($$
		select e.time, e.elapsed_ms, e.calls
		from tacho.export_statements('2026-03-01 20:05+00') e
		where e.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%')$$),
	'("2026-03-01 20:05:01.000",60000,1)', 'the time of the pass is exported');

-- a role with another name is another row, without a call of its earlier life
create role t_statements_before;
grant all on work to t_statements_before;
set role t_statements_before;
insert into work select 6;
insert into work select 7;
reset role;
select tacho._record_statements(tacho._ms('2026-03-01 20:06:01+00'));
alter role t_statements_before rename to t_statements_after;
set role t_statements_after;
insert into work select 8;
reset role;
select tacho._record_statements(tacho._ms('2026-03-01 20:07:01+00'));
revoke all on work from t_statements_after;
drop role t_statements_after;
select tacho._record_statements(tacho._ms('2026-03-01 20:08:01+00'));
select test.equal(
	test.rows($$
		select h.username, h.calls
		from tacho.statements_history('2026-03-01 20:05+00', '2026-03-01 20:09+00') h
		where h.username ~ '^t_statements' and h.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%' limit 1)
		order by 1$$),
	'(t_statements_after,1) (t_statements_before,2)', 'the role as it was called then');
select test.equal(test.rows($$select s.username from tacho.statement_last l join tacho.statement s on s.id = l.statement
		where s.username ~ '^t_statements' and s.query_id = (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%' limit 1)$$),
	'(t_statements_after)', 'a role that was dropped keeps its name');

-- an entry that began again counts as a whole, even if a counter is greater than
-- before; no difference is negative
create function test.pass(minute integer) returns void language sql as
$$ select tacho._record_statements(tacho._ms('2026-03-02 00:00+00'::timestamptz + minute * interval '1 minute')) $$;
create function test.sleep(times integer, ms integer) returns void language plpgsql as
$$ begin for i in 1 .. times loop execute format('select pg_sleep(%s)', ms / 1000.0); end loop; end $$;
create table sleep (id bigint);
create function test.calls(minute integer) returns text language sql as
$$ select coalesce(sum(c.calls), 0) || case when least(min(c.calls), min(c.rows), min(c.total_exec_us), min(c.total_plan_us), min(c.io_us), min(c.shared_blks_hit),
		min(c.shared_blks_read), min(c.wal_bytes), 0) < 0 then ' negative' else '' end
	from tacho.statement_counters c
	join tacho.statement s on s.id = c.statement
	where c.pass_ms = tacho._ms('2026-03-02 00:00+00'::timestamptz + minute * interval '1 minute')
		and s.query_id = any (array(select id from sleep)) $$;
-- nested statements are entries of their own
set pg_stat_statements.track = 'all';
select elsewhere.pg_stat_statements_reset();
select test.sleep(1, 0);
insert into sleep select queryid from elsewhere.pg_stat_statements where query ~ '^select pg_sleep';
select test.equal((select count(*)::text from sleep), '1', 'the entry is found');
create function test.forget_one() returns void language sql as
$$ select elsewhere.pg_stat_statements_reset(userid, dbid, queryid) from elsewhere.pg_stat_statements where queryid in (select id from sleep) $$;
select test.sleep(2, 60), test.pass(0);
select elsewhere.pg_stat_statements_reset();
select test.sleep(3, 0), test.pass(1);
select test.equal(test.calls(1), '3', 'reset: as many calls, less time');
select elsewhere.pg_stat_statements_reset();
select test.sleep(9, 60), test.pass(2);
select test.equal(test.calls(2), '9', 'reset: ahead in everything');
select test.forget_one();
select test.sleep(30, 20), test.pass(3);
select test.equal(test.calls(3), '30', 'made anew: ahead in all sums, but the longest is shorter');
select test.forget_one(), test.pass(4);
select test.equal(test.calls(4), '0', 'gone');
select test.sleep(40, 12), test.pass(5);
select test.equal(test.calls(5), '40', 'executions that the pass before did not show are counted');
select test.pass(6);
select test.equal(test.calls(6), '0', 'nothing ran');
-- an entry that does not run for longer than it is kept is still known
select test.sleep(1, 0), test.pass(7);
select tacho._forget_statements(tacho._ms('2026-03-20'));
select test.pass(8);
select test.equal(test.calls(8), '0', 'an execution that is forgotten is not counted again');
-- too long ago for an interval
select test.sleep(5, 0), test.pass(70);
select test.equal(test.calls(70), '0', 'the pass before is more than an hour ago');
select test.sleep(6, 0), test.pass(71);
select test.equal(test.calls(71), '6', 'the next one counts');
-- the sampler loses the right to see entries of other roles, and has it again
create role t_statements_r;
grant usage on schema tacho, test, elsewhere to t_statements_r;
grant all on all tables in schema tacho to t_statements_r;
grant all on all sequences in schema tacho to t_statements_r;
grant execute on all functions in schema tacho to t_statements_r;
create function test.pass(minutes int4range, sees_all boolean) returns void language plpgsql as $$
begin
	execute format(case when sees_all then 'grant pg_read_all_stats to %I' else 'revoke pg_read_all_stats from %I' end, 't_statements_r');
	set role t_statements_r;
	perform test.pass(i) from generate_series(lower(minutes), upper(minutes) - 1) i;
	reset role;
end $$;
select test.pass('[72,73)', true);
select test.sleep(7, 0), test.pass('[73,140)', false), test.pass('[140,141)', true);
select test.equal(test.calls(140), '0', 'hidden for more than an hour: old');
select test.sleep(9, 0), test.pass('[141,142)', false), test.sleep(10, 0), test.pass('[142,143)', true);
select test.equal(test.calls(142), '19', 'hidden for a minute: all of it');
select test.equal(test.rows($$select count(*) from tacho.statement_last l
		where not exists (select from tacho.statement s join elsewhere.pg_stat_statements p on p.queryid = s.query_id where s.id = l.statement)$$),
	'(0)', 'only entries that are shown are remembered');
reset pg_stat_statements.track;

-- texts of query ids that were sampled
insert into work select 5;
create table line as
select timestamptz '2026-03-01 20:00+00' as time, 1 as pid, (select queryid from elsewhere.pg_stat_statements where query like 'insert into work%') as query_id;
select tacho.import_sessions('line');
select test.equal(tacho._find_texts()::text, '1', 'a text is looked up');
select test.equal(tacho._find_texts()::text, '0', 'once');
select test.equal((select query_text from tacho.top('query_id', '2026-03-01 20:00+00', '2026-03-01 20:01+00')), 'insert into work select $1', 'the text is shown');
select tacho._forget_statements(tacho._ms('2026-03-20'));
select test.equal((select count(*)::text from tacho.statement_counters), '0', 'old statistics go');

-- a text that is too long is cut, and says so
do $$ begin execute 'select pi(), 1 /* ' || repeat('long ', 4000) || '*/'; end $$;
set pg_stat_statements.track = 'all';
do $$ begin execute 'select pi(), 1 /* ' || repeat('long ', 4000) || '*/'; end $$;
reset pg_stat_statements.track;
create function test.find_texts() returns text language sql as $$
	update tacho.watermark set ms = 0 where name = 'texts';
	select tacho._find_texts()::text $$;
create function test.run_query(query_id bigint) returns void language sql as $$
	insert into tacho.activity (slot, id, query_id)
	select r.slot, (select max(id) + 1 from tacho.activity), run_query.query_id from tacho.ring r where r.is_current $$;
select test.run_query(queryid) from elsewhere.pg_stat_statements where length(query) > 10000;
select test.equal(test.find_texts(), '1', 'the long text is found');
select test.equal(test.rows($$select length(body), right(body, 3) from tacho.text where length(body) > 1000$$), '(10003,...)', 'it is cut, visibly');

create table behind (i integer);
create table beside (i integer);
-- query ids that have no text do not stand before others
select test.run_query(queryid) from elsewhere.pg_stat_statements where query like 'create table behind%';
select test.run_query(i) from generate_series(1, 3000) i;
select test.find_texts(), test.find_texts(), test.find_texts(), test.find_texts();
select test.equal((select body from tacho.text where body like 'create table behind%'), 'create table behind (i integer)', 'a query behind many without a text has its text');
select test.equal(test.rows($$select tries, count(*) from tacho.text_missing where query_id between 1 and 3000 group by 1$$), '(1,3000)', 'the others were looked up once');
select test.equal(test.find_texts(), '0', 'nothing to do');
update tacho.text_missing set retry_ms = 0 where query_id = 2000;
select test.equal(test.find_texts(), '0', 'looked up again, later');
select test.equal(test.rows($$select query_id from tacho.text_missing where tries = 2$$), '(2000)', 'only this one');
update tacho.watermark set ms = tacho._ms(clock_timestamp()) + 60000 where name = 'texts';
update tacho.text_missing set retry_ms = 0 where query_id = 2001;
select test.equal(tacho._find_texts()::text, '0', 'a pause');
select test.equal(test.rows($$select tries from tacho.text_missing where query_id = 2001$$), '(1)', 'nothing is looked up in a pause');

-- texts are limited: what had no room is counted, and what nothing names makes room
update tacho.text_missing set retry_ms = tacho._ms(clock_timestamp()) + 3000000;
select test.run_query(queryid) from elsewhere.pg_stat_statements where query like 'create table beside%';
update tacho.setting set text_limit = (select count(*) from tacho.text);
select test.find_texts(), test.find_texts();
update tacho.text_missing set retry_ms = 0 where query_id not between 1 and 3000;
select test.find_texts();
select test.equal(test.rows($$select value from tacho.counter where name = 'texts without room'$$), '(1)', 'a query id without room is counted once');
select test.equal(test.rows($$select value from tacho.status() where metric = 'texts without room'$$), '(1)', 'status() says so');
insert into tacho.word (value) values ('4712');
insert into tacho.text (query_id, body)
values (4711, 'of no row'), (4712, 'of an hour'), (3, 'of a sample'), (0, 'autovacuum: of no row');
insert into tacho.statement (query_id, toplevel, user_oid, database_oid) values (4713, true, 10, 5);
insert into tacho.text (query_id, body) values (4713, 'of a statement');
update tacho.setting set text_limit = 2 * (select count(*) from tacho.text);
select tacho._forget_texts(0);
select test.equal((select count(*)::text from tacho.text where body like '%of no row'), '2', 'there is room');
update tacho.setting set text_limit = text_limit / 2;
select tacho._forget_texts(0);
select test.equal((select string_agg(body, ', ' order by body) from tacho.text where body ~ '(^| )of '), 'of a sample, of a statement, of an hour', 'texts that nothing names are deleted');
update tacho.text_missing set retry_ms = 0 where query_id not between 1 and 3000;
select test.equal(test.find_texts(), '1', 'and there is room');
drop owned by t_statements_r;
drop role t_statements_r;
drop extension pg_stat_statements;
create function public.pg_stat_statements(boolean) returns table (queryid bigint, query text) language sql as 'select 1::bigint, ''spoofed''::text';
select test.equal(tacho._pgss(), null, 'a view of that name is not trusted');
\endif
