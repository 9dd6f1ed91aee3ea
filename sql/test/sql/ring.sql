-- Rotation: nothing is lost before it is summed up, answers that hour rows can give
-- stay the same, and all others are errors.
create table line as
select t as time, 100 + s as pid, 'db' || s % 2 as database, 'IO' as wait_event_type, 'Read' || (extract(epoch from t)::bigint / 60 + s) % 3 as wait_event, s as query_id
from generate_series(timestamptz '2026-03-01 20:30+00', '2026-03-01 23:29:50+00', '10 seconds') t,
	generate_series(1, 3) s;
create function test.load(since timestamptz, until timestamptz)
returns bigint language plpgsql as $$
begin
	create temp table piece on commit drop as select * from line where time >= since and time < until;
	perform tacho.import_sessions('piece', '10 seconds');
	drop table piece;
	return tacho._pack(tacho._ms(until));
end $$;
select test.load('2026-03-01 20:30+00', '2026-03-01 21:30+00');
select test.equal(tacho.rotate(), 'rotated', 'the first partition is older than a day');
select test.equal(tacho.rotate(), 'not due', 'an empty partition is not rotated');
select test.load('2026-03-01 21:30+00', '2026-03-01 22:10+00');
select test.equal(tacho.rotate(true), 'rotated', 'a rotation may be forced');
select test.load('2026-03-01 22:10+00', '2026-03-01 22:50+00');
select test.equal(tacho.rotate(true), 'rotated', 'into the last partition');
select test.load('2026-03-01 22:50+00', '2026-03-01 23:30+00');

create table before as
select 'top' as q, test.rows($q$select key, avg_aas, peak_aas, p99_aas, peak_sessions from tacho.top('wait_event', '2026-03-01 20:30+00', '2026-03-01 23:10+00')$q$) as rows
union all
select 'pairs', test.rows($q$select key, by_key, avg_aas, peak_aas, peak_sessions from tacho.top('query_id', '2026-03-01 20:00+00', '2026-03-01 23:00+00', by => 'wait_event', bucket => '1 hour')$q$)
union all
select 'aas', test.rows($q$select avg_aas, peak_aas, p99_aas, peak_sessions, ticks_expected, ticks_observed, coverage_pct from tacho.aas('2026-03-01 20:40+00', '2026-03-01 22:40:30+00')$q$)
union all
select 'timeline', test.rows($q$select bucket_start, key, avg_aas, peak_sessions from tacho.timeline('2026-03-01 20:25+00', '2026-03-01 22:00+00', '5 minutes', by => 'wait_event')$q$);

select test.equal(tacho.rotate(true), 'not summed up', 'history that is not summed up stays');
select test.equal((select min(sample_time)::text from tacho.samples('2026-03-01', '2026-03-02', n => null)), '2026-03-01 20:30:00+00', 'all of it');
select tacho._roll_up_hours(tacho._ms('2026-03-01 23:30+00'));
select test.equal(tacho.rotate(true), 'rotated', 'a partition that is summed up is rotated');
select test.equal((select min(sample_time)::text from tacho.samples('2026-03-01 21:30+00', '2026-03-02', n => null)), '2026-03-01 21:30:00+00', 'the oldest partition is empty');

create procedure test.same_as_before(what text) language plpgsql as $$
begin
	perform test.equal(test.rows($q$select key, avg_aas, peak_aas, p99_aas, peak_sessions from tacho.top('wait_event', '2026-03-01 20:30+00', '2026-03-01 23:10+00')$q$),
		(select rows from before where q = 'top'), what || ': top');
	perform test.equal(test.rows($q$select key, by_key, avg_aas, peak_aas, peak_sessions from tacho.top('query_id', '2026-03-01 20:00+00', '2026-03-01 23:00+00', by => 'wait_event', bucket => '1 hour')$q$),
		(select rows from before where q = 'pairs'), what || ': pairs');
	perform test.equal(test.rows($q$select avg_aas, peak_aas, p99_aas, peak_sessions, ticks_expected, ticks_observed, coverage_pct from tacho.aas('2026-03-01 20:40+00', '2026-03-01 22:40:30+00')$q$),
		(select rows from before where q = 'aas'), what || ': aas');
	perform test.equal(test.rows($q$select bucket_start, key, avg_aas, peak_sessions from tacho.timeline('2026-03-01 20:25+00', '2026-03-01 22:00+00', '5 minutes', by => 'wait_event')$q$),
		(select rows from before where q = 'timeline'), what || ': timeline');
