/*
 * 59_compat.sql - the keys of pg_ash's report, by its rules
 *
 * Classes are CPU, IO, IPC, Lock and LWLock, with their sum as total; buckets are
 * minutes. Extremes of the total come from the summed minutes. Events and queries come
 * from the extreme minutes.
 */
create type tacho.compat_extreme as (
	extreme text,
	name text,
	score numeric,
	minutes integer[]
);
comment on type tacho.compat_extreme is 'an extreme of a class or of all: its thousandfold score, and the minutes that reach it';

create function tacho._classes()
returns table (name text, class text)
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select c.*
	from (values ('total', null), ('cpu', 'CPU'), ('io', 'IO'), ('ipc', 'IPC'), ('lock', 'Lock'), ('lwlock', 'LWLock')) c;
end;
comment on function tacho._classes is 'names in the part compat, and classes of waits';

create function tacho._extremes()
returns table (name text, per_mille integer)
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select e.* from (values ('worst1m', 1000), ('p99', 990), ('p999', 999)) e;
end;
comment on function tacho._extremes is 'names of extremes, and their percentiles';

-- percentile_cont of n values, thousandfold. Only the highest values are given, in
-- descending order; the others are zero.
create function tacho._percentile(scores numeric[], n bigint, per_mille integer)
returns numeric
language sql immutable parallel safe
return coalesce(scores[n - per_mille * (n - 1) / 1000], 0) * (1000 - per_mille * (n - 1) % 1000)
	+ coalesce(scores[greatest(n - per_mille * (n - 1) / 1000 - 1, 1)], 0) * (per_mille * (n - 1) % 1000);
comment on function tacho._percentile is 'thousandfold percentile of scores';

create function tacho._round_to(num numeric, den numeric, digits integer)
returns text
language sql immutable parallel safe
return round(div(num * 2 * 10::numeric ^ digits + den, den * 2) / 10::numeric ^ digits, digits)::text;
comment on function tacho._round_to is 'num / den with that number of digits, rounded half up';

-- Cells have the class as key, and the dimension asked for as by_key.
create function tacho._compat_extremes(cells tacho.cell[], observed tacho.observed[], c tacho.coverage)
returns setof tacho.compat_extreme
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with minutes as materialized (
		select l.name, x.bucket, sum(x.sum_ms) * div((c).lcm, o.observed_ms) as score
		from tacho._classes() l
		join unnest(cells) x on x.key = l.class or l.class is null
		join unnest(observed) o on o.bucket = x.bucket and o.observed_ms > 0
		group by l.name, x.bucket, o.observed_ms
	), scores as materialized (
		select e.name as extreme, e.per_mille, l.name,
			tacho._percentile((select array_agg(m.score order by m.score desc) from minutes m where m.name = l.name),
				(c).n_buckets, e.per_mille) as score
		from tacho._extremes() e, tacho._classes() l
	)
	select s.extreme, s.name, s.score, (
		select case when s.per_mille = 1000 then (array_agg(m.bucket order by m.bucket))[:1] else array_agg(m.bucket order by m.bucket) end
		from minutes m
		where m.name = s.name
			and m.score * 1000 >= s.score
			and m.score > 0)
	from scores s;
end;
comment on function tacho._compat_extremes is 'extremes of all and of each class';

-- `Key(aas)` of the largest keys in some minutes.
create function tacho._compat_top(cells tacho.cell[], class text, minutes integer[], observed tacho.observed[], n bigint)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(jsonb_agg(format('%s(%s)', k.by_key, tacho._round_to(k.sum_ms, k.length_ms, 1)) order by k.sum_ms desc, k.by_key collate "C"), '[]')
	from (
		select x.by_key, sum(x.sum_ms) as sum_ms, (
			select sum(o.observed_ms) from unnest(observed) o where o.bucket = any (minutes)) as length_ms
		from unnest(cells) x
		where (x.key = _compat_top.class or _compat_top.class is null)
			and x.by_key is not null
			and x.bucket = any (minutes)
		group by x.by_key
		order by sum(x.sum_ms) desc, x.by_key collate "C"
		limit n
	) k;
