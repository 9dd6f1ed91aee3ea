-- Defects of an earlier system must not exist here. Defects that a conformance case or
-- another test covers are not repeated.

-- history keeps its own weights when the interval changes
create table line as
select timestamptz '2026-03-01 20:00+00' + i * interval '1 second' as time, 1 as pid, 1000 as interval_ms from generate_series(0, 59) i
union all
select timestamptz '2026-03-01 20:01+00' + i * interval '5 seconds', 1, 5000 from generate_series(0, 11) i;
select tacho.import_sessions('line');
select tacho.configure('sample_interval', '10 seconds');
select test.equal(test.rows($$select avg_aas, backend_seconds from tacho.timeline('2026-03-01 20:00+00', '2026-03-01 20:02+00')$$), '(1.0000,60.0000) (1.0000,60.0000)', 'mixed cadence');
select test.equal((select peak_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', '2 minutes')), '1.0000', 'mixed cadence within one bucket');

-- an imported tick is unique by its slot
select test.equal(test.error($$select tacho.import_sessions('line')$$), '22023: time is not later than the newest tick', 'no tick twice');

-- absurd windows are errors, not overflows
select test.equal(test.error($$select * from tacho.aas('4713-01-01 BC', '9999-12-31')$$), '22023: too many buckets', 'from the beginning');
select test.equal(test.error($$select * from tacho.timeline('-infinity')$$), '22023: since and until must be finite', 'infinite');
select test.equal((select source from tacho.aas('2200-01-01', '2201-01-01')), 'none', 'the future');
select test.equal((select source from tacho.aas('1900-01-01', '1900-01-02')), 'none', 'the past');
select test.equal(test.error($$select * from tacho.aas(bucket => '-1 minute')$$), '22023: bucket must be greater than zero', 'negative buckets');

-- an advisory lock of another session does not stop the sampler
select pg_advisory_lock(i) from generate_series(0, 20) i;
select count(*) from tacho.start();
select test.equal(replace(tacho.take_sample(), 'late', 'ok'), 'ok', 'beside advisory locks');
select pg_advisory_unlock_all();

-- an until alone moves the window
select test.equal((select (period_end - period_start)::text || ' ' || ticks_observed from tacho.aas(until => '2026-03-01 20:02+00')), '01:00:00 72', 'the hour before until');

-- values that look like SQL stay values
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', database => $q$x'; drop schema tacho cascade; --$q$)), '0.0000', 'quotes in a filter');
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', application => '!"%s %1$s \ ''",!"%I"')), '1.0000', 'formats in a filter');

-- the ring grows, and may leave the WAL
select test.equal(tacho.configure_ring(6), '6 partitions, logged', 'more partitions');
select test.equal(tacho.configure_ring(logged => false), '6 partitions, unlogged', 'unlogged');
select test.equal(tacho.configure_ring(7), '7 partitions, unlogged', 'later ones too');
select test.equal((select string_agg(distinct relpersistence::text, '') from pg_class where relnamespace = 'tacho'::regnamespace and relname ~ '^pack_[0-9]$'), 'u', 'all partitions');
select test.equal(test.error($$select tacho.configure_ring(3)$$), '22023: the ring has 7 partitions', 'the ring does not shrink');
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00')), '1.0000', 'the grown ring keeps its history');
select tacho._pack(tacho._ms('2026-03-02'));
select test.equal((select string_agg(tacho.rotate(true), ' ') from generate_series(1, 2)), 'rotated not due', 'rotation goes on');

-- readers of the ring can read added partitions
create role ash_reader_r;
select tacho.grant_reader('ash_reader_r');
select tacho.configure_ring(8);
grant usage on schema test to ash_reader_r;
set role ash_reader_r;
select test.equal((select has_table_privilege('tacho.pack_7', 'select') and has_table_privilege('tacho.session_7', 'select')
	and has_table_privilege('tacho.activity_7', 'select'))::text, 'true', 'readers of new partitions');
