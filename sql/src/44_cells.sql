/*
 * 44_cells.sql - sums by key and bucket, from packs
 *
 * Dictionaries become arrays first. Element id of a slot's array is the share of that
 * row in the group number. It is far below zero if the row does not pass scope and
 * filters. A group number is key code * number of by codes + by code: the sum of the
 * shares of all sides. So a sample costs two array lookups and no join. Sums are made
 * pack by pack, where they are small.
 *
 * Locks: readers take access share locks on the partitions of a window before they look
 * at them, in the order of _lock_slots(). They keep them to the end of the transaction.
 * Rotation takes its locks without waiting, so there is no deadlock. It tries again
 * while readers are busy.
 */
create type tacho.observed as (
	bucket integer,
	observed_ms bigint,
	failed_ms bigint,
	n_observed bigint,
	n_failed bigint,
	last_ms bigint,
	last_interval_ms integer,
	vcpus_ms bigint,
	vcpus_x100 integer
);
comment on type tacho.observed is 'observed ticks of a bucket, and its last ticks';

create type tacho.cell as (
	key text,
	by_key text,
	bucket integer,
	sum_ms bigint,
	sessions bigint
);
comment on type tacho.cell is 'weight and most sessions in one tick of a key in a bucket; sessions null = not known';

create function tacho._slots(since_ms bigint, until_ms bigint)
returns table (slot smallint)
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select r.slot
	from (
		select
			r.slot,
			r.since_ms,
			lead(r.since_ms, 1, 9223372036854775807) over (order by r.generation) as next_ms
		from tacho.ring r
		where r.is_current or r.generation > 0
	) r
	where r.since_ms < _slots.until_ms
		and r.next_ms > _slots.since_ms;
end;
comment on function tacho._slots is 'partitions of the ring with ticks in a window';

create function tacho._lock_slots(since_us bigint, until_us bigint)
returns smallint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slots smallint[];
	v_again smallint[];
	v_tables text;
begin
	loop
		v_slots := array(select s.slot from tacho._slots(since_us / 1000, until_us / 1000 + 1) s order by s.slot);
		exit when v_slots = '{}';
		select string_agg(format('tacho.session_%1$s, tacho.activity_%1$s, tacho.awaited_%1$s, tacho.pack_%1$s', s), ', ')
		into v_tables
		from unnest(v_slots) s;
		execute format('lock table %s in access share mode', v_tables);
		v_again := array(select s.slot from tacho._slots(since_us / 1000, until_us / 1000 + 1) s order by s.slot);
		exit when v_again = v_slots;
	end loop;
	if current_setting('transaction_isolation') in ('repeatable read', 'serializable')
		and (select last_value > 1 or is_called from tacho.generation)
		and (select last_value from tacho.generation) > (select max(generation) from tacho.ring)
	then
		raise exception 'history was rotated after the snapshot of this transaction'
			using errcode = 'serialization_failure',
				hint = 'Ask again in a new transaction, or in one of isolation level read committed.';
	end if;
	return v_slots;
end
$$;
comment on function tacho._lock_slots is 'partitions of the ring with ticks in a window, locked against rotation';

