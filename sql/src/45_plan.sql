/*
 * 45_plan.sql - the part of a window that hour rows answer, and their sums
 *
 * Hour rows answer for full minutes (queries: full hours), with scope load, in two
 * cases. In the first, keys and filters together have one dimension, and hour rows are
 * kept for it. In the second, the question is about query ids and wait events in buckets
 * of hours. Samples answer everything else, and the edges of the window. If neither can
 * answer exactly, an error names the boundary. Only peak_sessions may be null: hour rows
 * do not have it for a part of an hour.
 */
create function tacho._raw_first_us()
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(min(r.since_ms), 0) * 1000
	from tacho.ring r
	where r.is_current or r.generation > 0;
end;
comment on function tacho._raw_first_us is 'samples are kept from this time on';

-- Dimensions a question is about.
create function tacho._names(q tacho.question, dimension text, by text)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select array(
		select f ->> 'dimension' from jsonb_array_elements((q).filters) f
		union
		select d from unnest(array[dimension, by]) d where d is not null);
end;
comment on function tacho._names is 'dimensions of a question: keys and filters';

create function tacho._aligned(q tacho.question, unit_us bigint)
returns boolean
language sql immutable parallel safe
return q.width_us % unit_us = 0
	and case when q.edges_us is null then q.origin_us % unit_us = 0
		else not exists (select from unnest(q.edges_us) e where e % unit_us <> 0) end;
comment on function tacho._aligned is 'true when no unit is in two buckets';

create function tacho._not_kept(raw_us bigint, names text[], q tacho.question)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
	raise exception 'history before % is kept by hour', tacho._time_text(raw_us)
		using errcode = 'invalid_parameter_value',
			detail = format('Hour rows have scope load only. They answer for one dimension of %s at a time in buckets of full minutes, and for query_id with wait_event in buckets of full hours. This question is about scope %s and %s from %s on.',
				(select string_agg(d.name, ', ' order by d.position) from tacho.dimension d where d.in_hours),
				q.scope, coalesce(nullif(array_to_string(names, ', '), ''), 'the whole load'), tacho._time_text(q.since_us)),
			hint = format('Ask with since => %L, or with fewer filters, a wider bucket, or a window that begins at a full minute.', tacho._time_text(raw_us));
end
$$;
comment on function tacho._not_kept is 'complains';

-- `fine`: each bucket needs its most sessions in a tick.
create function tacho._plan(q tacho.question, dimension text, by text, fine boolean)
returns tacho.question
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_hour constant bigint := 3600000000;
	v_names constant text[] := tacho._names(q, dimension, by);
	v_raw_us constant bigint := tacho._raw_first_us();
	v_done_us constant bigint := (select ms * 1000 from tacho.watermark where name = 'hour');
	v_is_pair constant boolean := v_names <@ array['query_id', 'wait_event'] and cardinality(v_names) = 2;
	v_unit_us constant bigint := case when v_is_pair then v_hour else 60000000 end;
	-- most sessions in a tick are kept by minute, of queries by hour
	v_step_us constant bigint := case when 'query_id' = any (v_names) then v_hour else v_unit_us end;
	v_possible boolean;
begin
	v_possible := q.scope = 'load'
		and not q.by_leader
		and (v_is_pair or cardinality(v_names) <= 1)
		and not exists (select from unnest(v_names) n where n not in (select d.name from tacho.dimension d where d.in_hours))
		and tacho._aligned(q, v_unit_us);
	if v_possible and not (fine and not tacho._aligned(q, v_hour) and 'query_id' = any (v_names) and q.since_us >= v_raw_us) then
		q.hours_from_us := ceil(q.since_us::numeric / v_step_us)::bigint * v_step_us;
		q.hours_to_us := least(floor(q.until_us::numeric / v_step_us)::bigint * v_step_us, v_done_us);
		if q.hours_from_us < v_raw_us and q.hours_from_us > q.since_us then
			q.hours_from_us := q.since_us;
		end if;
		if q.hours_to_us < v_raw_us and q.hours_to_us < q.until_us then
			q.hours_to_us := least(q.until_us, v_done_us);
		end if;
		v_possible := q.hours_from_us % v_unit_us = 0 and (q.hours_to_us % v_unit_us = 0);
		if q.hours_from_us >= q.hours_to_us or not v_possible then
			q.hours_from_us := null;
			q.hours_to_us := null;
		end if;
	end if;
	if q.since_us < v_raw_us and q.hours_from_us is null and exists (
		select from tacho.hour_tick h
		where h.hour >= q.since_us / v_hour
			and h.hour < v_raw_us / v_hour + 1
			and h.hour * v_hour < q.until_us)
	then
		perform tacho._not_kept(v_raw_us, v_names, q);
	end if;
	return q;
end
$$;
comment on function tacho._plan is 'decides which part of the window hour rows answer';

create function tacho._only_hours(q tacho.question)
returns boolean
language sql immutable parallel safe
return coalesce(q.hours_from_us = q.since_us and q.hours_to_us = q.until_us, false);
comment on function tacho._only_hours is 'true when hour rows answer all of a question';