select test.equal((select count(*)::text || ' ' || max(backend_seconds_1) from tacho.compare('wait_event', '2026-03-01 20:00+00', null, '2026-03-01 20:01+00', '2026-03-01 20:02+00')), '1 60.0000', 'a reader compares');
select test.equal((select string_agg(kind || ' ' || seconds || ' ' || ticks, ', ') from tacho.sessions('2026-03-01 20:00+00', '2026-03-01 20:02+00')), 'sampled 120.0000 72', 'reads lives');
select test.equal((select report #>> '{load,avg_aas}' from tacho.report(since => '2026-03-01 20:00+00', until => '2026-03-01 20:02+00')), '1.0000', 'a reader reports');
select test.equal((select count(*)::text from tacho.server_history()), '0', 'a reader of measurements that are not recorded gets no row');
select test.equal((select count(*)::text from tacho.explain('top', 'wait_event')), '0', 'files that are not there have no plan');
select test.equal(test.error('select tacho.start()'), '42501: permission denied for function start', 'who reads does not start');
select test.equal(test.error('select tacho.stop()'), '42501: permission denied for function stop', 'a reader may not stop sampling');
reset role;
select tacho.revoke_reader('ash_reader_r');
revoke usage on schema test from ash_reader_r;
drop role ash_reader_r;

-- a tick that a timeout ends is a failed tick with its reason
select tacho.configure('sample_interval', '10 milliseconds');
alter function tacho._read_sessions() rename to _read_sessions_whole;
create function tacho._read_sessions(out connections integer, out hidden integer, out samples tacho.sampled[]) language plpgsql as $$ begin perform pg_sleep(60); end $$;
set statement_timeout = '1s';
select test.equal(tacho.take_sample(), 'canceled', 'a timeout');
reset statement_timeout;
select test.equal((select status || ' ' || reason from tacho.hot order by start_ms desc limit 1), '3 canceling statement due to statement timeout', 'is seen');
drop function tacho._read_sessions();
alter function tacho._read_sessions_whole() rename to _read_sessions;

-- the query that the hint of an error suggests has an answer
create function test.hint(query text) returns text language plpgsql as $$
declare v_hint text;
begin
	execute query;
	return null;
exception when others then
	get stacked diagnostics v_hint = pg_exception_hint;
	return v_hint;
end $$;
delete from tacho.hot;
create table later (time timestamptz, pid integer, interval_ms integer);
do $$
begin
	for i in 1..8 loop
		insert into later select timestamptz '2026-03-02 20:00+00' + i * interval '1 hour', 2, 59000;
		perform tacho.import_sessions('later');
		truncate later;
		perform tacho._pack(tacho._ms('2026-03-03 08:00+00')), tacho._roll_up_hours(tacho._ms('2026-03-03 08:00+00'));
		perform tacho.rotate(true);
	end loop;
end $$;
select test.equal(test.hint($$select * from tacho.aas('2026-03-01 20:00:30+00', '2026-03-03')$$),
	format('Ask with since => %L, or with fewer filters, a wider bucket, or a window that begins at a full minute.', tacho._time_text(tacho._raw_first_us())), 'a hint');
select test.equal(test.hint(format($$select * from tacho.aas(%L, '2026-03-03', pid => '2')$$, tacho._time_text(tacho._raw_first_us()))), null, 'the hinted begin has no hint');
select test.equal(test.hint($$select * from tacho.aas('2026-03-01 20:00+00', '2026-03-03')$$), null, 'a window of whole minutes has no hint');

-- ticks of 59 s: a minute with two of them does not count as two sessions
create table slow as
select timestamptz '2026-03-05 20:00+00' + i * interval '59 seconds' as time, 1 as pid, 59000 as interval_ms from generate_series(0, 119) i;
select tacho.import_sessions('slow');
select test.equal((select avg_aas || ' ' || peak_aas || ' ' || p99_aas from tacho.aas('2026-03-05 20:00+00', '2026-03-05 22:00+00')), '1.0000 1.0000 1.0000', 'slow ticks');
