-- Each function returns the values that one can count in a small history.
create extension tacho;
\getenv testdir PG_ABS_SRCDIR
\set history :testdir /data/history.psql
\set node 00000000000000a1
\i :history
set timezone = 'UTC';
set datestyle = 'ISO';
set intervalstyle = 'postgres';
\set window 'since => ''2026-01-05 12:00+00'', until => ''2026-01-05 12:00:20+00'', node => ''00000000000000a1'''

select period_start, period_end, source, grain, avg_aas, peak_aas, p99_aas,
		peak_sessions, backend_seconds
	from tacho.aas(:window, bucket => '10 seconds');
select vcpus, ticks_expected, ticks_observed, ticks_failed, coverage_pct
	from tacho.aas(:window);
select avg_aas, ticks_expected, ticks_observed, coverage_pct
	from tacho.aas(since => '2026-01-05 11:59:40+00', until => '2026-01-05 12:00:20+00', node => :'node');

-- without ticks a value is null, without active sessions it is zero
select source, avg_aas, peak_aas, p99_aas, ticks_observed
	from tacho.aas(since => '2026-01-05 10:00+00', until => '2026-01-05 10:01+00', node => :'node');
select source, avg_aas, peak_aas, p99_aas, ticks_observed
	from tacho.aas(:window, database => 'nowhere');

-- filters: one value, a list, null, negation, two dimensions, scope
select (select avg_aas from tacho.aas(:window, username => 'regress_bob')) as one,
	(select avg_aas from tacho.aas(:window, wait_event_type => 'IO,Lock')) as list,
	(select avg_aas from tacho.aas(:window, blocked_by => '(null)')) as "null",
	(select avg_aas from tacho.aas(:window, application => '!billing')) as negated,
	(select avg_aas from tacho.aas(:window, database => 'crm', wait_event_type => 'IO')) as two,
	(select avg_aas from tacho.aas(:window, scope => 'foreground')) as foreground,
	(select avg_aas from tacho.aas(:window, scope => 'all')) as "all";

select key, by_key, query_text, avg_aas, peak_aas, p99_aas, peak_sessions, backend_seconds, pct
	from tacho.top('wait_event', :window, bucket => '10 seconds');
select key, query_text, avg_aas, pct from tacho.top('query_id', :window, n => 2);
select key, by_key, avg_aas from tacho.top('database', :window, by => 'wait_event_type', n => 2);
select key, avg_aas, peak_aas from tacho.top('query_id', :window, order_by => 'peak', bucket => '10 seconds', n => 1, username => 'regress_bob');

select bucket_start, key, source, avg_aas, peak_sessions, backend_seconds, ticks_observed, coverage_pct
	from tacho.timeline(:window, bucket => '10 seconds');
select bucket_start, key, avg_aas
	from tacho.timeline(:window, bucket => '10 seconds', by => 'database', n => 1);

select sample_time, tick - min(tick) over () as tick, pid, backend_type, category, database, username,
		application, state, wait_event_type, wait_event, query_id, blocked_by, weight_ms
	from tacho.samples(:window, n => 6);
select count(*), count(distinct sample_time) from tacho.samples(:window, n => null, scope => 'all');

select period, avg_aas, ticks_observed
	from tacho.periods(until => '2026-01-05 12:00:20+00', node => :'node') where period in ('1m', '1h');

select bucket_start, aas, chart
	from tacho.chart(:window, bucket => '10 seconds', width => 20, ascii => true);
select metric, value from tacho.summary(:window) where metric in ('avg_aas', 'top_wait_1', 'coverage_pct');

-- settings of the session change the form of values, not the values
set timezone = 'Asia/Tokyo';
set datestyle = 'German';
set intervalstyle = 'iso_8601';
select bucket_start, avg_aas from tacho.timeline(since => '05.01.2026 21:00', until => '05.01.2026 21:00:20', bucket => 'PT10S', node => :'node');
select grain from tacho.aas(:window);

-- buckets follow the session's time zone, unless tz is given
set datestyle = 'ISO';
set timezone = 'Europe/Berlin';
select bucket_start, ticks_observed from tacho.timeline(since => '2026-01-04 23:00+00', until => '2026-01-05 23:00+00', bucket => '1 day', node => :'node');
select bucket_start, ticks_observed from tacho.timeline(since => '2026-01-04 23:00+00', until => '2026-01-05 23:00+00', bucket => '1 day', tz => 'Asia/Kathmandu', node => :'node');
set timezone = '<+02>-02';
select bucket_start from tacho.chart(since => '2026-01-05 11:00+00', until => '2026-01-05 12:00:20+00', bucket => '6 hours', node => :'node') where bucket_start is not null;
-- a zone that the server knows, but the program does not
set timezone = 'FOO5BAR';
select bucket_start at time zone 'UTC' from tacho.timeline(since => '2026-01-05 12:00+00', until => '2026-01-05 12:00:20+00', bucket => '1 day', node => :'node');
-- a time without a zone is in the zone tz
set timezone = 'Europe/Berlin';
select period_start, period_end from tacho.report(at => '2026-01-05 21:00', tz => 'Asia/Tokyo', node => :'node');
select period_start, period_end from tacho.report(at => '2026-01-05 13:00', node => :'node');
select period_start, period_end from tacho.report(at => '2026-01-05 12:00Z', tz => 'Asia/Tokyo', node => :'node');
select distinct period_start, period_end from tacho.changes(at => '2026-01-05 21:00', tz => 'Asia/Tokyo', node => :'node');
select distinct period_start, period_end from tacho.changes(at => '2026-01-05 13:00', node => :'node');
select distinct period_start, period_end from tacho.changes(at => '2026-01-05 12:00Z', tz => 'Asia/Tokyo', node => :'node');
-- a time of day is the last one
select tacho._moment('12:00', 'UTC') = date_trunc('day', now() at time zone 'UTC' - interval '12 hours') at time zone 'UTC' + interval '12 hours' as last;
reset all;

-- the server's part of status() and the tape's
select metric from tacho.status(node => :'node') where metric in ('version', 'recording', 'program', 'frames_lost');
select metric, value from tacho.status(node => :'node') where metric in ('node', 'damaged_places');
drop extension tacho;