end;
comment on function tacho._compat_top is 'the largest keys of a class in some minutes';

create function tacho._compat_figures(extremes tacho.compat_extreme[], c tacho.coverage)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select jsonb_object_agg('aas_' || f.extreme, f.figures)
	from (
		select e.extreme, jsonb_object_agg(e.name, tacho._round_to(e.score, 1000 * (c).lcm, 2)::numeric) as figures
		from unnest(extremes) e
		group by e.extreme
	) f;
end;
comment on function tacho._compat_figures is 'the extremes as numbers';

create function tacho._compat_keys(
	extremes tacho.compat_extreme[],
	events tacho.cell[],
	queries tacho.cell[],
	observed tacho.observed[],
	n bigint
)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with x as materialized (
		select e.*, l.class from unnest(extremes) e join tacho._classes() l on l.name = e.name where e.name <> 'cpu'
	)
	select jsonb_object_agg(p.name, p.value) || jsonb_build_object('top_queryids_available', coalesce(bool_or(p.name like 'top_queryids%'), false))
	from (
		select 'top_events_' || x.extreme, jsonb_object_agg(x.name, tacho._compat_top(events, x.class, x.minutes, observed, n))
		from x
		where x.class is not null
		group by x.extreme
		union all
		select 'top_queryids_' || x.extreme, jsonb_object_agg(x.name, tacho._compat_top(queries, x.class, x.minutes, observed, n))
		from x
		where x.minutes <> '{}'
		group by x.extreme
	) p (name, value);
end;
comment on function tacho._compat_keys is 'events and queries of the extreme minutes';

create function tacho._compat(during tstzrange, n bigint, s tacho.selection)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(lower(during), upper(during), s.scope, s.tz, s.node, s.by_leader, s.filters);
	c tacho.coverage;
	v_observed tacho.observed[];
	v_events tacho.cell[];
	v_queries tacho.cell[];
	v_extremes tacho.compat_extreme[];
begin
	q := tacho._plan(tacho._select(tacho._buckets(q, interval '1 minute', s.tz, 3000000), s.node), 'wait_event_type', 'query_id', false);
	v_observed := array(select o from tacho._observed(q) o);
	c := tacho._coverage(q, v_observed);
	if c.observed_ms = 0 then
		return null;
	end if;
	v_events := array(
		select row(x.key, case when x.by_key like x.key || ':%' then substr(x.by_key, length(x.key) + 2) else x.by_key end,
			x.bucket, x.sum_ms, x.sessions)::tacho.cell
		from tacho._cells(q, 'wait_event_type', 'wait_event') x
		join tacho._classes() l on l.class = x.key);
	v_queries := array(
		select x from tacho._cells(q, 'wait_event_type', 'query_id') x join tacho._classes() l on l.class = x.key);
	v_extremes := array(select e from tacho._compat_extremes(v_events, v_observed, c) e);
	return jsonb_build_object(
		'vcpus', tacho._round_to(c.vcpus_x100, 100, 2)::numeric,
		'aas_avg', (select jsonb_object_agg(l.name, tacho._round_to(coalesce(x.sum_ms, 0), c.observed_ms, 2)::numeric)
			from tacho._classes() l
			cross join lateral (select sum(e.sum_ms) as sum_ms from unnest(v_events) e where e.key = l.class or l.class is null) x),
		'coverage', jsonb_build_object(
			'from', tacho._json_time(lower(during)),
			'to', tacho._json_time(upper(during)),
			'source', 'raw',
			'minutes_expected', q.n_buckets,
			'minutes_with_data', c.n_buckets,
			'raw_retention_start', tacho._json_time((
				select tacho._time(1000 * least((select min(p.start_ms) from tacho.pack p), (select min(h.start_ms) from tacho.hot h)))))))
		|| tacho._compat_figures(v_extremes, c)
		|| tacho._compat_keys(v_extremes, v_events, v_queries, v_observed, n);
end
$$;
comment on function tacho._compat is 'the part compat of a report, null when nothing was observed';
