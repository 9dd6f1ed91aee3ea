/*
 * 53_compare.sql - two windows, whole or by the keys of a dimension
 *
 * The first window is the earlier one, so a delta above zero means that load has grown.
 * Loads are compared as fractions of whole numbers, never rounded.
 */
create type tacho.side as (
	question tacho.question,
	observed tacho.observed[],
	coverage tacho.coverage,
	cells tacho.cell[]
);
comment on type tacho.side is 'one of two windows: what was observed, and cells of keys (by_key)';

create function tacho._side(q tacho.question, dimension text, bucket interval, tz text, node text)
returns tacho.side
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	s tacho.side;
begin
	q := tacho._buckets(q, coalesce(bucket, interval '1 minute'), tz, 3000000);
	q := tacho._plan(tacho._select(q, node), null, dimension, false);
	s.question := q;
	s.observed := array(select o from tacho._observed(q) o);
	s.coverage := tacho._coverage(q, s.observed);
	s.cells := array(select x from tacho._cells(q, null, dimension) x);
	return s;
end
$$;
comment on function tacho._side is 'reads one of two windows';

create type tacho.change as (
	rank bigint,
	key text,
	is_other boolean,
	sum_1 numeric,
	sum_2 numeric,
	delta numeric
);
comment on type tacho.change is 'a line of compare(); delta is over the product of the observed ms';

-- The n keys whose load changed most, and the rest; a side without observed time counts
-- as zero.
create function tacho._changes(a tacho.side, b tacho.side, has_keys boolean, n bigint)
returns setof tacho.change
language sql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
begin atomic
	with sums as (
		select
			k.by_key,
			coalesce(sum(k.sum_1), 0) as sum_1,
			coalesce(sum(k.sum_2), 0) as sum_2
		from (
			select by_key, sum_ms as sum_1, null::bigint as sum_2
			from unnest((a).cells)
			where ((a).coverage).observed_ms > 0
			union all
			select by_key, null, sum_ms
			from unnest((b).cells)
			where ((b).coverage).observed_ms > 0
			union all
			select null, null, null
			where not has_keys
		) k
		group by k.by_key
	), deltas as (
		select
			s.*,
			s.sum_2 * greatest(((a).coverage).observed_ms, 1) - s.sum_1 * greatest(((b).coverage).observed_ms, 1) as delta
		from sums s
	), ranked as (
		select d.*, row_number() over (order by abs(d.delta) desc, d.by_key collate "C" nulls last) as rank
		from deltas d
	)
	select r.rank, r.by_key, false, r.sum_1, r.sum_2, r.delta
	from ranked r
	where r.rank <= n
	union all
	select n + 1, null, true, sum(r.sum_1), sum(r.sum_2), sum(r.delta)
	from ranked r
	where r.rank > n
	having count(*) > 0;
end;
comment on function tacho._changes is 'lines of compare(), not in order';

-- Measures of the lines on one side; key_n is the rank of the line.
create function tacho._side_lines(s tacho.side, changes tacho.change[])
returns setof tacho.line
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
as $$
declare
	v_rest bigint;
	v_cells tacho.cell[];
begin
	if (s.coverage).observed_ms = 0 then
		return;
	end if;
	select x.rank into v_rest from unnest(changes) x where x.is_other;
	v_cells := array(
		select row(l.rank, null, c.bucket, sum(c.sum_ms), case when l.rank <> v_rest or v_rest is null then max(c.sessions) end)::tacho.cell
		from (
			select coalesce(x.rank, n.rank, v_rest) as rank, c.bucket, c.sum_ms, c.sessions
			from unnest(s.cells) c
			left join unnest(changes) x on x.key = c.by_key
			left join unnest(changes) n on n.key is null and not n.is_other and c.by_key is null
			offset 0
		) l
		cross join lateral (select l.bucket, l.sum_ms, l.sessions) c
		group by l.rank, c.bucket);
	return query
		select m.key::bigint, m.by_n, m.key, m.by_key, m.sum_ms, m.sessions, m.peak, m.p99
		from tacho._measure(v_cells, s.observed, s.coverage) m;
