/*
 * 15_hot.sql - single ticks: the format of a row of `hot`
 *
 *   samples  sorted by session; one number each. Its upper 16 bits are the session,
 *            less the session of the sample before (for the first: session_base),
 *            - 32768. Its lower 16 bits are the id in `activity` - 1. Therefore many
 *            numbers are equal, and compress. If a value does not fit, `wide` has 32 bits for
 *            the session itself and 32 for the activity.
 *   ages     NULL means the age of the sample before, -1 none. NULLs at the end are
 *            left out.
 *   starts   The samples start_at have their own. The others have begun nothing since
 *            the tick before, and have its starts. All samples have their own in
 *            the first tick of a minute or of a partition. The same holds for a tick
 *            behind one that failed or is_apart (the clock was set back behind it).
 *            In xact_starts and state_changes NULL means the query start, the least
 *            bigint none.
 *
 * status NULL is 1 (ok). Times are relative to start_ms.
 */
create view tacho.hot_pack as
select
	h.tick as first_tick,
	h.start_ms,
	h.start_ms as last_ms,
	h.slot,
	1::smallint as n_ticks,
	h.interval_ms,
	case when h.status = 3 then 0 else h.interval_ms end as observed_ms,
	case when h.status = 3 then h.interval_ms else 0 end as failed_ms,
	case when h.status = 3 then 1 else 0 end::smallint as n_failed,
	null::integer[] as tick_offsets,
	null::integer[] as time_offsets,
	null::integer[] as intervals,
	case when h.status is not null then array[h.status] end as statuses,
	case when h.reason is not null then array[h.reason] end as reasons,
	case when h.vcpus_x100 is not null then array[h.vcpus_x100] end as vcpus_x100,
	case when h.connections is not null then array[h.connections] end as connections,
	case when h.wide is null then array(
			select h.session_base + (sum((s >> 16) + 32768) over (order by o))::integer
			from unnest(h.samples) with ordinality u (s, o)
			order by o)
		else array(select (w >> 32)::integer from unnest(h.wide) w) end as sessions,
	case when h.wide is null and h.samples is null then '{}' else array[0::smallint] end as run_ats,
	case when h.wide is null and h.samples is null then '{}'
		else array[coalesce(cardinality(h.samples), cardinality(h.wide))::smallint] end as run_lens,
	case when h.wide is null then array(select ((s & 65535) - 32768)::smallint from unnest(h.samples) s) end as what,
	case when h.wide is not null then array(select (w & 4294967295)::integer from unnest(h.wide) w) end as wide,
	h.blocked_at,
	h.blockers,
	h.waits
from tacho.hot h;
comment on view tacho.hot_pack is 'hot rows in the format of pack, without starts and ages';

create function tacho._hot_samples(since_ms bigint, until_ms bigint)
returns table (
	start_ms bigint,
	n integer,
	session integer,
	activity integer,
	blocker integer,
	wait integer,
	query_start bigint,
	xact_start bigint,
	state_change bigint,
	xmin_age integer,
	xid_age integer
)
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with h as materialized (
		select * from tacho.hot h where h.start_ms >= since_ms / 60000 * 60000 and h.start_ms < until_ms
	), s as (
		select
			h.start_ms,
			h.slot,
			v.n,
			case when h.wide is null then h.session_base + (sum((v.s >> 16) + 32768) over (partition by h.start_ms order by v.n))::integer
				else (v.w >> 32)::integer end as session,
			case when h.wide is null then (v.s & 65535) + 1 else (v.w & 4294967295)::integer end as activity,
			v.xmin,
			v.xid,
			count(v.xmin) over (partition by h.start_ms order by v.n) as xmin_run,
			count(v.xid) over (partition by h.start_ms order by v.n) as xid_run
		from h, unnest(h.samples, h.wide, h.xmin_ages, h.xid_ages) with ordinality v (s, w, xmin, xid, n)
	), b as (
		select h.start_ms, b.n, b.blocker, b.wait from h, unnest(h.blocked_at, h.blockers, h.waits) b (n, blocker, wait)
	), f as (
		select
			h.start_ms,
			f.n,
			f.q + h.start_ms as query_start,
			case when f.x is null then f.q + h.start_ms when f.x > -9223372036854775808 then f.x + h.start_ms end as xact_start,
			case when f.c is null then f.q + h.start_ms when f.c > -9223372036854775808 then f.c + h.start_ms end as state_change
		from h, unnest(h.start_at, h.query_starts, h.xact_starts, h.state_changes) f (n, q, x, c)
	), runs as (
		select
			s.*,
			f.query_start,
			f.xact_start,
			f.state_change,
			count(f.n) over (partition by s.slot, s.start_ms / 60000, s.session order by s.start_ms, s.n) as run
		from s
		left join f on f.start_ms = s.start_ms and f.n = s.n
	), whole as (
		select
			r.start_ms,
			r.n::integer as n,
			r.session,
			r.activity,
			first_value(r.query_start) over execution as query_start,
			first_value(r.xact_start) over execution as xact_start,
			first_value(r.state_change) over execution as state_change,
			first_value(r.xmin) over (partition by r.start_ms, r.xmin_run order by r.n) as xmin,
			first_value(r.xid) over (partition by r.start_ms, r.xid_run order by r.n) as xid
		from runs r
		window execution as (partition by r.slot, r.start_ms / 60000, r.session, r.run order by r.start_ms, r.n)
	)
	select w.start_ms, w.n, w.session, w.activity, b.blocker, b.wait, w.query_start, w.xact_start, w.state_change,
		nullif(w.xmin, -1), nullif(w.xid, -1)
	from whole w
	left join b on b.start_ms = w.start_ms and b.n = w.n
	where w.start_ms >= since_ms;
end;
comment on function tacho._hot_samples is 'samples of hot rows, each with its starts and ages';

create function tacho._hot_packs(since_ms bigint, until_ms bigint)
returns setof tacho.pack
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select
		p.first_tick, p.start_ms, p.last_ms, p.slot, p.n_ticks, p.interval_ms, p.observed_ms, p.failed_ms, p.n_failed,
		p.tick_offsets, p.time_offsets, p.intervals, p.statuses, p.reasons, p.vcpus_x100, p.connections,
		p.sessions, p.run_ats, p.run_lens, p.what, p.wide, p.blocked_at, p.blockers, null::integer[],
		s.query_starts, s.xact_starts, s.state_changes, s.xmin_ages, s.xid_ages, p.waits
	from tacho.hot_pack p
	left join (
		select
			x.start_ms,
			array_agg(x.query_start - x.start_ms order by x.n) as query_starts,
			array_agg(x.xact_start - x.start_ms order by x.n) as xact_starts,
			array_agg(x.state_change - x.start_ms order by x.n) as state_changes,
			array_agg(x.xmin_age order by x.n) as xmin_ages,
			array_agg(x.xid_age order by x.n) as xid_ages
		from tacho._hot_samples(since_ms, until_ms) x
		group by x.start_ms
	) s on s.start_ms = p.start_ms
	where p.start_ms >= since_ms
		and p.start_ms < until_ms;
end;
comment on function tacho._hot_packs is 'hot rows in the format of pack';
