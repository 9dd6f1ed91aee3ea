-- Starts are stored once per execution and ages once for equal neighbours. samples()
-- returns the sampled values from single ticks and from packs, over minutes, failed
-- ticks, sessions that come and go, and a clock set back.
select setseed(0.11);
create table truth (ms bigint, pid integer, state text, query_start timestamptz, xact_start timestamptz, state_change timestamptz,
	xmin_age integer, xid_age integer, blocked_by integer);
create procedure test.live(first_ms bigint, ticks integer)
language plpgsql
as $$
declare
	v_ms bigint;
	v_before bigint := (tacho._last_tick()).slot_ms;
	p integer;
	s tacho.sampled;
	v_now timestamptz;
	v_samples tacho.sampled[];
	v_live tacho.sampled[] := array_fill(null::tacho.sampled, array[9]);
begin
	for i in 0 .. ticks - 1 loop
		v_ms := first_ms + i * 1000;
		v_now := tacho._time(v_ms * 1000 + 400123);
		v_samples := '{}';
		for p in 1 .. 9 loop
			s := v_live[p];
			s.pid := 100 + p;
			s.backend_start := timestamptz '2026-03-01 00:00+00';
			s.category := 'foreground';
			s.query_id := p;
			s.wait_event_type := 'IO';
			s.wait_event := 'Read';
			-- at most one statement begins between two ticks
			if random() < 0.3 then
				s.state := (array['active', 'idle', 'idle in transaction', 'active'])[1 + (random() * 3)::integer];
				s.state_change := v_now - random() * interval '990 milliseconds';
				if s.state = 'active' then
					s.query_start := s.state_change - (p % 2) * interval '1 microsecond';
				end if;
				s.xact_start := case when s.state = 'active' and random() < 0.6 then s.query_start when s.state = 'idle' then null
					else coalesce(s.xact_start, s.query_start) end;
			end if;
			s.xmin_age := case when random() < 0.8 then (random() * 2)::integer end;
			s.xid_age := case when random() < 0.1 then p end;
			s.blocked_by := case when p = 3 and s.state = 'active' then 107 end;
			v_live[p] := s;
			-- an idle session is recorded if it blocks another
			if s.state <> 'idle' or p = 7 and (v_live[3]).state = 'active' then
				v_samples := v_samples || s;
			end if;
		end loop;
		if random() < 0.05 then
			perform tacho._store_tick(row(v_ms / 1000, v_ms, 1000, 3, 'no', null, null)::tacho.tick, null, v_before);
		else
			insert into truth
			select v_ms, u.pid, u.state, tacho._time(tacho._ms(u.query_start) * 1000), tacho._time(tacho._ms(u.xact_start) * 1000),
				tacho._time(tacho._ms(u.state_change) * 1000), u.xmin_age, u.xid_age, u.blocked_by
			from unnest(v_samples) u;
			perform tacho._store_tick(row(v_ms / 1000, v_ms, 1000, 1, null, null, 9)::tacho.tick, v_samples, v_before);
		end if;
		v_before := v_ms;
	end loop;
end
$$;
create function test.differ()
returns text
language sql
return (select format('%s of %s, such as %s', count(*), (select count(*) from truth), min(x::text)) from (
	(select t.ms, t.pid, t.state, t.query_start, t.xact_start, t.state_change, t.xmin_age::bigint, t.xid_age::bigint, t.blocked_by from truth t
	except
	select tacho._ms(s.sample_time), s.pid, s.state, s.query_start, s.xact_start, s.state_change, s.xmin_age, s.xid_age, s.blocked_by
	from tacho.samples('2026-03-01', '2026-03-02', n => null, scope => 'all') s)) x);

call test.live(tacho._ms('2026-03-01 12:00:20+00'), 150);
select test.equal((select count(*) > 600 from truth)::text, 'true', 'sessions were busy');
select test.equal(substring(test.differ() from '^\d+'), '0', 'single ticks');
select test.equal((select count(cardinality(start_at)) > 0 and sum(cardinality(start_at)) < sum(cardinality(samples)) * 0.8 from tacho.hot)::text, 'true',
	'most starts are not repeated');
-- a minute of two packs, then the rest
select tacho._pack_ticks(tacho._ms('2026-03-01 12:01:30+00'), tacho._ms('2026-03-01 12:02+00'), 0::smallint);
select test.equal(substring(test.differ() from '^\d+'), '0', 'the end of a minute is packed');
select tacho._pack(tacho._ms('2026-03-01 12:02:40+00'));
select test.equal((select min(start_ms)::text from tacho.hot), tacho._ms('2026-03-01 12:02+00')::text, 'only whole minutes are packed');
select test.equal(substring(test.differ() from '^\d+'), '0', 'packs and single ticks');
select tacho._pack(tacho._ms('2026-03-02'));
select test.equal(substring(test.differ() from '^\d+'), '0', 'packs');
select test.equal((select bool_and(cardinality(start_at) = cardinality(query_starts) and cardinality(start_at) < cardinality(what)) from tacho.pack)::text, 'true',
	'packs have starts once an execution');
select test.equal((select count(*) > 0 from tacho.sessions(since => '2026-03-01', until => '2026-03-02', scope => 'all') where query_start is not null)::text, 'true', 'sessions()');

-- the clock is set back: statements that begin then have an earlier start, and it is
-- stored
call test.live(tacho._ms('2026-03-01 12:10+00'), 1);
update tacho.setting set enabled = true;
create function test.steps(slot timestamptz)
returns text
language plpgsql
as $$
declare
	v_result constant text := tacho._take_sample(tacho._ms(slot), 1000);
begin
	return (
		select concat_ws(' ', v_result, count(*), (array_agg(period_start::time || '-' || period_end::time order by period_start))[1])
		from tacho.marker
		where kind = 'clock step');
end
$$;
select test.equal(test.steps('2026-03-01 12:09:59+00'), 'taken 0', 'a second back is not worth a marker');
select test.equal(test.steps('2026-03-01 12:09:50+00'), 'taken 1 12:09:50-12:10:01', 'a slot of the past');
select test.equal(test.steps('2026-03-01 12:09:51+00'), 'taken 1 12:09:50-12:10:01', 'a marker a step');
select test.equal(test.steps('2026-03-01 12:09:40+00'), 'taken 2 12:09:40-12:10:01', 'back once more, without a tick between');
select test.equal((select is_apart::text from tacho.hot), 'true', 'the last tick is no reference any more');
with s as (
	select row(101, null, timestamptz '2026-03-01 00:00+00', null, 'foreground', null, null, null, null, null, null, 'active', null, null, 'CPU*', 0, 1, null, null,
		timestamptz '2026-03-01 12:09:52+00', null, timestamptz '2026-03-01 12:09:52+00', null, null, null, null, null, null)::tacho.sampled as x
)
select tacho._store_tick(row(9999999, tacho._ms('2026-03-01 12:10:01+00'), 1000, 1, null, null, 1)::tacho.tick, array[x], tacho._ms('2026-03-01 12:10+00')) from s;
select test.equal((select query_start::text from tacho.samples('2026-03-01 12:10:01+00', '2026-03-01 12:10:02+00')), timestamptz '2026-03-01 12:09:52+00'::text, 'the new execution has its start');
select tacho._pack(tacho._ms('2026-03-02'));
select test.equal(test.steps('2026-03-01 12:09:30+00'), 'taken 3 12:09:30-12:10:02', 'back behind a tick that is packed');