end
$$;
comment on function tacho._side_lines is 'measures of the lines of compare() on one side; lines without load are missing';

create function tacho._comparison_note(a tacho.side, b tacho.side)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_percent_1 constant numeric := tacho._percent(a.coverage, (a.question).until_us - (a.question).since_us);
	v_percent_2 constant numeric := tacho._percent(b.coverage, (b.question).until_us - (b.question).since_us);
begin
	return case
		when (a.coverage).observed_ms + (b.coverage).observed_ms = 0 then 'neither window was observed'
		when (a.coverage).observed_ms = 0 then 'window 1 was not observed'
		when (b.coverage).observed_ms = 0 then 'window 2 was not observed'
		when abs(v_percent_1 - v_percent_2) >= 1
			then format('unequal coverage: window 1 was observed for %s %%, window 2 for %s %%', v_percent_1, v_percent_2)
	end;
end
$$;
comment on function tacho._comparison_note is 'why two windows cannot be compared without care';

create type tacho.compare_row as (
	key text,
	query_text text,
	change text,
	avg_delta numeric,
	avg_aas_1 numeric,
	avg_aas_2 numeric,
	peak_aas_1 numeric,
	peak_aas_2 numeric,
	p99_aas_1 numeric,
	p99_aas_2 numeric,
	peak_sessions_1 bigint,
	peak_sessions_2 bigint,
	backend_seconds_1 numeric,
	backend_seconds_2 numeric,
	pct_1 numeric,
	pct_2 numeric,
	vcpus_1 numeric,
	vcpus_2 numeric,
	source_1 text,
	source_2 text,
	grain interval,
	period_start_1 timestamptz,
	period_end_1 timestamptz,
	period_start_2 timestamptz,
	period_end_2 timestamptz,
	coverage_pct_1 numeric,
	coverage_pct_2 numeric,
	note text
);
comment on type tacho.compare_row is 'the columns of compare()';

create type tacho.compared as (
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric
);
comment on type tacho.compared is 'measures of a line on one side';

create function tacho._compared(c tacho.coverage, l tacho.line, is_other boolean)
returns tacho.compared
language sql immutable parallel safe
return case when c.observed_ms > 0 then row(
	tacho._round4(coalesce(l.sum_ms, 0), c.observed_ms),
	tacho._round4(coalesce(l.peak, 0), c.lcm),
	tacho._round4(coalesce(l.p99, 0), 100 * c.lcm),
	case when not is_other and (l.key_n is null or l.sessions is not null) then coalesce(l.sessions, 0) end,
	tacho._round4(coalesce(l.sum_ms, 0), 1000))::tacho.compared end;
comment on function tacho._compared is 'measures as they are shown; a line without load is zero';

create function tacho._compare_rows(a tacho.side, b tacho.side, dimension text, n bigint)
returns setof tacho.compare_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_changes constant tacho.change[] := array(select x from tacho._changes(a, b, dimension is not null, n) x);
	v_note constant text := tacho._comparison_note(a, b);
	v_database constant text := tacho._only_database(b.question);
	v_width constant numeric := greatest((a.coverage).observed_ms, 1) * greatest((b.coverage).observed_ms, 1);
	v_seen constant boolean := (a.coverage).observed_ms > 0 and (b.coverage).observed_ms > 0;
	v_all_1 numeric;
	v_all_2 numeric;