create function tacho._source(q tacho.question, n_observed bigint)
returns text
language sql immutable parallel safe
return case
	when n_observed = 0 then 'none'
	when q.hours_from_us is null then 'raw'
	when tacho._only_hours(q) then 'hour'
	else 'raw, hour'
end;
comment on function tacho._source is 'origin of the figures';

-- The part of a question outside the hours: before (-1) or behind (1).
create function tacho._edge(q tacho.question, side integer)
returns tacho.question
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
	if side < 0 then
		q.until_us := q.hours_from_us;
	else
		q.since_us := q.hours_to_us;
	end if;
	if q.since_us >= q.until_us then
		q.n_buckets := 0;
	end if;
	return q;
end
$$;
comment on function tacho._edge is 'an edge of the window, with the same buckets';

create function tacho._hour_observed(q tacho.question)
returns setof tacho.observed
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_minutes constant text := format($sql$
		select %1$s as bucket, m.*
		from (
			select h.hour * 3600000::bigint + (i.o - 1) * 60000 as ms, i.*
			from tacho.hour_tick h
			cross join lateral unnest(h.observed_ms, h.failed_ms, h.n_observed, h.n_failed, h.intervals_ms, h.vcpus_x100)
				with ordinality i (observed_ms, failed_ms, n_observed, n_failed, interval_ms, vcpus, o)
			where h.hour between %2$s and %3$s
				and i.interval_ms is not null
			offset 0
		) m
		where m.ms >= %4$s
			and m.ms < %5$s$sql$,
		tacho._bucket_sql(q, 'm.ms'),
		q.hours_from_us / 3600000000, (q.hours_to_us - 1) / 3600000000, q.hours_from_us / 1000, q.hours_to_us / 1000);
begin
	if q.width_us = 60000000 and q.edges_us is null then
		-- a month has 43,200 of them
		return query execute format($sql$
			select bucket, observed_ms::bigint, failed_ms::bigint, n_observed::bigint, n_failed::bigint, ms, interval_ms,
				case when vcpus > 0 then ms end, case when vcpus > 0 then vcpus end
			from (%s) x$sql$, v_minutes);
		return;
	end if;
	return query execute format($sql$
		select
			x.bucket,
			sum(x.observed_ms)::bigint,
			sum(x.failed_ms)::bigint,
			sum(x.n_observed)::bigint,
			sum(x.n_failed)::bigint,
			max(x.ms),
			(array_agg(x.interval_ms order by x.ms desc))[1],
			max(x.ms) filter (where x.vcpus > 0),
			(array_agg(x.vcpus order by x.ms desc) filter (where x.vcpus > 0))[1]
		from (%s) x
		group by x.bucket$sql$, v_minutes)
	using q.edges_us;
end
$$;
comment on function tacho._hour_observed is 'observed ticks by bucket, from hour rows';

create function tacho._observed(q tacho.question)
returns setof tacho.observed
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	if q.hours_from_us is null then
		return query select * from tacho._raw_observed(q);
		return;
	elsif tacho._only_hours(q) then
		return query select * from tacho._hour_observed(q);
		return;
	end if;
	return query
		select
			o.bucket,
			sum(o.observed_ms)::bigint,
			sum(o.failed_ms)::bigint,
			sum(o.n_observed)::bigint,
			sum(o.n_failed)::bigint,
			max(o.last_ms),
			(array_agg(o.last_interval_ms order by o.last_ms desc))[1],
			max(o.vcpus_ms),
			(array_agg(o.vcpus_x100 order by o.vcpus_ms desc) filter (where o.vcpus_x100 is not null))[1]
		from (
			select * from tacho._raw_observed(tacho._edge(q, -1))
			union all
			select * from tacho._hour_observed(q)
			union all
			select * from tacho._raw_observed(tacho._edge(q, 1))
		) o
		group by o.bucket;
end
$$;
comment on function tacho._observed is 'observed ticks by bucket';