end $$;
call test.same_as_before('one partition gone');

select test.equal(test.error($q$select * from tacho.aas('2026-03-01 20:40+00', '2026-03-01 22:00+00', database => 'db1', wait_event => 'Read1')$q$),
	'22023: history before 2026-03-01 21:29:50+00 is kept by hour', 'two filters need samples');
select test.equal(test.error($q$select * from tacho.aas('2026-03-01 20:40:30+00', '2026-03-01 22:00+00')$q$),
	'22023: history before 2026-03-01 21:29:50+00 is kept by hour', 'half a minute needs samples');
select test.equal(test.error($q$select * from tacho.aas('2026-03-01 20:40+00', '2026-03-01 22:00+00', '10 seconds')$q$),
	'22023: history before 2026-03-01 21:29:50+00 is kept by hour', 'buckets of seconds need samples');
select test.equal(test.error($q$select * from tacho.top('wait_event', '2026-03-01 20:40+00', '2026-03-01 22:00+00', scope => 'all')$q$),
	'22023: history before 2026-03-01 21:29:50+00 is kept by hour', 'scopes other than load need samples');
select test.equal(test.error($q$select * from tacho.samples('2026-03-01 20:40+00', '2026-03-01 22:00+00')$q$),
	'22023: samples before 2026-03-01 21:29:50+00 are not kept', 'samples are gone');
select test.equal((select source from tacho.aas('2026-03-01 21:40+00', '2026-03-01 22:00+00', database => 'db1', wait_event => 'Read1')), 'raw', 'behind the boundary all goes');
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:40+00', '2026-03-01 20:50+00', database => 'db1')), '2.0000', 'one filter is answered by hours');
select test.equal((select avg_aas::text || ' ' || source from tacho.aas('2026-03-01 20:40+00', '2026-03-01 21:00+00', query_id => '1,3')), '2.0000 hour', 'a filter with a list is answered by hours');
select test.equal((select source from tacho.aas('2026-03-01 18:00+00', '2026-03-01 19:00+00', database => 'db1', pid => '1')), 'none', 'before all history there is nothing');

-- packs whose session would exceed the int2 range are cut by ticks
create table wide as
select t as time, s as pid
from generate_series(timestamptz '2026-03-02 00:00+00', '2026-03-02 00:00:59+00', '1 second') t, generate_series(1, 1500) s;
select tacho.import_sessions('wide');
create table wide_before as select * from tacho.aas('2026-03-02 00:00+00', '2026-03-02 00:01+00');
select test.equal((select peak_sessions::text from wide_before), '1500', 'most sessions');
select test.equal(tacho._pack(tacho._ms('2026-03-02 00:01+00'))::text, '3', '90,000 positions are three packs');
select test.equal((select aas::text from tacho.aas('2026-03-02 00:00+00', '2026-03-02 00:01+00') aas), (select w::text from wide_before w), 'three packs have the same sums');

-- words go with the last hour row that has them
select test.equal((select count(*)::text from tacho.word), (select count(distinct key)::text from tacho.hour_key), 'every word has rows');
insert into tacho.word (value) values ('of no row');
select tacho._forget(tacho._ms('2026-03-02 12:07+00'));
select test.equal((select count(*)::text from tacho.word where value = 'of no row'), '1', 'once a day');
select tacho._forget(tacho._ms('2026-03-02 03:07+00'));
select test.equal((select count(*)::text from tacho.word where value = 'of no row'), '0', 'a word without rows is deleted');
select test.equal((select count(*)::text from tacho.word), (select count(distinct key)::text from tacho.hour_key), 'others stay');
select tacho._forget(tacho._ms('2028-03-02 03:07+00'));
select test.equal((select count(*)::text from tacho.word), '0', 'all of them go with their hours');