begin
	select sum(x.sum_1), sum(x.sum_2) into v_all_1, v_all_2 from unnest(v_changes) x;
	return query
		select
			case when x.is_other then '(other)' when dimension is not null then tacho._key_text(dimension, x.key) end,
			case when dimension = 'query_id' then tacho._query_text(x.key, v_database) end,
			case
				when not v_seen then null
				when x.sum_1 = 0 and x.sum_2 > 0 then 'new'
				when x.sum_1 > 0 and x.sum_2 = 0 then 'gone'
				when x.delta > 0 then 'up'
				when x.delta < 0 then 'down'
				else 'same'
			end,
			case when v_seen then tacho._round4(x.delta, v_width) end,
			(m.a).avg_aas, (m.b).avg_aas, (m.a).peak_aas, (m.b).peak_aas, (m.a).p99_aas, (m.b).p99_aas,
			(m.a).peak_sessions, (m.b).peak_sessions, (m.a).backend_seconds, (m.b).backend_seconds,
			tacho._round4(100 * x.sum_1, v_all_1),
			tacho._round4(100 * x.sum_2, v_all_2),
			tacho._round4((a.coverage).vcpus_x100, 100),
			tacho._round4((b.coverage).vcpus_x100, 100),
			tacho._source(a.question, (a.coverage).n_observed),
			tacho._source(b.question, (b.coverage).n_observed),
			(b.question).width_us * interval '1 microsecond',
			tacho._time((a.question).since_us),
			tacho._time((a.question).until_us),
			tacho._time((b.question).since_us),
			tacho._time((b.question).until_us),
			tacho._percent(a.coverage, (a.question).until_us - (a.question).since_us),
			tacho._percent(b.coverage, (b.question).until_us - (b.question).since_us),
			v_note
		from unnest(v_changes) x
		left join tacho._side_lines(a, v_changes) la on la.key_n = x.rank
		left join tacho._side_lines(b, v_changes) lb on lb.key_n = x.rank
		cross join lateral (
			select tacho._compared(a.coverage, la, x.is_other) as a, tacho._compared(b.coverage, lb, x.is_other) as b offset 0
		) m
		order by x.rank;
end
$$;
comment on function tacho._compare_rows is 'the rows of compare()';

create function tacho._compare(
	dimension text,
	since_1 timestamptz,
	until_1 timestamptz,
	since_2 timestamptz,
	until_2 timestamptz,
	n bigint,
	bucket interval,
	filters jsonb,
	scope text,
	tz text,
	node text,
	by_leader boolean
)
returns setof tacho.compare_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_name text;
	v_n bigint;
	q_1 tacho.question;
	q_2 tacho.question;
	v_length interval;
begin
	if dimension is not null then
		v_name := (tacho._find_dimension(dimension)).name;
	end if;
	-- room for the rank of the rest
	v_n := least(tacho._limit(n), 9223372036854775806);
	q_2 := tacho._ask(since_2, until_2, scope, tz, node, by_leader, filters);
	v_length := (q_2.until_us - q_2.since_us) * interval '1 microsecond';
	q_1 := q_2;
	if since_1 is null and until_1 is null then
		since_1 := tacho._time(q_2.since_us) - interval '24 hours';
		until_1 := tacho._time(q_2.until_us) - interval '24 hours';
	end if;
	q_1 := tacho._window(q_1, coalesce(since_1, until_1 - v_length), coalesce(until_1, since_1 + v_length));
	return query
		select r.*
		from tacho._compare_rows(
			tacho._side(q_1, v_name, bucket, tz, node),
			tacho._side(q_2, v_name, bucket, tz, node),
			v_name,
			v_n) r;
	if not found then
		perform tacho._say_empty(q_2);
	end if;
end
$$;
comment on function tacho._compare is 'compare() with its filters as JSON';

call tacho._reader($decl$compare(
	dimension text default null,
	since_1 timestamptz default null,
	until_1 timestamptz default null,
	since_2 timestamptz default null,
	until_2 timestamptz default null,
	n integer default 10,
	bucket interval default '1 minute',
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns setof tacho.compare_row rows 11$decl$,
'select * from tacho._compare(compare.dimension, compare.since_1, compare.until_1, compare.since_2, compare.until_2, compare.n, compare.bucket, {FILTERS}, compare.scope, compare.tz, compare.node, compare.by_leader)',
'Two windows side by side: the load of each, and with a dimension the n keys that changed most, with (other) for the rest. avg_delta is second minus first, in sessions; change is new, gone, up, down or same. Without arguments it compares the last hour with the same hour yesterday. With one bound of window 1, that window is as long as window 2. A window that was not observed reads NULL; note says so, and when coverage differs. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, change, avg_delta, avg_aas_1, avg_aas_2, note from tacho.compare(''query_id'', since_1 => now() - interval ''2 hours'');');
