/*
 * 51_ranking.sql - the largest keys of hours, by average
 *
 * top() of a month has 43,200 minutes of each key. Sums by hour decide which keys are
 * shown. Only the minutes of these keys are read, as numbers of words and minutes, never
 * as cells. The other keys are the whole load without these. Peak and 99th percentile
 * come from the number of times that each score occurs; there are few scores. Parts of
 * hours, and edges that samples answer, come as cells.
 */
create type tacho.chosen as (
	rank bigint,
	word integer,
	key text,
	sum_ms numeric,
	sessions bigint
);
comment on type tacho.chosen is 'a key that is shown; word is null when it has no hour rows';

-- Narrows the hours of a question to full hours.
create function tacho._full_hours(q tacho.question)
returns tacho.question
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_hour constant bigint := 3600000000;
begin
	q.hours_from_us := (q.hours_from_us + v_hour - 1) / v_hour * v_hour;
	q.hours_to_us := q.hours_to_us / v_hour * v_hour;
	return q;
end
$$;
comment on function tacho._full_hours is 'the same question, whose hours begin and end with an hour';

-- True when the ranking can be made from full hours.
create function tacho._ranks_hours(q tacho.question, order_by text)
returns boolean
language sql immutable parallel safe
return coalesce(order_by = 'avg'
	and q.filters = '[]'
	and q.edges_us is null
	and q.width_us % 60000000 = 0
	and (q.hours_from_us + 3599999999) / 3600000000 < q.hours_to_us / 3600000000, false);
comment on function tacho._ranks_hours is 'true when _rank_hours() can answer';

-- Cells outside the full hours of `f`; by_key is the key.
create function tacho._outside(q tacho.question, f tacho.question, dimension text)
returns setof tacho.cell
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_part tacho.question := q;
begin
	return query select * from tacho._raw_cells(tacho._edge(q, -1), null, dimension);
	if q.hours_from_us < f.hours_from_us then
		v_part.hours_to_us := f.hours_from_us;
		return query select * from tacho._hour_cells(v_part, null, dimension, true);
	end if;
	if f.hours_to_us < q.hours_to_us then
		v_part.hours_from_us := f.hours_to_us;
		v_part.hours_to_us := q.hours_to_us;
		return query select * from tacho._hour_cells(v_part, null, dimension, true);
	end if;
	return query select * from tacho._raw_cells(tacho._edge(q, 1), null, dimension);
end
$$;
comment on function tacho._outside is 'cells of the parts of hours at both ends of a window';

create function tacho._choose(f tacho.question, dimension text, outside tacho.cell[], n bigint)
returns setof tacho.chosen
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select row_number() over (order by sum(x.sum_ms) desc, x.key collate "C" nulls last), max(x.word), x.key, sum(x.sum_ms),
		case when bool_and(x.is_known) then max(x.sessions) end
	from (
		select w.id as word, w.value as key, sum(h.sum_ms) as sum_ms, max(h.sessions)::bigint as sessions, true as is_known
		from tacho.hour_key h
		join tacho.word w on w.id = h.key
		where h.dimension = (select d.position from tacho.dimension d where d.name = _choose.dimension)
			and h.hour >= f.hours_from_us / 3600000000
			and h.hour < f.hours_to_us / 3600000000
		group by w.id, w.value
		union all
		select null, o.by_key, o.sum_ms, o.sessions, o.sessions is not null
		from unnest(outside) o
	) x
	group by x.key
	order by 1
	limit n;
end;
comment on function tacho._choose is 'the n largest keys of a window, by their sums';

