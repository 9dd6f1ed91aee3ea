/*
 * 40_arguments.sql - makes a question definite: window, buckets
 *
 * All times are microseconds since 1970 UTC, windows are half-open. Messages are the
 * same as in the extension, word by word: one conformance suite runs against both.
 */
create type tacho.question as (
	now_us bigint,
	since_us bigint,
	until_us bigint,
	width_us bigint,
	origin_us bigint,
	edges_us bigint[],
	n_buckets integer,
	scope text,
	by_leader boolean,
	filters jsonb,
	hours_from_us bigint,
	hours_to_us bigint
);
comment on type tacho.question is
'a checked question: buckets are n_buckets of width_us from origin_us on, or between edges_us. filters is an array of {dimension, any, none}. Hour rows answer from hours_from_us to hours_to_us, see _plan()';

create function tacho._time_text(us bigint)
returns text
language sql immutable parallel safe
return to_char(timestamp 'epoch' + us / 1000000 * interval '1 second', 'YYYY-MM-DD HH24:MI:SS') || '+00';
comment on function tacho._time_text is 'a time without fractions, UTC';

create function tacho._window(q tacho.question, since timestamptz, until timestamptz)
returns tacho.question
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_until_us bigint;
begin
	q.now_us := coalesce(q.now_us, tacho._us(clock_timestamp()));
	if since = '-infinity' or until = '-infinity' or since = 'infinity' then
		raise exception 'since and until must be finite'
			using errcode = 'invalid_parameter_value';
	end if;
	v_until_us := case when until = 'infinity' or until is null then q.now_us else tacho._us(until) end;
	q.since_us := coalesce(tacho._us(since), least(v_until_us, q.now_us) - 3600000000);
	if q.since_us > v_until_us then
		raise exception 'since must not be after until'
			using errcode = 'invalid_parameter_value',
				detail = format('The window starts %s s after its end.', (q.since_us - v_until_us) / 1000000),
				hint = 'Swap the two, or omit until to use the current time.';
	end if;
	q.until_us := least(v_until_us, q.now_us);
	q.since_us := least(q.since_us, q.until_us);
	return q;
end
$$;
comment on function tacho._window is 'checks a window, fills in defaults and cuts it at the present';

create function tacho._too_many_buckets(buckets numeric, most integer)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
	raise exception 'too many buckets'
		using errcode = 'invalid_parameter_value',
			detail = format('The window holds %s buckets; at most %s are allowed.', buckets, most),
			hint = 'Use a wider bucket or a shorter window.';
end
$$;
comment on function tacho._too_many_buckets is 'complains';

-- Zones whose offset never changes need no search.
create function tacho._is_utc(tz text)
returns boolean
language sql immutable parallel safe
return upper(tz) in ('UTC', 'ETC/UTC', 'GMT', 'ETC/GMT', 'UCT', 'ETC/UCT', 'ZULU', 'ETC/ZULU', 'UNIVERSAL', 'ETC/UNIVERSAL');
comment on function tacho._is_utc is 'true of names that mean UTC';

create function tacho._offset(us bigint, tz text)
returns bigint
language sql immutable parallel safe
return (extract(epoch from (tacho._time(us) at time zone tz) - (tacho._time(us) at time zone 'UTC')) * 1000000)::bigint;
comment on function tacho._offset is 'microseconds that the clock of a time zone is ahead of UTC at an instant';

-- Searches for the change of an offset between two days with different offsets.
create function tacho._change(before_us bigint, after_us bigint, tz text)
returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_low bigint := before_us / 1000000;
	v_high bigint := after_us / 1000000;
	v_old constant bigint := tacho._offset(before_us, tz);
	v_middle bigint;
begin
	while v_high - v_low > 1 loop
		v_middle := (v_low + v_high) / 2;
		if tacho._offset(v_middle * 1000000, tz) = v_old then
			v_low := v_middle;
		else
			v_high := v_middle;
		end if;
	end loop;
	return v_high * 1000000;
end
$$;
comment on function tacho._change is 'when the clock of a time zone was changed';

create type tacho.clock_span as (
	begin_us bigint,
	end_us bigint,
	offset_us bigint
);
comment on type tacho.clock_span is 'a time between two changes of a clock; the first and the last have no end';

create function tacho._clock_spans(from_us bigint, to_us bigint, tz text)
returns tacho.clock_span[]
language sql immutable
set search_path = pg_catalog, pg_temp
begin atomic
	with day as (
		select us, tacho._offset(us, tz) as offset_us
		from generate_series(floor(from_us / 1000000.0)::bigint * 1000000, to_us + 86400000000, 86400000000) us
	), change as (
		select case when d.before_us is null then -9000000000000000000 else tacho._change(d.before_us, d.us, tz) end as begin_us, d.offset_us
		from (select us, offset_us, lag(us) over (order by us) as before_us, lag(offset_us) over (order by us) as old_us from day) d
		where d.old_us is distinct from d.offset_us
	)
	select array_agg(row(c.begin_us, c.end_us, c.offset_us)::tacho.clock_span order by c.begin_us)
	from (select begin_us, lead(begin_us, 1, 9000000000000000000) over (order by begin_us) as end_us, offset_us from change) c;
end;
comment on function tacho._clock_spans is 'how the clock of a time zone goes from an instant to another';

create function tacho._multiple(us bigint, width_us bigint, offset_us bigint)
returns bigint
language sql immutable parallel safe
return floor((us + offset_us)::numeric / width_us)::bigint * width_us - offset_us;
comment on function tacho._multiple is 'the last instant at or before another when a clock shows a multiple';

