/*
 * 50_readers.sql - aas, periods, top, summary, markers
 *
 * Every dimension is a filter of every reader. _reader() makes the function that a user
 * calls from a declaration with markers. The line FILTERS becomes one argument per
 * dimension, {FILTERS} their values as JSON, {DIMENSIONS} their names. So a new dimension
 * is one row in 05_dimensions.sql.
 */
create procedure tacho._reader(declaration text, body text, doc text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
	v_name constant text := substring(declaration from '^(\w+)\s*\(');
	v_arguments text;
	v_values text;
	v_names text;
begin
	select
		string_agg(d.name || ' text default null,', ' ' order by d.position),
		format('jsonb_build_object(%s)', string_agg(format('%1$L, %2$I.%1$I', d.name, v_name), ', ' order by d.position)),
		string_agg(d.name, ', ' order by d.position)
	into v_arguments, v_values, v_names
	from tacho.dimension d;
	execute format('create function tacho.%s language sql volatile parallel restricted set search_path = pg_catalog, pg_temp set jit = off as %L',
		replace(declaration, 'FILTERS', v_arguments), replace(body, '{FILTERS}', v_values));
	execute format('comment on function tacho.%I is %L', v_name, replace(doc, '{DIMENSIONS}', v_names));
end
$$;
comment on procedure tacho._reader is 'creates a function for users';

create type tacho.load as (
	period_start timestamptz,
	period_end timestamptz,
	source text,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
);
comment on type tacho.load is 'the columns of aas()';

create function tacho._load(q tacho.question)
returns tacho.load
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_observed tacho.observed[];
	c tacho.coverage;
	r record;
begin
	q := tacho._plan(q, null, null, false);
	v_observed := array(select o from tacho._observed(q) o);
	c := tacho._coverage(q, v_observed);
	execute format($sql$
		select
			coalesce(sum(x.sum_ms), 0) as sum_ms,
			case when count(*) = count(x.sessions) then coalesce(max(x.sessions), 0) end as sessions,
			coalesce(max(x.sum_ms * o.factor), 0)::numeric as peak,
			tacho._p99((array_agg(x.sum_ms * o.factor order by x.sum_ms * o.factor desc))[1:$5], $4) as p99
		from tacho._cells($1, null, null) x
		join (
			select bucket, div($3, observed_ms)::%s as factor
			from unnest($2)
			where observed_ms > 0
		) o on o.bucket = x.bucket$sql$, tacho._score_type(v_observed, c))
	into r
	using q, v_observed, c.lcm, c.n_buckets, (c.n_buckets - 99 * (c.n_buckets - 1) / 100)::integer;
	return row(
		tacho._time(q.since_us),
		tacho._time(q.until_us),
		tacho._source(q, c.n_observed),
		q.width_us * interval '1 microsecond',
		tacho._round4(r.sum_ms, c.observed_ms),
		case when c.observed_ms > 0 then tacho._round4(r.peak, c.lcm) end,
		case when c.observed_ms > 0 then tacho._round4(r.p99, 100 * c.lcm) end,
		case when c.observed_ms > 0 then r.sessions end,
		case when c.observed_ms > 0 then tacho._round4(r.sum_ms, 1000) end,
		tacho._round4(c.vcpus_x100, 100),
		tacho._ticks_expected(c, q.until_us - q.since_us),
		c.n_observed,
		c.n_failed,
		tacho._percent(c, q.until_us - q.since_us)
	)::tacho.load;
end
$$;
comment on function tacho._load is 'the load of a window';

create function tacho._aas(since timestamptz, until timestamptz, bucket interval, filters jsonb, scope text, tz text, node text, by_leader boolean)
returns setof tacho.load
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(since, until, scope, tz, node, by_leader, filters);
begin
	q := tacho._buckets(q, coalesce(bucket, interval '1 minute'), tz, 3000000);
	return next tacho._load(tacho._select(q, node));
end
$$;
comment on function tacho._aas is 'aas() with its filters as JSON';

call tacho._reader($decl$aas(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default '1 minute',
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	source text,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
) rows 1$decl$,
'select * from tacho._aas(aas.since, aas.until, aas.bucket, {FILTERS}, aas.scope, aas.tz, aas.node, aas.by_leader)',
'Load (average active sessions) of one window, the last hour by default: average, peak and 99th percentile of its buckets. NULL means nothing was observed, 0 means no session was active. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Filters: {DIMENSIONS}. Example: select avg_aas, peak_aas from tacho.aas(since => now() - interval ''1 day'', database => ''shop'');');

create function tacho._periods(until timestamptz, filters jsonb, scope text, tz text, node text, by_leader boolean)
returns table (
	period text,
	load tacho.load
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._select(tacho._ask(null, until, scope, tz, node, by_leader, filters), node);
	w tacho.question;
	v_length interval;
begin
	foreach v_length in array array['1 minute', '5 minutes', '1 hour', '1 day', '7 days', '30 days']::interval[] loop
		w := q;
		w.since_us := q.until_us - (extract(epoch from v_length) * 1000000)::bigint;
		w := tacho._buckets(w, interval '1 minute', tz, 3000000);
		period := (array['1m', '5m', '1h', '1d', '1w', '1mo'])[
			array_position(array['1 minute', '5 minutes', '1 hour', '1 day', '7 days', '30 days']::interval[], v_length)];
		load := tacho._load(w);
		return next;
	end loop;
end
$$;
comment on function tacho._periods is 'periods() with its filters as JSON';

call tacho._reader($decl$periods(
	until timestamptz default null,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period text,
	period_start timestamptz,
	period_end timestamptz,
	source text,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
) rows 6$decl$,
'select p.period, (p.load).* from tacho._periods(periods.until, {FILTERS}, periods.scope, periods.tz, periods.node, periods.by_leader) p',
'Load (average active sessions) of the last minute, 5 minutes, hour, day, week and month: the place to start. Example: select * from tacho.periods();');

-- Cells of one line of an answer each; key_n and by_n are the ranks, 0 = the
-- rest.
create type tacho.line as (
	key_n bigint,
	by_n bigint,
	key text,
	by_key text,
	sum_ms numeric,
	sessions bigint,
	peak numeric,
	p99 numeric
);
comment on type tacho.line is 'a key, or what is left of keys, with its measures; peak and p99 as scores';

create function tacho._measure(cells tacho.cell[], observed tacho.observed[], c tacho.coverage)
returns setof tacho.line
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
as $$
begin
	return query execute format($sql$
		select
			0::bigint,
			0::bigint,
			g.key,
			g.by_key,
			g.sum_ms,
			g.sessions,
			g.scores[1]::numeric,
			tacho._p99(g.scores[1:$3], $4)
		from (
			select
				x.key,
				x.by_key,
				sum(x.sum_ms) as sum_ms,
				case when count(*) = count(x.sessions) then max(x.sessions) end as sessions,
				array_agg(x.sum_ms * o.factor order by x.sum_ms * o.factor desc) as scores
			from unnest($1) x
			join (
				select bucket, div($5, observed_ms)::%1$s as factor
				from unnest($2)
				where observed_ms > 0
			) o on o.bucket = x.bucket
			group by x.key, x.by_key
			offset 0
		) g$sql$,
		tacho._score_type(observed, c))
	using cells, observed, (c.n_buckets - 99 * (c.n_buckets - 1) / 100)::integer, c.n_buckets, c.lcm;
end
$$;
comment on function tacho._measure is 'measures of each key and by_key of cells';

create function tacho._ranked(lines tacho.line[], order_by text)
returns setof tacho.line
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select
		l.key_n,
		row_number() over (partition by l.key_n order by
			case order_by when 'peak' then l.peak when 'p99' then l.p99 when 'sessions' then l.sessions else l.sum_ms end desc nulls last,
			l.by_key collate "C" nulls last),
		l.key, l.by_key, l.sum_ms, l.sessions, l.peak, l.p99
	from unnest(lines) l;
end;
comment on function tacho._ranked is 'lines with by_n, their rank by by_key within key_n';

-- The n largest keys, ranked by by_key.
create function tacho._largest(cells tacho.cell[], observed tacho.observed[], c tacho.coverage, order_by text, n bigint)
returns setof tacho.line
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
as $$
declare
	v_lines tacho.line[];
	v_rest tacho.cell[];
begin
	v_lines := array(select l from tacho._measure(cells, observed, c) l);
	v_lines := array(select l from tacho._ranked(v_lines, order_by) l order by l.by_n);
	return query select l.* from unnest(v_lines) l where l.by_n <= n order by l.by_n;
	if cardinality(v_lines) <= n then
		return;
	end if;
	v_rest := array(
		select row(null, null, x.bucket, sum(x.sum_ms), null)::tacho.cell
		from unnest(cells) x
		left join unnest(v_lines) l on l.by_key = x.by_key and l.by_n <= n
		where l.by_n is null
			and (x.by_key is not null or not exists (select from unnest(v_lines) i where i.by_key is null and i.by_n <= n))
		group by x.bucket);
	return query select l.* from tacho._measure(v_rest, observed, c) l;
end
$$;
comment on function tacho._largest is 'the n largest by_keys of cells of one key, and one line with by_n 0 for the rest';

create function tacho._key_text(dimension text, key text)
returns text
language sql immutable parallel safe
return case when key is null and dimension = 'query_id' then '(no query id)' else key end;
comment on function tacho._key_text is 'a key as it is shown';

-- The text of a query id, from this database if there is one.
create function tacho._query_text(key text, in_database text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select t.body
	from tacho.text t
	where t.query_id = case when key ~ '^-?[0-9]+$' then key::bigint end
		and t.query_id <> 0
	order by t.database is not distinct from in_database and in_database is not null desc, t.id
	limit 1;
end;
comment on function tacho._query_text is 'the text of a query id given as key';

create function tacho._only_database(q tacho.question)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
begin atomic
	select f -> 'any' ->> 0
	from jsonb_array_elements((q).filters) f
	where f ->> 'dimension' = 'database'
		and jsonb_array_length(f -> 'any') = 1
		and f -> 'none' = '[]';
end;
comment on function tacho._only_database is 'the only database a filter lets through';

create type tacho.top_row as (
	key text,
	by_key text,
	query_text text,
	source text,
	period_start timestamptz,
	period_end timestamptz,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	pct numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
);
comment on type tacho.top_row is 'the columns of top()';

-- The same for the cells of a dimension, which do not become an array: a day
-- of 200 queries has 288,000.
create function tacho._top_keys(
	q tacho.question,
	dimension text,
	observed tacho.observed[],
	c tacho.coverage,
	order_by text,
	n bigint
)
returns setof tacho.line
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
as $$
begin
	if tacho._ranks_hours(q, order_by) then
		return query select * from tacho._rank_hours(q, dimension, observed, c, n);
		return;
	end if;
	return query execute format($sql$
		with o as materialized (
			select bucket, div($3, observed_ms)::%1$s as factor
			from unnest($2)
			where observed_ms > 0
		), x as materialized (
			select x.by_key collate "C" as key, x.bucket, x.sum_ms, x.sessions, x.sum_ms * o.factor as score
			from tacho._cells($1, null, $7) x
			join o on o.bucket = x.bucket
		), k as (
			select
				key,
				sum(sum_ms) as sum_ms,
				case when count(*) = count(sessions) then max(sessions) end as sessions,
				array_agg(score order by score desc) as scores
			from x
			group by key
		), m as (
			select key, sum_ms, sessions, scores[1]::numeric as peak, tacho._p99(scores[1:$4], $5) as p99
			from k
		), r as materialized (
			select *, row_number() over (order by %2$s desc nulls last, key collate "C" nulls last) as rank
			from m
		), rest as (
			select x.bucket, sum(x.score) as score, sum(x.sum_ms) as sum_ms
			from x
			left join r on r.key = x.key
			where coalesce(r.rank, (select rank from r where key is null)) > $6
			group by x.bucket
		)
		select 0::bigint, rank, null::text, key, sum_ms, sessions, peak, p99
		from r
		where rank <= $6
		union all
		select 0, 0, null, null, sum(sum_ms), null, max(score), tacho._p99(array_agg(score order by score desc), $5)
		from rest
		having count(*) > 0$sql$,
		tacho._score_type(observed, c),
		case order_by when 'peak' then 'peak' when 'p99' then 'p99' when 'sessions' then 'sessions' else 'sum_ms' end)
	using q, observed, c.lcm, (c.n_buckets - 99 * (c.n_buckets - 1) / 100)::integer, c.n_buckets, n, dimension;
end
$$;
comment on function tacho._top_keys is 'the n largest keys of a dimension as by_key, and one line with by_n 0 for the rest';

-- Lines of top(): by_n is the rank of by_key within key, 0 = the rest; so is key_n.
create function tacho._top_lines(
	q tacho.question,
	dimension text,
	by text,
	observed tacho.observed[],
	c tacho.coverage,
	order_by text,
	n bigint
)
returns setof tacho.line
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_pairs tacho.cell[];
	v_line tacho.line;
	v_part tacho.line;
begin
	if by is not null then
		v_pairs := array(select x from tacho._cells(q, dimension, by) x);
	end if;
	for v_line in select * from tacho._top_keys(q, dimension, observed, c, order_by, n) loop
		v_line.key_n := v_line.by_n;
		v_line.by_n := null;
		v_line.key := v_line.by_key;
		v_line.by_key := null;
		if by is null or v_line.key_n = 0 then
			v_line.by_n := case when by is not null then 0 end;
			return next v_line;
			continue;
		end if;
		for v_part in
			select *
			from tacho._largest(
				array(select x from unnest(v_pairs) x where x.key is not distinct from v_line.key),
				observed, c, order_by, n)
		loop
			v_part.key_n := v_line.key_n;
			v_part.key := v_line.key;
			return next v_part;
		end loop;
	end loop;
end
$$;
comment on function tacho._top_lines is 'ranks and cuts';

create function tacho._top(
	dimension text,
	since timestamptz,
	until timestamptz,
	n bigint,
	bucket interval,
	order_by text,
	by text,
	filters jsonb,
	scope text,
	tz text,
	node text,
	by_leader boolean
)
returns setof tacho.top_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_dimension tacho.dimension;
	v_by tacho.dimension;
	q tacho.question;
	c tacho.coverage;
	v_n bigint;
	v_observed tacho.observed[];
	v_lines tacho.line[];
	v_line tacho.line;
	v_total numeric;
	v_database text;
	v_row tacho.top_row;
begin
	if dimension is null then
		raise exception 'dimension must be given'
			using errcode = 'invalid_parameter_value',
				hint = format('Available are %s.', (select string_agg(d.name, ', ' order by d.position) from tacho.dimension d));
	end if;
	v_dimension := tacho._find_dimension(dimension);
	if by is not null then
		v_by := tacho._find_dimension(by);
	end if;
	if order_by not in ('avg', 'peak', 'p99', 'sessions') then
		raise exception 'invalid order_by "%"', order_by
			using errcode = 'invalid_parameter_value',
				hint = 'Available orders are avg, peak, p99, sessions.';
	end if;
	v_n := tacho._limit(n);
	q := tacho._ask(since, until, scope, tz, node, by_leader, filters);
	q := tacho._buckets(q, coalesce(bucket, interval '1 minute'), tz, 3000000);
	q := tacho._plan(tacho._select(q, node), dimension, by, false);

	v_observed := array(select o from tacho._observed(q) o);
	c := tacho._coverage(q, v_observed);
	v_lines := array(select l from tacho._top_lines(q, v_dimension.name, v_by.name, v_observed, c, order_by, v_n) l);
	select sum(l.sum_ms) into v_total from unnest(v_lines) l;
	v_database := tacho._only_database(q);

	v_row.source := tacho._source(q, c.n_observed);
	v_row.period_start := tacho._time(q.since_us);
	v_row.period_end := tacho._time(q.until_us);
	v_row.grain := q.width_us * interval '1 microsecond';
	v_row.vcpus := tacho._round4(c.vcpus_x100, 100);
	v_row.ticks_expected := tacho._ticks_expected(c, q.until_us - q.since_us);
	v_row.ticks_observed := c.n_observed;
	v_row.ticks_failed := c.n_failed;
	v_row.coverage_pct := tacho._percent(c, q.until_us - q.since_us);
	foreach v_line in array v_lines loop
		v_row.key := case when v_line.key_n = 0 then '(other)' else tacho._key_text(dimension, v_line.key) end;
		v_row.by_key := case when v_line.by_n = 0 then '(other)' when by is not null then tacho._key_text(by, v_line.by_key) end;
		v_row.query_text := case
			when dimension = 'query_id' and by = 'database' then tacho._query_text(v_line.key, coalesce(v_line.by_key, v_database))
			when dimension = 'query_id' then tacho._query_text(v_line.key, v_database)
			when by = 'query_id' then tacho._query_text(v_line.by_key, v_database) end;
		v_row.avg_aas := tacho._round4(v_line.sum_ms, c.observed_ms);
		v_row.peak_aas := tacho._round4(v_line.peak, c.lcm);
		v_row.p99_aas := tacho._round4(v_line.p99, 100 * c.lcm);
		v_row.peak_sessions := v_line.sessions;
		v_row.backend_seconds := tacho._round4(v_line.sum_ms, 1000);
		v_row.pct := tacho._round4(100 * v_line.sum_ms, v_total);
		return next v_row;
	end loop;
	if v_lines = '{}' then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._top is 'top() with its filters as JSON';

call tacho._reader($decl$top(
	dimension text,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	bucket interval default '1 minute',
	order_by text default 'avg',
	by text default null,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns setof tacho.top_row rows 11$decl$,
'select * from tacho._top(top.dimension, top.since, top.until, top.n, top.bucket, coalesce(top.order_by, ''avg''), top.by, {FILTERS}, top.scope, top.tz, top.node, top.by_leader)',
'The n largest keys of a dimension by load, and (other) for the rest. order_by is avg, peak, p99 or sessions; "by" splits each key by a second dimension. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, avg_aas, pct from tacho.top(''query_id'', wait_event_type => ''Lock'');');

create function tacho._statement(m tacho.marker)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select concat_ws(', ',
		concat_ws(' ', m.command, m.object_name, m.detail),
		'role ' || m.username,
		'database ' || m.database,
		'application ' || m.application,
		'client ' || m.client_addr)
		|| case m.outcome
			when 'prepared' then ' (prepared, not committed)'
			when 'rolled back' then format(' (rolled back after %s s)',
				round(coalesce(extract(epoch from m.period_end - m.period_start), 0), 1))
			else '' end
		|| case when m.left_out > 0 then format(', and %s more in this transaction', m.left_out) else '' end;
end;
comment on function tacho._statement is 'sentence of a statement that changed the schema';

create function tacho._sentence(m tacho.marker)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select case
		when m.command is not null then tacho._statement(m)
		when m.object_name is not null then concat(m.object_name, ' of role ' || m.username,
			case when m.username is null then ' of' else ' in' end || ' database ' || m.database,
			': ', coalesce(m.old_value, '(not set)'), ' -> ', coalesce(m.new_value, '(not set)'),
			' (' || m.detail || ')')
		when m.left_out > 0 then m.left_out || ' more schema changes are not listed'
		else m.detail end;
end;
comment on function tacho._sentence is 'the columns of a marker as text';

create function tacho._markers(since timestamptz, until timestamptz, node text)
returns setof tacho.marker
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._select(tacho._ask(since, until, null, null, node, false, null), node);
begin
	return query
		select m.marker_time, m.kind, m.period_start, m.period_end, tacho._sentence(m), m.command, m.object_class,
			m.object_oid, m.object_name, m.database, m.username, m.application, m.client_addr, m.old_value, m.new_value,
			m.outcome, m.left_out
		from tacho.marker m
		where m.marker_time >= tacho._time(q.since_us) and m.marker_time < tacho._time(q.until_us)
			or m.period_start < tacho._time(q.until_us) and m.period_end > tacho._time(q.since_us)
		order by m.marker_time, m.kind collate "C";
	if not found then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._markers is 'markers() itself';

call tacho._reader($decl$markers(
	since timestamptz default null,
	until timestamptz default null,
	node text default null
)
returns table (
	marker_time timestamptz,
	kind text,
	period_start timestamptz,
	period_end timestamptz,
	detail text,
	command text,
	object_class text,
	object_oid bigint,
	object_name text,
	database text,
	username text,
	application text,
	client_addr text,
	old_value text,
	new_value text,
	outcome text,
	left_out bigint
) rows 20$decl$,
'select * from tacho._markers(markers.since, markers.until, markers.node)',
'Events that explain the history: starts, stops, gaps and their cause, changed settings. Changes have their object, role, client and values in columns; detail is the sentence of all. Example: select * from tacho.markers(since => now() - interval ''1 day'');');
