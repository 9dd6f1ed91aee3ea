/*
 * 59_report.sql - what the database was doing, in one document
 *
 * Every part is the answer of another function to the same window and filters, so the
 * figures of both are equal to the last digit.
 */
create type tacho.selection as (
	filters jsonb,
	scope text,
	tz text,
	node text,
	by_leader boolean
);
comment on type tacho.selection is 'which samples a report is about, as it is handed on to every function';

create function tacho._json_time(at timestamptz)
returns text
language sql immutable parallel safe
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
	|| coalesce(nullif(rtrim(to_char(at at time zone 'UTC', '.US'), '0'), '.'), '') || 'Z';
comment on function tacho._json_time is 'a time as documents have it';

-- Numbers keep their digits; intervals are written for people.
create function tacho._part(line jsonb, columns text[] default null)
returns jsonb
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select jsonb_object_agg(e.key, case
		when e.key ~ '_(start|end|seen|time)$' and jsonb_typeof(e.value) = 'string'
			then to_jsonb(tacho._json_time((e.value #>> '{}')::timestamptz))
		else e.value end)
	from jsonb_each(line) e
	where e.key = any (columns) or columns is null;
end;
comment on function tacho._part is 'columns of a row, all by default';

create function tacho._report_widths()
returns bigint[]
language sql immutable parallel safe
return array[1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400];
comment on function tacho._report_widths is 'widths of a bar in seconds';

-- The smallest width that holds a tick and makes at most 120 bars.
create function tacho._report_bucket(since timestamptz, until timestamptz, load jsonb)
returns bigint
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce((
		select min(w)
		from unnest(tacho._report_widths()) w
		where floor(x.length_us / (w * 1000000)) <= 120
			and w * 100000000 >= x.interval_us * 99), 604800)
	from (
		select
			tacho._us(until) - tacho._us(since) as length_us,
			case when (load ->> 'ticks_observed')::numeric > 0
				then div(div((tacho._us(until) - tacho._us(since))::numeric * (load ->> 'coverage_pct')::numeric * 10000, 1000000),
					(load ->> 'ticks_observed')::numeric)
				else 0 end as interval_us
	) x;
end;
comment on function tacho._report_bucket is 'seconds of a bar of the picture';

create function tacho._report_timeline(during tstzrange, load jsonb, s tacho.selection)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_seconds constant bigint := tacho._report_bucket(lower(during), upper(during), load);
	v_split jsonb[] := array(
		select to_jsonb(t)
		from tacho._timeline(lower(during), upper(during), v_seconds * interval '1 second', 'wait_event_type', 8,
			s.filters, s.scope, s.tz, s.node, s.by_leader, true)
			with ordinality t
		order by t.ordinality);
	v_whole jsonb[] := array(
		select to_jsonb(t)
		from tacho._timeline(lower(during), upper(during), v_seconds * interval '1 second', null, 8,
			s.filters, s.scope, s.tz, s.node, s.by_leader, true)
			with ordinality t
		order by t.ordinality);
	v_keys constant integer := cardinality(v_split) / greatest(cardinality(v_whole), 1);
begin
	return jsonb_build_object(
		'bucket_seconds', v_seconds,
		'keys', (select coalesce(jsonb_agg(k -> 'key' order by o), '[]') from unnest(v_split[:v_keys]) with ordinality u (k, o)),
		'buckets', (
			select coalesce(jsonb_agg(
				tacho._part(w.b, array['bucket_start', 'avg_aas', 'peak_sessions', 'coverage_pct']) || jsonb_build_object('by', (
					select coalesce(jsonb_agg(part -> 'avg_aas' order by i), '[]')
					from unnest(v_split[(w.o - 1) * v_keys + 1:w.o * v_keys]) with ordinality u (part, i)))
				order by w.o), '[]')
			from unnest(v_whole) with ordinality w (b, o)));
end
$$;
comment on function tacho._report_timeline is 'load by class of waits: keys once, then a number for each in a bucket';

create function tacho._report_keys(during tstzrange, n bigint, dimension text, columns text[], s tacho.selection)
returns jsonb
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(jsonb_agg(tacho._part(to_jsonb(t), columns) order by t.ordinality), '[]')
	from tacho._top(dimension, lower(during), upper(during), n, null, 'avg', null,
		(s).filters, (s).scope, (s).tz, (s).node, (s).by_leader) with ordinality t;
end;
comment on function tacho._report_keys is 'the n largest keys of a dimension';

create function tacho._report_queries(during tstzrange, n bigint, s tacho.selection)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_queries constant jsonb := tacho._report_keys(during, n, 'query_id',
		array['key', 'query_text', 'avg_aas', 'peak_aas', 'peak_sessions', 'backend_seconds', 'pct'], s);
	v_waits constant jsonb := (
		select coalesce(jsonb_agg(to_jsonb(t) order by t.ordinality), '[]')
		from tacho._top('query_id', lower(during), upper(during), n, null, 'avg', 'wait_event',
			s.filters, s.scope, s.tz, s.node, s.by_leader) with ordinality t);
begin
	return (
		select coalesce(jsonb_agg(q.value || jsonb_build_object('waits', (
			select coalesce(jsonb_agg(jsonb_build_object('key', w.value -> 'by_key', 'avg_aas', w.value -> 'avg_aas') order by w.ordinality), '[]')
			from jsonb_array_elements(v_waits) with ordinality w
			where w.value -> 'key' = q.value -> 'key')) order by q.ordinality), '[]')
		from jsonb_array_elements(v_queries) with ordinality q);
end
$$;
comment on function tacho._report_queries is 'the largest queries, each with its largest waits';

-- Ignores the filters, because they might leave out the blockers of sessions that they
-- select. Identifiers of 64 bits are texts, because many JSON readers keep only 53
-- bits.
create function tacho._report_blockers(during tstzrange, n bigint, tz text, node text)
returns jsonb
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(jsonb_agg(tacho._part(to_jsonb(b) || jsonb_build_object('query_id', b.query_id::text), array['kind', 'pid', 'backend_start', 'prepared_gid',
		'database', 'username', 'application', 'state', 'xact_age', 'query_id', 'query_text', 'blocked_seconds', 'waiters',
		'depth', 'object', 'lock_database', 'lock_relation', 'relation', 'mode', 'mode_held', 'first_seen', 'last_seen']) order by b.ordinality), '[]')
	from tacho._blocking(null, lower(during), upper(during), n, tz, node) with ordinality b;
end;
comment on function tacho._report_blockers is 'who blocked others';

create function tacho._report_tree(at timestamptz, n bigint, tz text, node text)
returns jsonb
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	select jsonb_build_object(
		'tree', case when at is not null then coalesce(jsonb_agg(tacho._part(to_jsonb(b), array['tree', 'level', 'kind', 'pid',
			'state', 'xact_age', 'waited', 'via', 'object', 'lock_database', 'lock_relation', 'relation', 'mode', 'waiters', 'query_text'])
			order by b.ordinality) filter (where b.ordinality <= 50), '[]') end,
		'tree_left_out', greatest(count(*) - 50, 0))
	from tacho._blocking(at, null, null, n, tz, node) with ordinality b
	where at is not null;
end;
comment on function tacho._report_tree is 'tree of waiters at a moment: 50 rows, and how many are left out';

create function tacho._report_changes(before tstzrange, during tstzrange, n bigint, s tacho.selection)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_columns constant text[] := array['key', 'query_text', 'change', 'avg_delta', 'avg_aas_1', 'avg_aas_2'];
	v_pair record;
	v_rows jsonb[];
	v_note jsonb := 'null';
	v_changes jsonb := '{}';
begin
	for v_pair in select * from (values ('waits', 'wait_event'), ('queries', 'query_id')) p (name, dimension) loop
		v_rows := array(
			select to_jsonb(c)
			from tacho._compare(v_pair.dimension, lower(before), upper(before), lower(during), upper(during), n, null,
				s.filters, s.scope, s.tz, s.node, s.by_leader) with ordinality c
			order by c.ordinality);
		v_note := coalesce(v_rows[1] -> 'note', v_note);
		v_changes := v_changes || jsonb_build_object(v_pair.name, (
			select coalesce(jsonb_agg(tacho._part(r, v_columns) order by o), '[]') from unnest(v_rows) with ordinality u (r, o)));
	end loop;
	return v_changes || jsonb_build_object('note', v_note);
end
$$;
comment on function tacho._report_changes is 'differences between two windows';

create function tacho._report_gaps(since timestamptz, until timestamptz)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(jsonb_agg(jsonb_build_object(
		'since', tacho._json_time(g.gap_start),
		'until', tacho._json_time(g.gap_end),
		'cause', g.cause) order by g.ordinality), '[]')
	from tacho._gaps(since, until) with ordinality g;
end;
comment on function tacho._report_gaps is 'gaps that reach into a window, cut to it, the longest first';

create function tacho._selected_load(during tstzrange, s tacho.selection)
returns setof tacho.load
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	select a.*
	from tacho._aas(lower(during), upper(during), null, (s).filters, (s).scope, (s).tz, (s).node, (s).by_leader) a;
end;
comment on function tacho._selected_load is 'the load of a window';

-- The window for comparison: the same time the day before. If that was not observed or
-- its samples are gone, the time just before.
create function tacho._report_before(during tstzrange, s tacho.selection, out before tstzrange, out how text, out load jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_length constant interval := upper(during) - lower(during);
begin
	before := tstzrange(lower(during) - interval '24 hours', upper(during) - interval '24 hours', '[]');
	how := 'the same time the day before';
	if tacho._us(lower(before)) >= tacho._raw_first_us() then
		load := (select to_jsonb(a) from tacho._selected_load(before, s) a);
		if load ->> 'source' <> 'none' then
			return;
		end if;
	end if;
	before := tstzrange(lower(during) - v_length, lower(during), '[]');
	how := 'the time just before';
	load := (select to_jsonb(a) from tacho._selected_load(before, s) a);
end
$$;
comment on function tacho._report_before is 'earlier window that a window is compared with, and its load';

create function tacho._report_json(at timestamptz, during tstzrange, n bigint, s tacho.selection)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set intervalstyle = 'postgres'
set client_min_messages = warning
as $$
declare
	v_since constant timestamptz := lower(during);
	v_until constant timestamptz := upper(during);
	v_figures constant text[] := array['source', 'avg_aas', 'peak_aas', 'p99_aas', 'peak_sessions', 'backend_seconds', 'vcpus'];
	v_measures constant text[] := array['key', 'avg_aas', 'peak_aas', 'peak_sessions', 'backend_seconds', 'pct'];
	v_load constant jsonb := (select to_jsonb(a) from tacho._selected_load(during, s) a);
	v_before record;
begin
	select * into v_before from tacho._report_before(during, s);
	return jsonb_build_object(
		'period', jsonb_build_object(
			'at', tacho._json_time(at),
			'period_start', tacho._json_time(v_since),
			'period_end', tacho._json_time(v_until),
			'before', v_before.how,
			'before_start', tacho._json_time(lower(v_before.before)),
			'before_end', tacho._json_time(upper(v_before.before))),
		'load', tacho._part(v_load, v_figures),
		'load_before', tacho._part(v_before.load, v_figures),
		'coverage', tacho._part(v_load, array['ticks_expected', 'ticks_observed', 'ticks_failed', 'coverage_pct'])
			|| jsonb_build_object('gaps', tacho._report_gaps(v_since, v_until)),
		'timeline', tacho._report_timeline(during, v_load, s),
		'waits', tacho._report_keys(during, n, 'wait_event', v_measures, s),
		'queries', tacho._report_queries(during, n, s),
		'databases', tacho._report_keys(during, n, 'database', v_measures, s),
		'users', tacho._report_keys(during, n, 'username', v_measures, s),
		'applications', tacho._report_keys(during, n, 'application', v_measures, s),
		'blockers', tacho._report_blockers(during, n, s.tz, s.node),
		'changes', tacho._report_changes(v_before.before, during, n, s),
		'markers', (select coalesce(jsonb_agg(tacho._part(to_jsonb(m), array['marker_time', 'kind', 'period_start', 'period_end', 'detail'])
				order by m.marker_time, m.kind collate "C"), '[]')
			from tacho._markers(v_since, v_until, s.node) m),
		'compat', tacho._compat(during, n, s)) || tacho._report_tree(at, n, s.tz, s.node);
end
$$;
comment on function tacho._report_json is 'the document';

create function tacho._report(at timestamptz, since timestamptz, until timestamptz, n bigint, s tacho.selection)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question;
begin
	if at is not null and (since is not null or until is not null) then
		raise exception 'at cannot be combined with since or until'
			using errcode = 'invalid_parameter_value',
				hint = 'Specify either a moment or a window.';
	end if;
	-- the document is made in UTC
	s.tz := coalesce(s.tz, current_setting('timezone'));
	q := tacho._ask(coalesce(at - interval '15 minutes', since), coalesce(at + interval '15 minutes', until), s.scope, s.tz, s.node, s.by_leader, s.filters);
	perform tacho._select(q, s.node);
	period_start := tacho._time(q.since_us);
	period_end := tacho._time(q.until_us);
	report := tacho._report_json(at, tstzrange(period_start, period_end, '[]'), n, s);
	return next;
end
$$;
comment on function tacho._report is 'report() with a full timestamp';

-- A time without a zone is in tz, by default the session's zone. A time of day means
-- its last occurrence.
create function tacho._moment(at text, tz text)
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case
		when at ~ '^ *[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? *$' then (
			select case when (t.today + at::time) at time zone t.zone <= now()
				then (t.today + at::time) at time zone t.zone
				else (t.today - 1 + at::time) at time zone t.zone end
			from (
				select z.zone, (now() at time zone z.zone)::date as today
				from (select coalesce(tz, current_setting('timezone')) as zone) z
			) t)
		when tz is null or at !~ '[0-9]' or at ~* ':[0-9.]+ *([+-][0-9:]+|[a-z][a-z_/]*)$' and at !~* '[ap]m$'
			then at::timestamptz
		else at::timestamp at time zone tz
	end;
end;
comment on function tacho._moment is 'the moment that a report is about';

call tacho._reader($decl$report(
	at text default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 5,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
) rows 1$decl$,
$body$select * from tacho._report(
	tacho._moment(report.at, report.tz),
	report.since, report.until, report.n,
	row({FILTERS}, report.scope, report.tz, report.node, report.by_leader)::tacho.selection)$body$,
'What was the database doing? One document about a window, or with "at" about half an hour around a moment; "03:12" is the last such time in tz (default: zone of the session). It has load against vCPUs, a timeline by wait class, and the n largest waits, queries (with texts and waits), databases, users and applications. It has blockers, and changes against the same time the day before, or just before. It has markers, coverage and gaps; "compat" has the keys of pg_ash''s report. Filters apply to all parts but blockers, the tree of a moment (50 rows, tree_left_out more) and markers, which are of the whole server. It needs samples, which are kept for as long as the ring is. Filters: {DIMENSIONS}. Example: select jsonb_pretty(report -> ''queries'') from tacho.report(at => ''03:12'');');
