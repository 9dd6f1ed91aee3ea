/*
 * 52_timeline.sql - timeline, summary
 */
create function tacho._auto_bucket(q tacho.question)
returns interval
language sql immutable parallel safe
return case
	when q.until_us - q.since_us <= 6 * 3600000000::bigint then interval '1 minute'
	when q.until_us - q.since_us <= 168 * 3600000000::bigint then interval '1 hour'
	else interval '24 hours'
end;
comment on function tacho._auto_bucket is 'width of a bucket that suits a window';

-- Coverage of each bucket, empty ones included. interval_ms comes from the last tick at
-- or before the end of the bucket.
create function tacho._bucket_rows(q tacho.question, observed tacho.observed[])
returns table (
	bucket integer,
	bucket_start timestamptz,
	length_us bigint,
	coverage tacho.coverage
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
begin atomic
	select
		x.bucket,
		tacho._time(x.begin_us),
		x.length_us,
		row(x.observed_ms, x.failed_ms, x.n_observed, x.n_failed,
			coalesce(first_value(x.last_interval_ms) over (partition by x.known order by x.bucket), tacho._interval_before(q)),
			x.vcpus_x100, null, null)::tacho.coverage
	from (
		select
			b as bucket,
			tacho._bucket_start(q, b) as begin_us,
			least(tacho._bucket_start(q, b + 1), (q).until_us) - greatest(tacho._bucket_start(q, b), (q).since_us) as length_us,
			coalesce(o.observed_ms, 0) as observed_ms,
			coalesce(o.failed_ms, 0) as failed_ms,
			coalesce(o.n_observed, 0) as n_observed,
			coalesce(o.n_failed, 0) as n_failed,
			o.last_interval_ms,
			o.vcpus_x100,
			count(o.last_interval_ms) over (order by b) as known
		from generate_series(0, (q).n_buckets - 1) b
		left join unnest(observed) o on o.bucket = b
	) x
	order by x.bucket;
end;
comment on function tacho._bucket_rows is 'every bucket of a question with what was observed in it';

create type tacho.series as (
	line integer,
	key text,
	is_other boolean,
	bucket integer,
	sum_ms bigint,
	sessions bigint
);
comment on type tacho.series is 'a line of a timeline in a bucket; bucket null for the line itself';

-- The lines of a timeline split by a dimension: the n largest keys, with `leaders` also
-- the keys that lead some bucket, and the rest.
create function tacho._series(cells tacho.cell[], dimension text, n bigint, leaders boolean)
returns setof tacho.series
language sql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
begin atomic
	with c as (
		select by_key as key, bucket, sum_ms, sessions
		from unnest(cells)
	), ranked as (
		select key, row_number() over (order by sum(sum_ms) desc, key collate "C" nulls last) as rank
		from c
		group by key
	), chosen as (
		select r.key, r.rank, r.rank <= n or leaders and r.rank in (
			select distinct on (c.bucket) i.rank
			from c
			join ranked i on i.key is not distinct from c.key
			order by c.bucket, c.sum_ms desc, i.rank) as own
		from ranked r
	), numbered as (
		select
			key,
			own,
			case when own then row_number() over (order by not own, rank) else (select count(*) from chosen where own) + 1 end::integer as line
		from chosen
	)
	select distinct n.line, case when n.own then tacho._key_text(dimension, n.key) else '(other)' end, not n.own,
		null::integer, null::bigint, null::bigint
	from numbered n
	union all
	select n.line, null, not n.own, c.bucket, sum(c.sum_ms)::bigint, case when n.own then max(c.sessions) end
	from c
	join numbered n on n.key is not distinct from c.key
	group by n.line, n.own, c.bucket;
end;
comment on function tacho._series is 'lines and their sums by bucket';

-- A bucket that the user asked for must be long enough to hold a tick. Otherwise most
-- rows would say that nothing was observed, which is not true.
create function tacho._check_width(bucket interval, observed tacho.observed[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
set intervalstyle = postgres
as $$
declare
	v_least constant interval := (select max(o.last_interval_ms) from unnest(observed) o) * interval '1 millisecond';
begin
	if bucket < v_least then
		raise exception 'bucket is shorter than the sampling interval'
			using errcode = 'invalid_parameter_value',
				detail = format('The bucket is %s; the window has samples every %s.', bucket, v_least),
				hint = format('Use a bucket of at least %s, or a window without these samples.', v_least);
	end if;
end
$$;
comment on function tacho._check_width is 'complains of buckets without ticks';

create function tacho._timeline(
	since timestamptz,
	until timestamptz,
	bucket interval,
	by text,
	n bigint,
	filters jsonb,
	scope text,
	tz text,
	node text,
	by_leader boolean,
	is_report boolean default false
)
returns table (
	bucket_start timestamptz,
	key text,
	source text,
	avg_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
	q tacho.question := tacho._ask(since, until, scope, tz, node, by_leader, filters);
	v_n bigint := tacho._limit(n);
	v_by tacho.dimension;
	v_observed tacho.observed[];
	v_cells tacho.cell[];
	v_series tacho.series[];
begin
	q := tacho._buckets(q, coalesce(bucket, tacho._auto_bucket(q)), tz, 100000);
	q := tacho._select(q, node);
	if by is not null then
		v_by := tacho._find_dimension(by);
	end if;
	q := tacho._plan(q, null, by, true);
	v_observed := array(select o from tacho._observed(q) o);
	if not is_report then
		perform tacho._check_width(bucket, v_observed);
	end if;
	v_cells := array(select x from tacho._cells(q, null, by, true) x);
	if by is null then
		v_series := array(
			select row(1, null, false, x.bucket, x.sum_ms, x.sessions)::tacho.series from unnest(v_cells) x
			union all
			select row(1, null, false, null, null, null)::tacho.series);
	else
		v_series := array(select s from tacho._series(v_cells, by, v_n, false) s);
	end if;
	return query
		select
			b.bucket_start,
			l.key,
			tacho._source(q, (b.coverage).n_observed),
			tacho._round4(coalesce(s.sum_ms, 0), (b.coverage).observed_ms),
			case when (b.coverage).observed_ms > 0 and not l.is_other and (s.line is null or s.sessions is not null) then coalesce(s.sessions, 0) end,
			case when (b.coverage).observed_ms > 0 then tacho._round4(coalesce(s.sum_ms, 0), 1000) end,
			tacho._round4((b.coverage).vcpus_x100, 100),
			tacho._ticks_expected(b.coverage, b.length_us),
			(b.coverage).n_observed,
			(b.coverage).n_failed,
			tacho._percent(b.coverage, b.length_us)
		from tacho._bucket_rows(q, v_observed) b
		cross join (select * from unnest(v_series) where bucket is null) l
		left join (select * from unnest(v_series) where bucket is not null) s on s.line = l.line and s.bucket = b.bucket
		order by b.bucket, l.line;
	if not found then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._timeline is 'timeline() with its filters as JSON';

call tacho._reader($decl$timeline(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	by text default null,
	n integer default 5,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	bucket_start timestamptz,
	key text,
	source text,
	avg_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
) rows 60$decl$,
'select * from tacho._timeline(timeline.since, timeline.until, timeline.bucket, timeline.by, timeline.n, {FILTERS}, timeline.scope, timeline.tz, timeline.node, timeline.by_leader)',
'Load over time, a row for each bucket, also for empty ones. With "by", a row for each bucket and each of the n largest keys of that dimension, and (other). Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select * from tacho.timeline(bucket => ''5 minutes'', by => ''wait_event_type'');');

create function tacho._gaps(since timestamptz, until timestamptz)
returns table (
	gap_start timestamptz,
	gap_end timestamptz,
	cause text
)
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select g.gap_start, g.gap_end, g.cause
	from (
		select greatest(m.period_start, _gaps.since) as gap_start, least(m.period_end, _gaps.until) as gap_end,
			coalesce(m.detail, '') as cause
		from tacho.marker m
		where m.kind = 'gap'
	) g
	where g.gap_start < g.gap_end
	order by g.gap_end - g.gap_start desc, g.gap_start;
end;
comment on function tacho._gaps is 'gaps that reach into a window, cut to it, the longest first';

create function tacho._summary(since timestamptz, until timestamptz, node text)
returns table (
	metric text,
	value text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
	q tacho.question := tacho._ask(since, until, null, null, node, false, null);
	v_load tacho.load;
	c tacho.coverage;
	v_total numeric;
begin
	q := tacho._select(tacho._buckets(q, interval '1 minute', null, 3000000), node);
	v_load := tacho._load(q);
	c := tacho._coverage(q, array(select o from tacho._observed(tacho._plan(q, null, null, false)) o));
	return query
		values
			('period_start', tacho._time_text(q.since_us)),
			('period_end', tacho._time_text(q.until_us)),
			('source', v_load.source),
			('avg_aas', v_load.avg_aas::text),
			('peak_aas', v_load.peak_aas::text),
			('p99_aas', v_load.p99_aas::text),
			('peak_sessions', v_load.peak_sessions::text),
			('backend_seconds', v_load.backend_seconds::text),
			('vcpus', v_load.vcpus::text),
			('ticks_expected', v_load.ticks_expected::text),
			('ticks_observed', v_load.ticks_observed::text),
			('ticks_failed', v_load.ticks_failed::text),
			('coverage_pct', v_load.coverage_pct::text),
			('databases_active', (select count(distinct x.by_key)::text
				from tacho._cells(tacho._plan(q, null, 'database', false), null, 'database') x));
	return query
		select
			format('gap_%s', g.ordinality),
			format('%s to %s: %s', tacho._time_text(tacho._us(g.gap_start)), tacho._time_text(tacho._us(g.gap_end)), g.cause)
		from tacho._gaps(tacho._time(q.since_us), tacho._time(q.until_us)) with ordinality g
		where g.ordinality <= 3
		order by g.ordinality;
	return query
		select
			format('top_%s_%s', s.kind, s.rank),
			format('%s %s AAS, %s %%%s', s.name, tacho._round4(s.sum_ms, c.observed_ms), tacho._round4(100 * s.sum_ms, s.total), ': ' || s.body)
		from (
			select
				d.kind,
				coalesce(tacho._key_text(d.name, x.by_key), '(null)') as name,
				sum(x.sum_ms) as sum_ms,
				sum(sum(x.sum_ms)) over (partition by d.kind) as total,
				row_number() over (partition by d.kind order by sum(x.sum_ms) desc, x.by_key collate "C" nulls last) as rank,
				case when d.kind = 'query' then tacho._query_text(x.by_key, null) end as body
			from (values ('wait', 'wait_event'), ('query', 'query_id')) d (kind, name)
			cross join lateral tacho._cells(tacho._plan(q, null, d.name, false), null, d.name) x
			group by d.kind, d.name, x.by_key
		) s
		where s.rank <= 3
		order by s.kind desc, s.rank;
end
$$;
comment on function tacho._summary is 'summary() itself';

call tacho._reader($decl$summary(
	since timestamptz default null,
	until timestamptz default null,
	node text default null
)
returns table (
	metric text,
	value text
) rows 20$decl$,
'select * from tacho._summary(summary.since, summary.until, summary.node)',
'A window in a few lines: load, coverage, longest gaps, top waits, top queries. Example: select * from tacho.summary(since => now() - interval ''15 minutes'');');