-- Root of the queue of every blocked sample: the session at its head, -1 if sessions
-- block each other, 0 if the sample is not blocked.
create function tacho._roots(sessions integer[], blocked_at integer[], blockers integer[], at integer[], n_ticks integer)
returns integer[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	with recursive edge as (
		select
			b.n,
			at[b.n] % n_ticks as t,
			sessions[at[b.n] / n_ticks + 1] as session,
			b.blocker
		from unnest(blocked_at, blockers) b (n, blocker)
	), walk as (
		select e.n, e.t, e.blocker as head, array[e.session] as seen
		from edge e
		union all
		select w.n, w.t, e.blocker, w.seen || w.head
		from walk w
		join edge e on e.t = w.t and e.session = w.head
		where w.head <> all (w.seen)
	), roots as (
		select distinct on (w.n) w.n, case when w.head = any (w.seen) then -1 else w.head end as root
		from walk w
		order by w.n, cardinality(w.seen) desc
	)
	select array_agg(coalesce(r.root, 0) order by i)
	from generate_subscripts(at, 1) i
	left join roots r on r.n = i;
end;
comment on function tacho._roots is 'for each sample of a pack the session at the head of its queue';

create function tacho._blockers(blocked_at integer[], blockers integer[], at integer[])
returns integer[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select array_agg(coalesce(b.blocker, 0) order by i)
	from generate_subscripts(at, 1) i
	left join unnest(blocked_at, blockers) b (n, blocker) on b.n = i;
end;
comment on function tacho._blockers is 'for each sample of a pack the session that blocks it, 0 = none';

create function tacho._side_of(dimension text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select case when d.side = 'blocker' then d.name else d.side end
	from tacho.dimension d
	where d.name = dimension;
end;
comment on function tacho._side_of is 'dictionary that has the values of a dimension';

-- CTEs that turn a dictionary into an array per slot; see the head of this file. For
-- blockers the array has one more element at each end: -1 for a cycle, 0 for no
-- blocker.
create function tacho._map_sql(
	q tacho.question,
	side text,
	slots smallint[],
	dimension text,
	by text,
	marked boolean
)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_has_key constant boolean := coalesce(tacho._side_of(dimension) = side, false);
	v_has_by constant boolean := coalesce(tacho._side_of(by) = side, false);
	v_is_blocker constant boolean := side in ('blocked_by', 'root_blocker');
	v_table constant text := case when side = 'activity' then 'activity' else 'session' end;
	v_key constant text := case when v_has_key then (select d.expression from tacho.dimension d where d.name = dimension) else 'null' end;
	v_by constant text := case when v_has_by then (select d.expression from tacho.dimension d where d.name = by) else 'null' end;
	v_rows text;
	v_accept text := tacho._side_sql(q, side, marked);
begin
	v_rows := format('select slot, id, (%s) collate "C" as k, (%s) collate "C" as b from tacho.%s where slot = any (%L) and %s',
		v_key, v_by, v_table, slots, case when v_is_blocker then 'true' else v_accept end);
	if v_is_blocker then
		select coalesce(string_agg(tacho._accept_sql('coalesce(k, b)', f), ' and '), 'true')
		into v_accept
		from jsonb_array_elements(q.filters) f
		where f ->> 'dimension' = side;
		v_rows := format($sql$
			select slot, id, case when %3$L then p end as k, case when %4$L then p end as b from (
				select slot, id, nullif(pid, 0)::text collate "C" as p from tacho.session where slot = any (%1$L)
				union all
				select s, i, case i when -1 then '(cycle)' end from unnest(%1$L::smallint[]) s, unnest(array[-1, 0]) i
			) x where %2$s$sql$,
			slots, replace(v_accept, 'coalesce(k, b)', 'p'), v_has_key, v_has_by);
	end if;
	return format($sql$
		%1$s_d as materialized (
			select
				slot,
				id,
				k,
				b,
				dense_rank() over (order by k nulls last) - 1 as kc,
				dense_rank() over (order by b nulls last) - 1 as bc
			from (%2$s) x
		),
		%1$s_n as materialized (
			select %3$s as n
		),
		%1$s_m as materialized (
			select s.slot, array(
				select coalesce(%4$s, -1000000000000000)
				from generate_series(%5$s, (select max(id) from tacho.%6$s x where x.slot = s.slot)) i
				left join %1$s_d d on d.slot = s.slot and d.id = i
				order by i
			)::bigint[] as v
			from unnest(%7$L::smallint[]) s (slot)
		)$sql$,
		side, v_rows,
		case when v_has_by then format('coalesce((select max(bc) + 1 from %s_d), 1)', side) else '1::bigint' end,
		case when v_has_key and v_has_by then format('d.kc * (select n from %s_n) + d.bc', side)
			when v_has_key then format('d.kc * (select n from %s_n)', coalesce(tacho._side_of(by), side))
			when v_has_by then 'd.bc'
			else '0 * d.kc' end,
		case when v_is_blocker then -1 else 1 end,
		v_table,
		slots);
end
$$;
comment on function tacho._map_sql is 'CTEs that map the rows of a dictionary to group numbers';

-- The weight and the bucket of each tick of a pack; ticks of bucket -1 do not count.
create function tacho._ticks_sql(q tacho.question)
returns text
language sql immutable parallel safe
return format($sql$
	select
		array_agg(case when x.status <> 3 and x.ms >= %1$s and x.ms < %2$s then %3$s else -1 end order by x.i) as b,
		array_agg(x.weight order by x.i) as w
	from (
		select
			i,
			p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms,
			coalesce(p.intervals[i], p.interval_ms)::bigint as weight,
			coalesce(p.statuses[i], 1) as status
		from generate_series(1, p.n_ticks) i
		offset 0
	) x$sql$,
	ceil(q.since_us / 1000.0)::bigint, ceil(q.until_us / 1000.0)::bigint, tacho._bucket_sql(q, 'x.ms'));
comment on function tacho._ticks_sql is 'SQL: arrays of the ticks of pack p';

create function tacho._positions_sql(pack text)
returns text
language sql immutable parallel safe
return format('select array(select generate_series(r.a, r.a + r.n - 1) from unnest(%1$s.run_ats, %1$s.run_lens) r (a, n)) as at offset 0', pack);
comment on function tacho._positions_sql is 'SQL: array of the positions of the samples of a pack';

create function tacho._packs_sql(q tacho.question, slots smallint[], columns text)
returns text
language sql immutable parallel safe
return format($sql$
	select %1$s from tacho.hot_pack where start_ms < %2$s and start_ms >= %3$s and slot = any (%4$L)
	union all
	select %1$s from tacho.pack where start_ms < %2$s and start_ms >= %3$s - 3600000 and last_ms >= %3$s and slot = any (%4$L)$sql$,
	columns, ceil(q.until_us / 1000.0)::bigint, ceil(q.since_us / 1000.0)::bigint, slots);
comment on function tacho._packs_sql is 'SQL: hot and packed rows with ticks in the window';

-- The rows are ordered by their begin. Packs are read one by one in this order, so a
-- reader that stops early reads no others.
create function tacho._whole_packs_sql(q tacho.question, slots smallint[], ordered text default '')
returns text
language sql immutable parallel safe
return format($sql$
	select
		x.slot,
		coalesce(x.packs, array(
			select p
			from tacho.pack p
			where p.slot = x.slot and p.start_ms = x.start_ms and p.first_tick = x.first_tick)) as packs
	from (
		select slot, max(start_ms) as start_ms, null::bigint as first_tick, array_agg(h order by start_ms) as packs
		from tacho._hot_packs(%2$s, %1$s) h
		where slot = any (%3$L)
		group by slot, start_ms / 60000
		union all
		select slot, start_ms, first_tick, null
		from tacho.pack
		where start_ms < %1$s and start_ms >= %2$s - 3600000 and last_ms >= %2$s and slot = any (%3$L)
		%4$s
		offset 0
	) x$sql$,
	ceil(q.until_us / 1000.0)::bigint, ceil(q.since_us / 1000.0)::bigint, slots, ordered);
comment on function tacho._whole_packs_sql is 'SQL: the same rows with all columns, starts and ages too; hot rows of one minute are joined';

-- How samples of packs are found: all; pieces, which belong to the sessions that count; or
-- hits, which are the places of the few activities that count. To search a pack for one
-- activity costs a tenth of reading all of it.
create function tacho._form(q tacho.question, slots smallint[], sides text[])
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_filtered constant text[] := array(select tacho._side_of(f ->> 'dimension') from jsonb_array_elements(q.filters) f);
	v_few boolean;
begin
	if cardinality(sides) > 2 then
		return 'all';
	end if;
	if 'activity' = any (v_filtered) then
		execute format('select count(*) <= 10 from (select from tacho.activity where slot = any (%L) and %s limit 11) a',
			slots, tacho._side_sql(q, 'activity', false))
		into v_few;
		if v_few then
			return 'hits';
		end if;
	end if;
	return case when 'session' = any (v_filtered) then 'pieces' else 'all' end;
end
$$;
comment on function tacho._form is 'how the samples of packs are found';

create function tacho._samples_of_sql(form text, blocker_sides text[])
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select case form
		when 'pieces' then $sql$
			cross join lateral (
				select
					array_agg(g.a) as ats,
					array_agg(least(r.a + r.n, (g.s + 1) * p.n_ticks) - g.a) as lens,
					array_agg((r.o + g.a - r.a)::integer) as offsets,
					p.what || '{}'::smallint[] as what,
					p.wide || '{}'::integer[] as wide
				from (
					select u.a::integer, u.n, sum(u.n) over (order by u.a) - u.n + 1 as o
					from unnest(p.run_ats, p.run_lens) u (a, n)
				) r
				cross join lateral (
					select s, greatest(r.a, s * p.n_ticks) as a
					from generate_series(r.a / p.n_ticks, (r.a + r.n - 1) / p.n_ticks) s
				) g
				where s.v is null or s.v[g.s + 1] >= 0
				offset 0
			) f$sql$
		when 'hits' then format($sql$
			cross join lateral (
				select w.what, w.wide, array(
					select unnest(case when w.what is null then array_positions(w.wide, d.id)
						when d.id <= 65536 then array_positions(w.what, (d.id - 32769)::smallint) end)
					from activity_d d
					where d.slot = p.slot) as hits
				from (select p.what || '{}'::smallint[] as what, p.wide || '{}'::integer[] as wide offset 0) w
				offset 0
			) f
			cross join lateral (select case when f.hits <> '{}' then (%s) end as at offset 0) a$sql$, tacho._positions_sql('p'))
		else format('cross join lateral (%s) a ', tacho._positions_sql('p')) || (
			select coalesce(string_agg(format('cross join lateral (select case when p.blocked_at is not null then %1$s end as x offset 0) %2$s_x',
				case x when 'blocked_by' then 'tacho._blockers(p.blocked_at, p.blockers, a.at)'
					else 'tacho._roots(p.sessions, p.blocked_at, p.blockers, a.at, p.n_ticks)' end, x), ' '), '')
			from unnest(blocker_sides) x)
	end;
end;
comment on function tacho._samples_of_sql is 'SQL: arrays of the samples of pack p, by their form; s.v says which sessions count';

create function tacho._raw_cells(q tacho.question, dimension text, by text)
returns setof tacho.cell
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slots smallint[];
	v_sides text[] := array['activity', 'session'];
	v_extra text;
	v_form text;
	v_sql text;
begin
	if q.n_buckets = 0 then
		return;
	end if;
	v_slots := tacho._lock_slots(q.since_us, q.until_us);
	if v_slots = '{}' then
		return;
	end if;
	for v_extra in select d.name from tacho.dimension d where d.side = 'blocker' order by d.position loop
		if v_extra in (dimension, by)
			or jsonb_path_exists(q.filters, '$[*] ? (@.dimension == $d)', jsonb_build_object('d', v_extra))
		then
			v_sides := v_sides || v_extra;
		end if;
	end loop;
	v_form := tacho._form(q, v_slots, v_sides);

	v_sql := 'with recursive ' || (
		select string_agg(tacho._map_sql(q, side, v_slots, dimension, by, false), ', ')
		from unnest(v_sides) side
	) || format($sql$,
		p as (%1$s)
		select k.k, b.b, g.bucket, g.sum_ms, g.sessions
		from (
			select r.gid, r.bucket, sum(r.sum_ms)::bigint as sum_ms, max(r.sessions) as sessions
			from p
			join activity_m on activity_m.slot = p.slot
			join session_m on session_m.slot = p.slot
			%2$s
			cross join lateral (%3$s) t
			cross join lateral (
				select case when bool_or(session_m.v[x] <> 0) then array_agg(session_m.v[x]) end as v
				from unnest(p.sessions) x
				offset 0
			) s
			%4$s
			cross join lateral (
				select u.gid_t / p.n_ticks as gid, t.b[u.gid_t %% p.n_ticks + 1] as bucket,
					sum(u.n * t.w[u.gid_t %% p.n_ticks + 1])::bigint as sum_ms, max(u.n) as sessions
				from (
					select y.gid * p.n_ticks + y.a %% p.n_ticks as gid_t, count(*) as n
					from (
						select
							x.a,
							activity_m.v[coalesce(x.w + 32769, x.wide)]
								+ case when s.v is null then 0 else s.v[x.a / p.n_ticks + 1] end %5$s as gid
						from (%6$s) x
						offset 0
					) y
					where y.gid >= 0
					group by 1
				) u
				where t.b[u.gid_t %% p.n_ticks + 1] >= 0
				group by 1, 2
			) r
			group by r.gid, r.bucket
		) g
		left join (select distinct kc, k from %7$s_d) k on k.kc = g.gid / (select n from %8$s_n)
		left join (select distinct bc, b from %8$s_d) b on b.bc = g.gid %% (select n from %8$s_n)$sql$,
		tacho._packs_sql(q, v_slots, 'slot, start_ms, last_ms, n_ticks, interval_ms, tick_offsets, time_offsets, intervals, statuses, sessions, run_ats, run_lens, what, wide, blocked_at, blockers'),
		(select string_agg(format('join %1$s_m on %1$s_m.slot = p.slot', x), ' ') from unnest(v_sides[3:]) x),
		tacho._ticks_sql(q),
		tacho._samples_of_sql(v_form, v_sides[3:]),
		(select string_agg(format('+ %1$s_m.v[coalesce(x.%1$s_b, 0) + 2]', x), ' ') from unnest(v_sides[3:]) x),
		case v_form
			when 'pieces' then 'select generate_series(r.a, r.a + r.n - 1) as a, unnest(f.what[r.o:r.o + r.n - 1]) as w, unnest(f.wide[r.o:r.o + r.n - 1]) as wide from unnest(f.ats, f.lens, f.offsets) r (a, n, o)'
			when 'hits' then 'select a.at[i] as a, f.what[i] as w, f.wide[i] as wide from unnest(f.hits) i'
			else 'select unnest(a.at) as a, unnest(p.what) as w, unnest(p.wide) as wide ' || (
				select coalesce(string_agg(format(', unnest(%1$s_x.x) as %1$s_b', x), ' '), '') from unnest(v_sides[3:]) x) end,
		coalesce(tacho._side_of(dimension), 'activity'),
		coalesce(tacho._side_of(by), tacho._side_of(dimension), 'activity'));
	return query execute v_sql using q.edges_us;
end
$$;
comment on function tacho._raw_cells is 'weight and most sessions in one tick by key and bucket, from the samples';

create function tacho._raw_observed(q tacho.question)
returns setof tacho.observed
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slots smallint[];
begin
	if q.n_buckets = 0 then
		return;
	end if;
	v_slots := tacho._lock_slots(q.since_us, q.until_us);
	if v_slots = '{}' then
		return;
	end if;
	return query execute format($sql$
		with p as (%1$s), whole as materialized (
			select *, start_ms >= %3$s and last_ms < %4$s and %5$s = %6$s as is_whole
			from p
		), pieces as (
			select
				%5$s as bucket,
				observed_ms::bigint,
				failed_ms::bigint,
				(n_ticks - n_failed)::bigint as n_observed,
				n_failed::bigint,
				last_ms,
				interval_ms as last_interval_ms,
				case when vcpus_x100 is not null then last_ms end as vcpus_ms,
				(select v from unnest(vcpus_x100) with ordinality u (v, o) where v > 0 order by o desc limit 1) as vcpus_x100
			from whole
			where is_whole
			union all
			select
				%2$s,
				case when status <> 3 then weight else 0 end,
				case when status = 3 then weight else 0 end,
				case when status <> 3 then 1 else 0 end,
				case when status = 3 then 1 else 0 end,
				ms,
				weight,
				case when vcpus > 0 then ms end,
				nullif(vcpus, 0)
			from whole p
			cross join lateral (
				select
					p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms,
					coalesce(p.intervals[i], p.interval_ms) as weight,
					coalesce(p.statuses[i], 1) as status,
					p.vcpus_x100[i] as vcpus
				from generate_series(1, p.n_ticks) i
			) x
			where not is_whole
				and ms >= %3$s
				and ms < %4$s
		)
		select
			bucket,
			sum(observed_ms)::bigint,
			sum(failed_ms)::bigint,
			sum(n_observed)::bigint,
			sum(n_failed)::bigint,
			max(last_ms),
			(array_agg(last_interval_ms order by last_ms desc))[1],
			max(vcpus_ms) filter (where vcpus_x100 is not null),
			(array_agg(vcpus_x100 order by vcpus_ms desc) filter (where vcpus_x100 is not null))[1]
		from pieces
		group by bucket$sql$,
		tacho._packs_sql(q, v_slots, 'start_ms, last_ms, n_ticks, interval_ms, observed_ms, failed_ms, n_failed, tick_offsets, time_offsets, intervals, statuses, vcpus_x100'),
		tacho._bucket_sql(q, 'x.ms'),
		ceil(q.since_us / 1000.0)::bigint,
		ceil(q.until_us / 1000.0)::bigint,
		tacho._bucket_sql(q, 'start_ms'),
		tacho._bucket_sql(q, 'last_ms'))
	using q.edges_us;
end
$$;
comment on function tacho._raw_observed is 'observed ticks by bucket, from the samples; only buckets with ticks';

create function tacho._interval_before(q tacho.question)
returns integer
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select p.interval_ms
	from (
		(select start_ms, interval_ms, start_ms as last_ms from tacho.hot where start_ms * 1000 < q.since_us order by start_ms desc limit 1)
		union all
		(select start_ms, interval_ms, last_ms from tacho.pack where start_ms < (q.since_us + 999) / 1000 order by start_ms desc limit 1)
		union all
		(select hour * 3600000::bigint, (select i from unnest(intervals_ms) with ordinality u (i, o) where i is not null order by o desc limit 1), last_ms
			from tacho.hour_tick where hour < q.since_us / 3600000000 order by hour desc limit 1)
	) p
	order by p.start_ms desc
	limit 1;
end;
comment on function tacho._interval_before is 'interval of the last tick before the window';