create function tacho._rank_hours(
	q tacho.question,
	dimension text,
	observed tacho.observed[],
	c tacho.coverage,
	n bigint
)
returns setof tacho.line
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set work_mem = '64MB'
as $$
declare
	f constant tacho.question := tacho._full_hours(q);
	v_outside constant tacho.cell[] := array(select o from tacho._outside(q, f, dimension) o);
	v_chosen constant tacho.chosen[] := array(select x from tacho._choose(f, dimension, v_outside, n) x);
	v_position constant smallint := (select d.position from tacho.dimension d where d.name = _rank_hours.dimension);
	v_least constant bigint := (select min(o.observed_ms) from unnest(observed) o where o.observed_ms > 0);
	-- buckets that were observed for equally long need no factor
	v_equal constant boolean := not exists (select from unnest(observed) o where o.observed_ms > v_least);
	v_score constant text := format(
		case when v_equal then 'x.ms * %s::%s' else 'x.ms * o.factor' end,
		div(c.lcm, v_least), tacho._score_type(observed, c));
	v_minutes constant text := format($sql$
		select %%s (h.hour * 60 + h.first_minute - 1 - %s + generate_series(1, cardinality(m.weights))) / %s as bucket,
			unnest(m.weights) * h.unit_ms::bigint as ms
		from tacho.hour_key h
		cross join lateral (select coalesce(h.wide, h.weights::integer[]) as weights offset 0) m
		%%s and h.hour >= %s and h.hour < %s$sql$,
		q.origin_us / 60000000, q.width_us / 60000000, f.hours_from_us / 3600000000, f.hours_to_us / 3600000000);
begin
	if v_least is null then
		return;
	end if;
	return query execute format($sql$
		with o as materialized (
			select bucket, div($3, observed_ms)::%1$s as factor
			from unnest($2)
			where observed_ms > 0
		), minutes as (
			%2$s
			union all
			select k.rank, e.bucket, e.sum_ms
			from unnest($4) e
			join unnest($1) k on k.key is not distinct from e.by_key
		), x as materialized (
			%6$s
		), scores as (
			select x.rank, %3$s as score, count(*) as n
			from x %4$s
			where x.ms > 0
			group by 1, 2
		), places as (
			select rank, score, (sum(n) over (partition by rank order by score desc))::bigint as place
			from scores
		), tops as (
			select rank, array_agg(score::numeric order by score desc) as scores, array_agg(place order by score desc) as places
			from places
			group by rank
		), rest as (
			select bucket, sum(ms)::bigint as ms
			from (
				%5$s
				union all
				select bucket, sum_ms from unnest($4)
				union all
				select bucket, -ms from x
			) y (bucket, ms)
			group by bucket
			having sum(ms) > 0
		), rest_scores as (
			select x.ms, (%3$s)::numeric as score
			from rest x %4$s
		)
		(
			select 0::bigint, k.rank, null::text, k.key, k.sum_ms, k.sessions, t.scores[1],
				coalesce(t.scores[width_bucket($5 - 1, t.places) + 1], 0) * (100 - 99 * ($6 - 1) %% 100)
					+ coalesce(t.scores[width_bucket(greatest($5 - 2, 0), t.places) + 1], 0) * (99 * ($6 - 1) %% 100)
			from unnest($1) k
			left join tops t on t.rank = k.rank
			order by k.rank
		)
		union all
		select 0, 0, null, null, sum(ms), null, max(score), tacho._p99(array_agg(score order by score desc), $6)
		from rest_scores
		having count(*) > 0$sql$,
		tacho._score_type(observed, c),
		format(v_minutes, 'k.rank,', format('join unnest($1) k on k.word = h.key where h.dimension = %s', v_position)),
		v_score,
		case when v_equal then '' else 'join o on o.bucket = x.bucket' end,
		format(v_minutes, '', 'where h.dimension = 0'),
		case when q.width_us = 60000000 then 'select * from minutes'
			else 'select rank, bucket, sum(ms)::bigint as ms from minutes group by rank, bucket' end)
	using v_chosen, observed, c.lcm, v_outside, c.n_buckets - 99 * (c.n_buckets - 1) / 100, c.n_buckets;
end
$$;
comment on function tacho._rank_hours is 'the n largest keys of a dimension as by_key, and one line with by_n 0 for the rest; see _ranks_hours()';
