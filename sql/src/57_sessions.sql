/*
 * 57_sessions.sql - the lives of sessions
 *
 * Samples are read twice: to find the sessions seen for the longest time, and to find
 * their spans. A span is a run of samples at which a session did the same; it ends with
 * the slot of its last tick.
 */
create type tacho.span as (
	begin_ms bigint,
	end_ms bigint,
	ticks bigint,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	query_id bigint,
	plan_id bigint,
	blocked_by integer,
	query_start timestamptz,
	xact_start timestamptz,
	query_text text
);
comment on type tacho.span is 'a stretch of a life';

create type tacho.life as (
	pid integer,
	backend_start timestamptz,
	backend_type text,
	database text,
	username text,
	application text,
	client_addr text,
	span_start timestamptz,
	span_end timestamptz,
	kind text,
	seconds numeric,
	ticks bigint,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	query_id bigint,
	plan_id bigint,
	blocked_by integer,
	query_start timestamptz,
	xact_start timestamptz,
	query_text text
);
comment on type tacho.life is 'the columns of sessions()';

-- For how long each session was seen; `slot` and `id` are its rows.
create function tacho._seen_sessions(q tacho.question, slots smallint[])
returns table (
	pid integer,
	backend_start timestamptz,
	sum_ms bigint
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
	v_sql constant text := tacho._decode_sql(q, 's.pid, s.backend_start, sum(u.weight)::bigint', 'group by s.pid, s.backend_start');
	v_batch record;
begin
	for v_batch in execute tacho._whole_packs_sql(q, slots) loop
		return query execute v_sql using v_batch.packs, v_batch.slot;
	end loop;
end
$$;
comment on function tacho._seen_sessions is 'weight of the samples of each session, in pieces';

create type tacho.person as (
	rank bigint,
	pid integer,
	backend_start timestamptz
);
comment on type tacho.person is 'a session of the answer';

create type tacho.doing as (
	rank bigint,
	ms bigint,
	weight bigint,
	session integer,
	slot smallint,
	span tacho.span
);
comment on type tacho.doing is 'activity of a session of the answer at a tick; its span without times';

create function tacho._doings(q tacho.question, slots smallint[], people tacho.person[])
returns setof tacho.doing
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_sql text;
	v_batch record;
begin
	q.filters := q.filters || jsonb_build_array(jsonb_build_object(
		'dimension', 'pid',
		'any', (select jsonb_agg(distinct nullif(p.pid, 0)::text) from unnest(people) p),
		'none', '[]'::jsonb));
	v_sql := tacho._decode_sql(q, $c$
		w.rank,
		u.ms,
		u.weight,
		s.id,
		s.slot,
		row(null, null, 1, nullif(a.state, ''), nullif(a.wait_event_type, ''), nullif(a.wait_event, ''), nullif(a.cpu, ''),
			nullif(a.query_id, 0), nullif(a.plan_id, 0), nullif(bs.pid, 0),
			tacho._time(u.query_start * 1000),
			tacho._time(u.xact_start * 1000),
			case when a.query_id = 0 and a.text_id <> 0 then (select x.body from tacho.text x where x.id = a.text_id) end)::tacho.span$c$,
		'', 'join unnest($3) w on w.pid = s.pid and w.backend_start is not distinct from s.backend_start');
	for v_batch in execute tacho._whole_packs_sql(q, slots) loop
		return query execute v_sql using v_batch.packs, v_batch.slot, people;
	end loop;
end
$$;
comment on function tacho._doings is 'activity of the sessions of the answer at each tick, unordered';

-- Stretches between the ticks of a window at which nothing was observed.
create function tacho._unobserved(q tacho.question, slots smallint[])
returns table (
	begin_ms bigint,
	end_ms bigint
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	return query execute format($sql$
		select x.last_end, x.ms
		from (
			select t.ms, max(t.ms + t.weight) over (order by t.ms rows between unbounded preceding and 1 preceding) as last_end
			from (%1$s) p
			cross join lateral (
				select
					p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms,
					coalesce(p.intervals[i], p.interval_ms)::bigint as weight
				from generate_series(1, p.n_ticks) i
				where coalesce(p.statuses[i], 1) <> 3
			) t
			where t.ms >= %2$s
				and t.ms < %3$s
		) x
		where x.last_end < x.ms
		order by x.ms$sql$,
		tacho._packs_sql(q, slots, 'start_ms, n_ticks, interval_ms, tick_offsets, time_offsets, intervals, statuses'),
		ceil(q.since_us / 1000.0)::bigint,
		ceil(q.until_us / 1000.0)::bigint);
end
$$;
comment on function tacho._unobserved is 'gaps between observed ticks, in order';

-- Spans of a life, in order; equal spans without a gap between them are one. Different
-- kinds of CPU activity do not end a span: it lists them, the most frequent first.
create function tacho._spans(doings tacho.doing[])
returns setof tacho.span
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with d as (
		select
			x.ms,
			x.ms + x.weight as end_ms,
			x.span,
			max(x.ms + x.weight) over (order by x.ms rows between unbounded preceding and 1 preceding) as last_end,
			lag(x.span) over (order by x.ms) as last
		from unnest(doings) x
	), numbered as (
		select d.*, count(*) filter (where d.last_end is null or d.last_end < d.ms
			or ((d.span).state, (d.span).wait_event_type, (d.span).wait_event, (d.span).query_id,
				(d.span).plan_id, (d.span).blocked_by, (d.span).query_text)
				is distinct from
				((d.last).state, (d.last).wait_event_type, (d.last).wait_event, (d.last).query_id,
				(d.last).plan_id, (d.last).blocked_by, (d.last).query_text)) over (order by d.ms) as n
		from d
	), ends as (
		select n, min(ms) as begin_ms, max(end_ms) as end_ms, count(*) as ticks
		from numbered
		group by n
	), kinds as (
		select k.n, string_agg(k.cpu, ', ' order by k.ticks desc, k.cpu collate "C") as cpu
		from (select n, (span).cpu as cpu, count(*) as ticks from numbered where (span).cpu is not null group by n, (span).cpu) k
		group by k.n
	)
	select e.begin_ms, e.end_ms, e.ticks, (f.span).state, (f.span).wait_event_type, (f.span).wait_event, k.cpu,
		(f.span).query_id, (f.span).plan_id, (f.span).blocked_by, (f.span).query_start, (f.span).xact_start, (f.span).query_text
	from ends e
	join numbered f on f.n = e.n and f.ms = e.begin_ms
	left join kinds k on k.n = e.n
	order by e.begin_ms;
end;
comment on function tacho._spans is 'spans of a life from what the session did at each tick';

-- Pieces between two spans: gaps in observation, and observed time in which the session
-- was not seen.
create function tacho._between(begin_ms bigint, end_ms bigint, gaps int8multirange, unseen text)
returns table (
	kind text,
	since_ms bigint,
	until_ms bigint
)
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select x.kind, lower(x.r), upper(x.r)
	from (
		select 'gap', r
		from unnest(gaps * int8multirange(int8range(begin_ms, greatest(begin_ms, end_ms)))) r
		union all
		select unseen, r
		from unnest(int8multirange(int8range(begin_ms, greatest(begin_ms, end_ms))) - gaps) r
	) x (kind, r)
	order by lower(x.r);
end;
comment on function tacho._between is 'a stretch divided into gaps and what a session was not seen in';

create function tacho._lives(
	people tacho.person[],
	doings tacho.doing[],
	gaps int8multirange,
	unseen text
)
returns setof tacho.life
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_person tacho.person;
	v_life tacho.doing[];
	v_span tacho.span;
	v_piece record;
	v_end_ms bigint;
	r tacho.life;
begin
	foreach v_person in array people loop
		r := null;
		v_end_ms := null;
		v_life := array(select d from unnest(doings) d where d.rank = v_person.rank);
		select s.pid, s.backend_start, s.backend_type, s.database, s.username, s.application, s.client_addr
		into r.pid, r.backend_start, r.backend_type, r.database, r.username, r.application, r.client_addr
		from unnest(v_life) d
		join tacho.session s on s.slot = d.slot and s.id = d.session
		order by coalesce(s.backend_type, s.database, s.username, s.application, s.client_addr) is null, d.ms
		limit 1;
		for v_span in select * from tacho._spans(v_life) loop
			for v_piece in select * from tacho._between(v_end_ms, v_span.begin_ms, gaps, unseen) where v_end_ms < v_span.begin_ms loop
				r := row(r.pid, r.backend_start, r.backend_type, r.database, r.username, r.application, r.client_addr,
					tacho._time(v_piece.since_ms * 1000), tacho._time(v_piece.until_ms * 1000), v_piece.kind,
					tacho._round4(v_piece.until_ms - v_piece.since_ms, 1000),
					null, null, null, null, null, null, null, null, null, null, null);
				return next r;
			end loop;
			v_end_ms := greatest(v_end_ms, v_span.end_ms);
			r := row(r.pid, r.backend_start, r.backend_type, r.database, r.username, r.application, r.client_addr,
				tacho._time(v_span.begin_ms * 1000), tacho._time(v_span.end_ms * 1000), 'sampled',
				tacho._round4(v_span.end_ms - v_span.begin_ms, 1000), v_span.ticks, v_span.state, v_span.wait_event_type,
				v_span.wait_event, v_span.cpu, v_span.query_id, v_span.plan_id, v_span.blocked_by, v_span.query_start,
				v_span.xact_start, coalesce(v_span.query_text, tacho._query_text(v_span.query_id::text, r.database)));
			return next r;
		end loop;
	end loop;
end
$$;
comment on function tacho._lives is 'the rows of sessions()';

create function tacho._sessions(since timestamptz, until timestamptz, n bigint, filters jsonb, scope text, tz text, node text, by_leader boolean)
returns setof tacho.life
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(since, until, coalesce(scope, 'all'), tz, node, by_leader, filters);
	v_n constant bigint := tacho._limit(n);
	v_slots smallint[];
	v_people tacho.person[];
	v_complete boolean;
begin
	q := tacho._select(q, node);
	v_slots := tacho._lock_slots(q.since_us, q.until_us);
	perform tacho._only_samples(q);
	if v_slots = '{}' or q.since_us = q.until_us then
		perform tacho._say_empty(q);
		return;
	end if;
	v_people := array(
		select row(row_number() over (order by x.sum_ms desc, x.pid, x.backend_start nulls first), x.pid, x.backend_start)::tacho.person
		from (
			select s.pid, s.backend_start, sum(s.sum_ms) as sum_ms
			from tacho._seen_sessions(q, v_slots) s
			group by s.pid, s.backend_start
		) x
		order by x.sum_ms desc, x.pid, x.backend_start nulls first
		limit v_n);
	if v_people = '{}' then
		perform tacho._say_empty(q);
		return;
	end if;
	-- a tick without a sample of such a session was an idle one
	v_complete := q.scope = 'all' and not exists (
		select from jsonb_array_elements(q.filters) f
		join tacho.dimension d on d.name = f ->> 'dimension'
		where d.side <> 'session');
	return query
		select l.*
		from tacho._lives(
			v_people,
			array(select d from tacho._doings(q, v_slots, v_people) d),
			(select coalesce(range_agg(int8range(g.begin_ms, g.end_ms)), '{}') from tacho._unobserved(q, v_slots) g),
			case when v_complete then 'idle' else 'no match' end) l;
end
$$;
comment on function tacho._sessions is 'sessions() with its filters as JSON';

call tacho._reader($decl$sessions(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	FILTERS
	scope text default 'all',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns setof tacho.life rows 100$decl$,
'select * from tacho._sessions(sessions.since, sessions.until, sessions.n, {FILTERS}, sessions.scope, sessions.tz, sessions.node, sessions.by_leader)',
'The lives of the n sessions seen for the longest time: spans in which state, wait, query and blocker stayed the same, in order of time. cpu lists the kinds of CPU activity within a span, the most frequent first. kind tells what a row is: sampled; idle (observed, not seen); no match (not seen among what scope and filters let through); gap (nothing was observed). query_start and xact_start are those at the begin of the span. Filters: {DIMENSIONS}. Example: select span_start, seconds, kind, state, wait_event, query_text from tacho.sessions(pid => ''4711'', since => now() - interval ''10 minutes'');');
