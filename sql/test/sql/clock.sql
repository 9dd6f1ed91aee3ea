-- A clock that was wrong: a year ahead for two minutes, or set back.
create function test.result(in_step text) returns text language sql as $$ select result from tacho.maintain() where step = in_step $$;
create function test.load(since timestamptz, until timestamptz, every interval) returns bigint language plpgsql as $$
begin
	create temp table line on commit drop as select t as time, 1 as pid from generate_series(since, until, every) t;
	return tacho.import_sessions('line', every);
end $$;
create function test.recording() returns text language sql as
$$ select regexp_replace(value, '\d{4}-.*(?=: the clock)', 'TIME') from tacho.status() where metric = 'recording' $$;
select count(*) from tacho.start('10 milliseconds');
select tacho._step('pack', 0);

-- the record goes on until now, then jumps to the next year
select test.load(date_trunc('hour', now()) - interval '3 hours', now() - interval '1 minute', '1 minute');
create table before as select count(*) as ticks from tacho.hot;
select test.load(now() + interval '1 year', now() + interval '1 year 119 seconds', '1 second');
select tacho._pack(tacho._ms(now() + interval '1 year 1 minute'));
select tacho._mark('gap', 'sampler did not run', now(), now() + interval '1 year');
select test.equal(tacho.take_sample(), 'taken', 'no tick is added before the newest one');
select test.equal(test.recording(), 'on, but ticks are refused until TIME: the clock was ahead', 'status says until when');
select test.equal(test.result('clock'), '120', 'the ticks of the next year are deleted');
select test.equal((select ((select sum(n_ticks) from tacho.pack) + (select count(*) from tacho.hot) - ticks)::text from before), '0', 'the others are there');
select test.equal((select regexp_replace(detail, '\d{4}-\d\d-\d\d \S+', 'TIME', 'g') from tacho.marker where kind = 'clock step' order by marker_time desc limit 1),
	'the clock was ahead: 120 ticks from TIME to TIME were deleted', 'a marker says so');
select test.equal((select count(*)::text from tacho.marker where period_end > now() + interval '1 day'), '0', 'no marker of the wrong time is left');
select test.equal(replace(tacho.take_sample(), 'late', 'ok'), 'ok', 'it goes on');
select test.equal(test.recording(), 'on', 'status');

-- behind a jump, nothing is summed up or deleted for an hour
truncate tacho.hour_tick, tacho.hour_key, tacho.hour_pair;
update tacho.watermark set ms = 0 where name = 'hour';
update tacho.watermark set ms = tacho._ms(now() - interval '1 year') where name = 'maintenance';
select test.equal(test.result('sum up'), 'waits: the clock jumped', 'the clock jumped ahead');
select test.equal(test.result('rotate'), 'waits: the clock jumped', 'an hour has not passed');
update tacho.watermark set ms = tacho._ms(now() + interval '1 year') where name = 'maintenance';
update tacho.watermark set ms = tacho._ms(now() + interval '1 year') where name = 'clock jumped';
select test.equal(test.result('sum up'), 'waits: the clock jumped', 'it jumped back');
update tacho.watermark set ms = tacho._ms(now() - interval '61 minutes') where name = 'clock jumped';
select test.equal((test.result('sum up') ~ '^[34]$')::text, 'true', 'after an hour it goes on');
-- the time without a server is no jump
select test.equal(tacho._clock_is_steady(tacho._ms(now()))::text, 'true', 'steady');
update tacho.watermark set ms = tacho._ms(pg_postmaster_start_time() - interval '29 days') where name = 'maintenance';
select test.equal(tacho._clock_is_steady(tacho._ms(now()))::text, 'true', 'the server was stopped for 29 days');
update tacho.watermark set ms = tacho._ms(pg_postmaster_start_time() - interval '31 days') where name = 'maintenance';
select test.equal(tacho._clock_is_steady(tacho._ms(now()))::text, 'false', '31 days are more than a stop');

-- a clock that was set back by a week leaves everything as it is
truncate tacho.hot, tacho.pack, tacho.hour_tick, tacho.hour_key, tacho.hour_pair;
update tacho.watermark set ms = 0 where name = 'hour';
select test.load(now() - interval '2 days', now() + interval '7 days', '1 hour');
select test.equal(test.result('clock'), '0', 'the record goes on behind now');
truncate tacho.hot, tacho.pack;
select test.load(now() + interval '6 days', now() + interval '7 days', '1 hour');
select test.equal(test.result('clock'), '0', 'the record begins behind now');
