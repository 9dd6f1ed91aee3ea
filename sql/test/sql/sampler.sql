-- Every slot has a tick, even if no session is active; failures are ticks too.
select test.equal(tacho.take_sample(), 'off', 'no sample is taken before the start');
select test.equal((select string_agg(step, ' ') from tacho.start('1 minute') where step in ('recording', 'permission')), 'recording', 'start');
select test.equal((select string_agg(kind, ' ') from tacho.marker), 'interval changed start', 'start leaves markers');
select count(*) from tacho.start();
select test.equal((select count(*)::text from tacho.marker), '2', 'start is idempotent');

-- waits for a new minute if this one ends soon, so that two ticks fall in one slot
do $$ begin if extract(second from clock_timestamp()) > 50 then perform pg_sleep(60 - extract(second from clock_timestamp())::float8); end if; end $$;
select test.equal(tacho.take_sample(), 'ok', 'a tick');
select test.equal(tacho.take_sample(), 'taken', 'never two ticks in a slot');
select test.equal((select string_agg(format('%s %s', start_ms % 60000, interval_ms), ',') from tacho.hot), '0 60000', 'slot times are rounded down');
select test.equal((select ticks_observed::text || ' ' || avg_aas from tacho.aas()), '1 0.0000', 'idle is zero, not a gap');

-- a slot later
update tacho.hot set start_ms = start_ms - 60000;
select test.equal(tacho.take_sample(), 'ok', 'the next slot');
select test.equal((select string_agg(tick::text, ' ' order by start_ms) from tacho.hot), '1 2', 'ticks are numbered by slot');
update tacho.hot set start_ms = start_ms - 180000;
select test.equal(tacho.take_sample(), 'ok', 'after missed slots');
select test.equal((select string_agg(tick::text, ' ' order by start_ms) from tacho.hot), '1 2 5', 'missed slots are holes');
select test.equal((select count(*)::text from tacho.marker where kind = 'gap'), '0', 'two missed slots are no gap');

-- the clock went back
update tacho.hot set start_ms = start_ms + 3600000;
select test.equal(tacho.take_sample(), 'taken', 'slots that have a tick keep it');
select test.equal((select value::text from tacho.counter where name like '%clock%'), '1', 'the step of the clock is counted');
select test.equal(tacho.take_sample(), 'taken', 'the next one, too');
select test.equal((select string_agg(regexp_replace(detail, '\d+', 'N') || ' ' || (period_end - period_start between '58 minutes' and '62 minutes')::text, ' ') from tacho.markers(until => 'infinity', since => now() - interval '1 day') where kind = 'clock step'),
	'the clock was set back by N s true', 'a marker says so once, and until when its slots are taken');
update tacho.hot set start_ms = start_ms - 7200000;
select test.equal(tacho.take_sample(), 'ok', 'an hour later');
select test.equal((select (period_end - period_start)::text from tacho.marker where kind = 'gap'), '00:59:00', 'a gap has exact bounds');

-- a failure is a failed tick
update tacho.hot set start_ms = start_ms - 60000;
create function tacho._category_broken() returns text language plpgsql as $$ begin raise exception 'broken'; end $$;
alter function tacho._category(text) rename to _category_whole;
create function tacho._read_sessions_broken(out connections integer, out hidden integer, out samples tacho.sampled[]) language plpgsql as $$ begin raise exception 'cannot read'; end $$;
alter function tacho._read_sessions() rename to _read_sessions_whole;
alter function tacho._read_sessions_broken() rename to _read_sessions;
select test.equal(tacho.take_sample(), 'failed', 'a failure does not raise');
select test.equal((select status || ' ' || reason from tacho.hot order by start_ms desc limit 1), '3 cannot read', 'the failure is a tick with a reason');
select test.equal((select ticks_failed::text from tacho.aas(since => now() - interval '1 minute')), '1', 'the failure shows in the coverage');
drop function tacho._read_sessions();
alter function tacho._read_sessions_whole() rename to _read_sessions;
alter function tacho._category_whole(text) rename to _category;
select test.equal((select string_agg(result, ' ') from tacho.stop() where step = 'recording'), 'off', 'stop');
select test.equal(tacho.take_sample(), 'off', 'stopped');
select test.equal(test.error($$select tacho.configure('sample_interval', '2 minutes')$$), '22023: sample_interval must be between 10 milliseconds and 1 minute', 'settings are checked');
select test.equal(test.error($$select tacho.configure('sample_interval', 'soon')$$), '22023: invalid value "soon" for setting "sample_interval"', 'values of settings are parsed');
select test.equal(test.error($$select tacho.configure('color', 'on')$$), '42704: setting "color" does not exist', 'names of settings are checked');
