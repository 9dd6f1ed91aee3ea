/*
 * 30_pack.sql - merges the ticks of a minute into packs
 *
 * Rows of hot before the present minute become rows of pack, by slot of the ring and
 * minute. A minute with more than 32,767 (session, tick) positions becomes several packs
 * of fewer ticks each. The caller holds mutex_maintenance. Readers see hot and pack in
 * one snapshot, so they see each tick once.
 */
create function tacho._pack_ticks(first_ms bigint, until_ms bigint, in_slot smallint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	with h as materialized (
		select
			h.*,
			row_number() over (order by h.start_ms) - 1 as t,
			count(*) over () as n,
			first_value(h.tick) over (order by h.start_ms) as tick0,
			first_value(h.start_ms) over (order by h.start_ms) as ms0
		from tacho.hot h
		where h.start_ms >= first_ms
			and h.start_ms < until_ms
			and h.slot = in_slot
	), ticks as (
		select
			min(h.tick0) as first_tick,
			min(h.ms0) as start_ms,
			max(h.start_ms) as last_ms,
			max(h.n) as n_ticks,
			(array_agg(h.interval_ms order by h.t desc))[1] as interval_ms,
			coalesce(sum(h.interval_ms) filter (where h.status is distinct from 3), 0) as observed_ms,
			coalesce(sum(h.interval_ms) filter (where h.status = 3), 0) as failed_ms,
			count(*) filter (where h.status = 3) as n_failed,
			case when bool_or(h.tick <> h.tick0 + h.t) then array_agg((h.tick - h.tick0)::integer order by h.t) end as tick_offsets,
			case when bool_or(h.start_ms - h.ms0 <> (h.tick - h.tick0) * h.interval_ms) or count(distinct h.interval_ms) > 1
				then array_agg((h.start_ms - h.ms0)::integer order by h.t) end as time_offsets,
			case when count(distinct h.interval_ms) > 1 then array_agg(h.interval_ms order by h.t) end as intervals,
			case when count(h.status) > 0 then array_agg(coalesce(h.status, 1::smallint) order by h.t) end as statuses,
			case when count(h.reason) > 0 then array_agg(h.reason order by h.t) end as reasons,
			case when count(h.vcpus_x100) > 0 then array_agg(h.vcpus_x100 order by h.t) end as vcpus_x100,
			case when count(h.connections) > 0 then array_agg(h.connections order by h.t) end as connections
		from h
	), x as materialized (
		select x.*, h.t, h.n as n_ticks, h.ms0
		from h
		join tacho._hot_samples(first_ms, until_ms) x on x.start_ms = h.start_ms
	), names as (
		select d.session, row_number() over (order by d.session) - 1 as s
		from (select distinct session from x) d
	), samples as (
		select
			row_number() over lives as n,
			m.s * x.n_ticks + x.t as at,
			x.activity,
			x.blocker,
			x.wait,
			x.query_start - x.ms0 as query_start,
			x.xact_start - x.ms0 as xact_start,
			x.state_change - x.ms0 as state_change,
			x.xmin_age,
			x.xid_age,
			x.session is distinct from lag(x.session) over lives
				or x.query_start is distinct from lag(x.query_start) over lives
				or x.xact_start is distinct from lag(x.xact_start) over lives
				or x.state_change is distinct from lag(x.state_change) over lives as is_begin
		from x
		join names m on m.session = x.session
		window lives as (order by m.s, x.t, x.n)
	), merged as (
		select
			array_agg(s.at::integer order by s.n) as at,
			case when max(s.activity) <= 65536 then
				array_agg((s.activity - 32769)::smallint order by s.n) filter (where s.activity <= 65536) end as what,
			case when max(s.activity) > 65536 then array_agg(s.activity order by s.n) end as wide,
			array_agg(s.n::integer order by s.n) filter (where s.blocker is not null) as blocked_at,
			array_agg(s.blocker order by s.n) filter (where s.blocker is not null) as blockers,
			case when count(s.wait) > 0 then array_agg(s.wait order by s.n) filter (where s.blocker is not null) end as waits,
			array_agg(s.n::integer order by s.n) filter (where s.is_begin) as start_at,
			array_agg(s.query_start order by s.n) filter (where s.is_begin) as query_starts,
			array_agg(s.xact_start order by s.n) filter (where s.is_begin) as xact_starts,
			array_agg(s.state_change order by s.n) filter (where s.is_begin) as state_changes,
			count(s.query_start) + count(s.xact_start) + count(s.state_change) > 0 as has_starts,
			case when count(s.xmin_age) > 0 then array_agg(s.xmin_age order by s.n) end as xmin_ages,
			case when count(s.xid_age) > 0 then array_agg(s.xid_age order by s.n) end as xid_ages
		from samples s
	)
	insert into tacho.pack (first_tick, start_ms, last_ms, slot, n_ticks, interval_ms, observed_ms, failed_ms,
		n_failed, tick_offsets, time_offsets, intervals, statuses, reasons, vcpus_x100, connections, sessions,
		run_ats, run_lens, what, wide, blocked_at, blockers,
		start_at, query_starts, xact_starts, state_changes, xmin_ages, xid_ages, waits)
	select
		t.first_tick, t.start_ms, t.last_ms, in_slot, t.n_ticks, t.interval_ms, t.observed_ms, t.failed_ms,
		t.n_failed, t.tick_offsets, t.time_offsets, t.intervals, t.statuses, t.reasons, t.vcpus_x100, t.connections,
		coalesce((select array_agg(session order by s) from names), '{}'),
		coalesce(r.ats, '{}'),
		coalesce(r.lens, '{}'),
		case when m.wide is null then coalesce(m.what, '{}') end,
		m.wide, m.blocked_at, m.blockers,
		case when m.has_starts then m.start_at end,
		case when m.has_starts then m.query_starts end,
		case when m.has_starts then m.xact_starts end,
		case when m.has_starts then m.state_changes end,
		m.xmin_ages, m.xid_ages, m.waits
	from ticks t, merged m
	cross join lateral (
		select array_agg(g.at order by g.at) as ats, array_agg(g.len order by g.at) as lens
		from (
			select min(i.at)::smallint as at, count(*)::smallint as len
			from (
				select at, sum(is_new) over (order by n) as run
				from (
					select at, n, case when at = lag(at) over (order by n) + 1 then 0 else 1 end as is_new
					from unnest(m.at) with ordinality u (at, n)
				) x
			) i
			group by i.run
		) g
	) r
	where t.n_ticks > 0;

	delete from tacho.hot h
	where h.start_ms >= first_ms
		and h.start_ms < until_ms
		and h.slot = in_slot;
end
$$;
comment on function tacho._pack_ticks is 'merges the ticks of a piece of time into one pack';

create function tacho._pack(until_ms bigint)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
	v_until_ms constant bigint := until_ms / 60000 * 60000;
	v_minute record;
	v_piece record;
	v_packs integer := 0;
begin
	for v_minute in
		select
			g.slot,
			g.minute,
			(select count(distinct u.id)
				from tacho.hot_pack o, unnest(o.sessions) u (id)
				where o.slot = g.slot and o.start_ms / 60000 = g.minute) as sessions
		from (
			select distinct h.slot, h.start_ms / 60000 as minute
			from tacho.hot h
			where h.start_ms < v_until_ms
		) g
		order by g.minute, g.slot
	loop
		for v_piece in
			select min(x.start_ms) as first_ms, max(x.start_ms) + 1 as until_ms
			from (
				select
					h.start_ms,
					(row_number() over (order by h.start_ms) - 1) / greatest(32767 / greatest(v_minute.sessions, 1), 1) as piece
				from tacho.hot h
				where h.slot = v_minute.slot
					and h.start_ms / 60000 = v_minute.minute
			) x
			group by x.piece
			-- the last first: it may need the starts of earlier pieces
			order by x.piece desc
		loop
			perform tacho._pack_ticks(v_piece.first_ms, v_piece.until_ms, v_minute.slot);
			v_packs := v_packs + 1;
		end loop;
	end loop;
	if v_packs > 0 then
		update tacho.watermark set ms = v_until_ms where name = 'pack';
	end if;
	return v_packs;
end
$$;
comment on function tacho._pack is 'packs the ticks before a full minute; returns the packs made';