-- Buckets above an hour begin when the clock first reaches a multiple. Buckets of an
-- hour or less also begin when the clock is changed.
create function tacho._zone_edges(since_us bigint, until_us bigint, width_us bigint, spans tacho.clock_span[])
returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp
begin atomic
	with edge as (
		select greatest(e, s.begin_us) as edge
		from unnest(spans) s
		cross join lateral generate_series(
			tacho._multiple(greatest(s.begin_us, since_us), width_us, s.offset_us),
			least(s.end_us - 1, until_us + width_us),
			width_us) e
		where width_us <= 3600000000
		union
		select (select min(greatest(s.begin_us, local_us - s.offset_us)) from unnest(spans) s where local_us - s.offset_us < s.end_us)
		from generate_series(
			(select min(tacho._multiple(since_us, width_us, s.offset_us) + s.offset_us) from unnest(spans) s),
			(select max(until_us + width_us + s.offset_us) from unnest(spans) s),
			width_us) local_us
		where width_us > 3600000000
	)
	select array_agg(e.edge order by e.edge)
	from (select edge, lead(edge) over (order by edge) as next, lag(edge) over (order by edge) as previous from edge) e
	where coalesce(e.next > since_us, true)
		and (e.previous is null or e.previous < until_us);
end;
comment on function tacho._zone_edges is 'edges of buckets on a clock that is changed, from the one at or before since to the one at or behind until';

-- Without tz the session's time zone is used. If its clock is not changed in the
-- window, or by a multiple of the width, all buckets have equal width.
create function tacho._place_buckets(q tacho.question, tz text)
returns tacho.question
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_zone constant text := coalesce(tz, current_setting('timezone'));
	v_margin constant bigint := least(q.width_us, 3155760000000000) + 172800000000;
	v_spans tacho.clock_span[] := array[row(null, null, 0)::tacho.clock_span];
begin
	if not tacho._is_utc(v_zone) then
		v_spans := tacho._clock_spans(q.since_us - v_margin, q.until_us + v_margin, v_zone);
	end if;
	if cardinality(v_spans) = 1 or q.width_us <= 3600000000 and not exists (
		select from unnest(v_spans[2:]) s
		where (s.offset_us - (v_spans[1]).offset_us) % q.width_us <> 0 or (s.begin_us + s.offset_us) % q.width_us <> 0)
	then
		q.origin_us := tacho._multiple(q.since_us, q.width_us, (v_spans[1]).offset_us);
		q.n_buckets := ceil((q.until_us - q.origin_us)::numeric / q.width_us);
	else
		q.edges_us := tacho._zone_edges(q.since_us, q.until_us, q.width_us, v_spans);
		q.n_buckets := cardinality(q.edges_us) - 1;
	end if;
	return q;
end
$$;
comment on function tacho._place_buckets is 'buckets begin at multiples of their width on the clock of a time zone';

create function tacho._buckets(q tacho.question, bucket interval, tz text, most integer)
returns tacho.question
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_width bigint := extract(epoch from bucket) * 1000000;
begin
	if v_width <= 0 then
		raise exception 'bucket must be greater than zero'
			using errcode = 'invalid_parameter_value',
				detail = format('The bucket is %s us.', v_width),
				hint = 'Use a positive interval such as 1 minute.';
	end if;
	if (q.until_us - q.since_us) / v_width > most then
		perform tacho._too_many_buckets((q.until_us - q.since_us) / v_width, most);
	end if;
	q.width_us := v_width;
	q := tacho._place_buckets(q, tz);
	if q.since_us >= q.until_us then
		q.n_buckets := 0;
	end if;
	if q.n_buckets > most then
		perform tacho._too_many_buckets(q.n_buckets, most);
	end if;
	return q;
end
$$;
comment on function tacho._buckets is 'divides the window of a question into buckets, at most that many';

create function tacho._bucket_start(q tacho.question, bucket integer)
returns bigint
language sql immutable parallel safe
return coalesce(q.edges_us[bucket + 1], q.origin_us + bucket * q.width_us);
comment on function tacho._bucket_start is 'begin of a bucket, which may lie before the window';

-- SQL for the bucket of a time in ms; parameter $1 has the edges.
create function tacho._bucket_sql(q tacho.question, ms text)
returns text
language sql immutable parallel safe
return case
	when q.edges_us is not null then format('(width_bucket((%s) * 1000, $1) - 1)', ms)
	else format('(((%s) * 1000 - %s::bigint) / %s::bigint)::integer', ms, q.origin_us, q.width_us)
end;
comment on function tacho._bucket_sql is 'an expression for the bucket of a time';

create function tacho._limit(n bigint)
returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
	if n < 1 then
		raise exception 'n must be at least 1'
			using errcode = 'invalid_parameter_value',
				detail = format('The value is %s.', n);
	end if;
	return coalesce(n, 9223372036854775807);
end
$$;
comment on function tacho._limit is 'checks n; null is all';

create function tacho._check_node(node text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_node constant text := (select s.node from tacho.setting s);
begin
	if lpad(lower(node), 16, '0') <> v_node and node <> 'all' then
		raise exception 'node "%" does not exist', node
			using errcode = 'undefined_object',
				hint = format('Available are all, %s.', v_node);
	end if;
end
$$;
comment on function tacho._check_node is 'there is one node here';

create function tacho._ask(
	since timestamptz,
	until timestamptz,
	scope text,
	tz text,
	node text,
	by_leader boolean,
	filters jsonb
)
returns tacho.question
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question;
begin
	q := tacho._window(q, since, until);
	q.by_leader := coalesce(by_leader, false);
	q.scope := coalesce(scope, 'load');
	q.filters := coalesce(filters, '{}');
	return q;
end
$$;
comment on function tacho._ask is 'a question whose window is checked, but not yet its filters; see _select()';
