-- What went wrong in a system before us does not go wrong here. Defects that
-- a conformance case or another test shows absent are not repeated.

-- history keeps its own weights when the interval changes
create table line as
select timestamptz '2026-03-01 20:00+00' + i * interval '1 second' as time, 1 as pid, 1000 as interval_ms from generate_series(0, 59) i
union all
select timestamptz '2026-03-01 20:01+00' + i * interval '5 seconds', 1, 5000 from generate_series(0, 11) i;
select tacho.import_sessions('line');
select tacho.configure('sample_interval', '10 seconds');
select test.equal(test.rows($$select avg_aas, backend_seconds from tacho.timeline('2026-03-01 20:00+00', '2026-03-01 20:02+00')$$), '(1.0000,60.0000) (1.0000,60.0000)', 'mixed cadence');
select test.equal((select peak_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', '2 minutes')), '1.0000', 'also within a bucket');

-- an imported tick is unique by its slot
select test.equal(test.error($$select tacho.import_sessions('line')$$), '22023: time is not later than the newest tick', 'no tick twice');

-- absurd windows are errors, not overflows
select test.equal(test.error($$select * from tacho.aas('4713-01-01 BC', '9999-12-31')$$), '22023: too many buckets', 'from the beginning');
select test.equal(test.error($$select * from tacho.timeline('-infinity')$$), '22023: since and until must be finite', 'infinite');
select test.equal((select source from tacho.aas('2200-01-01', '2201-01-01')), 'none', 'the future');
select test.equal((select source from tacho.aas('1900-01-01', '1900-01-02')), 'none', 'the past');
select test.equal(test.error($$select * from tacho.aas(bucket => '-1 minute')$$), '22023: bucket must be greater than zero', 'negative buckets');

-- nobody's advisory lock stops the sampler
select pg_advisory_lock(i) from generate_series(0, 20) i;
select count(*) from tacho.start();
select test.equal(tacho.take_sample(), 'ok', 'beside advisory locks');
select pg_advisory_unlock_all();

-- an until alone moves the window
select test.equal((select (period_end - period_start)::text || ' ' || ticks_observed from tacho.aas(until => '2026-03-01 20:02+00')), '01:00:00 72', 'the hour before until');

-- values that look like SQL stay values
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', database => $q$x'; drop schema tacho cascade; --$q$)), '0.0000', 'quotes in a filter');
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00', application => '!"%s %1$s \ ''",(null)')), '1.0000', 'formats in a filter');

-- the ring grows, and may leave the WAL
select test.equal(tacho.configure_ring(6), '6 partitions, logged', 'more partitions');
select test.equal(tacho.configure_ring(logged => false), '6 partitions, unlogged', 'unlogged');
select test.equal(tacho.configure_ring(7), '7 partitions, unlogged', 'later ones too');
select test.equal((select string_agg(distinct relpersistence::text, '') from pg_class where relnamespace = 'tacho'::regnamespace and relname ~ '^pack_[0-9]$'), 'u', 'all partitions');
select test.equal(test.error($$select tacho.configure_ring(3)$$), '22023: the ring has 7 partitions', 'it does not shrink');
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:02+00')), '1.0000', 'with all history');
select tacho._pack(tacho._ms('2026-03-02'));
select test.equal((select string_agg(tacho.rotate(true), ' ') from generate_series(1, 2)), 'rotated not due', 'rotation goes on');