-- Keys of words that pass the filters of a dimension.
create function tacho._word_sql(q tacho.question, dimension text, word text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(string_agg(tacho._accept_sql(word, f), ' and '), 'true')
	from jsonb_array_elements((q).filters) f
	where f ->> 'dimension' = dimension;
end;
comment on function tacho._word_sql is 'SQL: a word passes the filters of a dimension';

create function tacho._hour_cells(q tacho.question, dimension text, by text, fine boolean)
returns setof tacho.cell
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_name constant text := (tacho._names(q, dimension, by))[1];
	v_position constant smallint := coalesce((select d.position from tacho.dimension d where d.name = v_name), 0);
	v_by_word constant boolean := v_position = 0 or dimension is not null or by is not null;
	v_rows text;
begin
	-- one row a key and minute
	v_rows := format($sql$
		select %1$s, %2$s, %3$s as bucket, m.weight, m.sessions, h.key as word
		from tacho.hour_key h
		join tacho.word w on w.id = h.key and %4$s
		cross join lateral (
			select
				h.hour * 3600000::bigint + (h.first_minute + i.o - 1) * 60000 as ms,
				coalesce(i.weight, i.wide) * h.unit_ms::bigint as weight,
				(case when %5$L and h.hour * 3600000::bigint >= %6$s and (h.hour + 1) * 3600000::bigint <= %7$s
					then h.sessions else h.peaks[i.o] end)::bigint as sessions
			from (
				select generate_series(1, coalesce(cardinality(h.weights), cardinality(h.wide))) as o,
					unnest(h.weights) as weight,
					unnest(h.wide) as wide
			) i
		) m
		where h.dimension = %8$s
			and h.hour between %9$s and %10$s
			and m.weight > 0 %11$s$sql$,
		case when dimension is not null then 'w.value' else 'null::text' end || ' as key',
		case when by is not null then 'w.value' else 'null::text' end || ' as by_key',
		tacho._bucket_sql(q, 'm.ms'),
		tacho._word_sql(q, v_name, 'w.value'),
		not fine,
		q.hours_from_us / 1000,
		q.hours_to_us / 1000,
		v_position,
		q.hours_from_us / 3600000000,
		(q.hours_to_us - 1) / 3600000000,
		case when q.hours_from_us % 3600000000 + q.hours_to_us % 3600000000 > 0
			then format('and m.ms >= %s and m.ms < %s', q.hours_from_us / 1000, q.hours_to_us / 1000) end);
	if v_by_word and q.width_us = 60000000 then
		return query execute format('select key, by_key, bucket, weight, sessions from (%s) x', v_rows) using q.edges_us;
	else
		return query execute format($sql$
			select key, by_key, bucket, sum(weight)::bigint, case when %s count(*) = count(sessions) then max(sessions) end
			from (%s) x
			group by key, by_key, bucket$sql$,
			case when not v_by_word then 'count(distinct word) = 1 and' end, v_rows)
		using q.edges_us;
	end if;
end
$$;
comment on function tacho._hour_cells is 'weight and most sessions by key and bucket, from hour rows of one dimension';

create function tacho._pair_cells(q tacho.question, dimension text, by text)
returns setof tacho.cell
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_key constant text := case dimension when 'query_id' then 'qw.value' when 'wait_event' then 'ww.value' else 'null::text' end;
	v_by constant text := case by when 'query_id' then 'qw.value' when 'wait_event' then 'ww.value' else 'null::text' end;
begin
	return query execute format($sql$
		select
			%1$s,
			%2$s,
			%3$s,
			sum(p.weight * h.unit_ms::bigint)::bigint,
			case when count(distinct (h.query, p.wait)) = 1 then max(p.sessions)::bigint end
		from tacho.hour_pair h
		join tacho.word qw on qw.id = h.query and %4$s
		cross join lateral unnest(h.waits, h.sessions, h.weights) p (wait, sessions, weight)
		join tacho.word ww on ww.id = p.wait and %5$s
		where h.hour between %6$s and %7$s
		group by 1, 2, 3$sql$,
		v_key, v_by, tacho._bucket_sql(q, 'h.hour * 3600000::bigint'),
		tacho._word_sql(q, 'query_id', 'qw.value'),
		tacho._word_sql(q, 'wait_event', 'ww.value'),
		q.hours_from_us / 3600000000,
		(q.hours_to_us - 1) / 3600000000)
	using q.edges_us;
end
$$;
comment on function tacho._pair_cells is 'weight and most sessions by key and bucket, from pairs of query and wait';

create function tacho._pieces(q tacho.question, dimension text, by text, fine boolean)
returns setof tacho.cell
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	return query select * from tacho._raw_cells(tacho._edge(q, -1), dimension, by);
	if cardinality(tacho._names(q, dimension, by)) = 2 then
		return query select * from tacho._pair_cells(q, dimension, by);
	else
		return query select * from tacho._hour_cells(q, dimension, by, fine);
	end if;
	return query select * from tacho._raw_cells(tacho._edge(q, 1), dimension, by);
end
$$;
comment on function tacho._pieces is 'cells of the hours and both edges; a bucket may come in several';

create function tacho._cells(q tacho.question, dimension text, by text, fine boolean default false)
returns setof tacho.cell
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	if q.hours_from_us is null then
		return query select * from tacho._raw_cells(q, dimension, by);
	elsif tacho._only_hours(q) and cardinality(tacho._names(q, dimension, by)) <= 1 then
		return query select * from tacho._hour_cells(q, dimension, by, fine);
	elsif q.width_us = 60000000 then
		return query select * from tacho._pieces(q, dimension, by, fine);
	else
		return query
			select p.key, p.by_key, p.bucket, sum(p.sum_ms)::bigint, case when count(*) = count(p.sessions) then max(p.sessions) end
			from tacho._pieces(q, dimension, by, fine) p
			group by p.key, p.by_key, p.bucket;
	end if;
end
$$;
comment on function tacho._cells is 'weight and most sessions in one tick by key and bucket';
