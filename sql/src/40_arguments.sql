/*
 * 40_arguments.sql - a question made definite: window, buckets
 *
 * All times are microseconds since 1970 UTC, windows are half-open. Messages
 * are those of the extension, word by word: one conformance suite runs against
 * both.
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
'a checked question: buckets are n_buckets of width_us from origin_us on, or between edges_us; filters is an array of {dimension, any, none}; from hours_from_us to hours_to_us hour rows answer, see _plan()';

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
				detail = format('The window given begins %s s after its end.', (q.since_us - v_until_us) / 1000000),
				hint = 'Swap the two, or leave until out for the present.';
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
			detail = format('The window holds %s buckets, %s are allowed.', buckets, most),
			hint = 'Use a wider bucket or a shorter window.';
end
$$;
comment on function tacho._too_many_buckets is 'complains';

-- A local time that happens twice is its first instant, as in the extension.
create function tacho._instant(day date, time_us bigint, tz text)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_local constant timestamp := day + time_us * interval '1 microsecond';
	v_instant constant timestamptz := v_local at time zone tz;
	v_step interval;
begin
	foreach v_step in array array['1 hour', '30 minutes']::interval[] loop
		if (v_instant - v_step) at time zone tz = v_local then
			return tacho._us(v_instant - v_step);
		end if;
	end loop;
	return tacho._us(v_instant);
end
$$;
comment on function tacho._instant is 'the instant of a local time';

-- Buckets begin anew at each midnight; those above an hour at local times.
create function tacho._zone_edges(since_us bigint, until_us bigint, width_us bigint, tz text)
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_hour constant bigint := 3600000000;
	v_day constant bigint := 24 * v_hour;
	v_days constant integer := case when width_us % v_day = 0 then width_us / v_day else 1 end;
	v_number integer := (tacho._time(since_us) at time zone tz)::date - date '1970-01-01';
	v_date date;
	v_midnight bigint;
	v_next bigint;
	v_edges bigint[] := '{}';
begin
	v_date := date '1970-01-01' + floor(v_number::numeric / v_days)::integer * v_days;
	loop
		v_midnight := tacho._instant(v_date, 0, tz);
		v_next := tacho._instant(v_date + v_days, 0, tz);
		if width_us % v_day = 0 then
			v_edges := v_edges || v_midnight;
		elsif width_us > v_hour then
			v_edges := v_edges || array(
				select e.edge
				from (
					select distinct tacho._instant(v_date, k * width_us, tz) as edge
					from generate_series(0, (v_day - 1) / width_us) k
				) e
				where e.edge < v_next
				order by e.edge);
		else
			v_edges := v_edges || array(
				select v_midnight + k * width_us
				from generate_series(0, (v_next - v_midnight - 1) / width_us) k
				order by k);
		end if;
		exit when v_midnight >= until_us;
		v_date := v_date + v_days;
	end loop;
	return array(
		select e.edge
		from (select edge, lead(edge) over (order by edge) as next, lag(edge) over (order by edge) as previous
			from unnest(v_edges) edge) e
		where coalesce(e.next > since_us, true)
			and (e.previous is null or e.previous < until_us)
		order by e.edge);
end
$$;
comment on function tacho._zone_edges is 'edges of buckets in a time zone, from the one at or before since to the one at or behind until';

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
				detail = format('The bucket given is %s us.', v_width),
				hint = 'Use a positive interval such as 1 minute.';
	end if;
	if (q.until_us - q.since_us) / v_width > most then
		perform tacho._too_many_buckets((q.until_us - q.since_us) / v_width, most);
	end if;
	q.width_us := v_width;
	if tz is null then
		q.origin_us := floor(q.since_us::numeric / v_width)::bigint * v_width;
		q.n_buckets := ceil((q.until_us - q.origin_us)::numeric / v_width);
	else
		q.edges_us := tacho._zone_edges(q.since_us, q.until_us, v_width, tz);
		q.n_buckets := cardinality(q.edges_us) - 1;
	end if;
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

-- SQL that gives the bucket of a time in ms, with edges as parameter $1.
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
				detail = format('The value given is %s.', n);
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
