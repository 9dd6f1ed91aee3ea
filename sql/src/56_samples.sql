/*
 * 56_samples.sql - the samples themselves, newest first
 *
 * Packs are decoded from the newest back, until there are n rows. Single ticks are
 * decoded a minute at a time, because each step plans a statement.
 */
create type tacho.sample as (
	sample_time timestamptz,
	tick bigint,
	pid integer,
	backend_start timestamptz,
	leader integer,
	backend_type text,
	category text,
	database text,
	username text,
	application text,
	client_addr text,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	query_id bigint,
	plan_id bigint,
	tags text,
	query_start timestamptz,
	xact_start timestamptz,
	state_change timestamptz,
	xmin_age bigint,
	xid_age bigint,
	progress_command text,
	progress_relation bigint,
	blocked_by integer,
	weight_ms bigint,
	query_text text
);
comment on type tacho.sample is 'the columns of samples()';

-- Decodes packs $1 of partition $2. p is a pack. u is a sample with its place n, its tick's i, ms,
-- weight and tick, its starts and ages. s and a are its rows in the dictionaries, bs is the
-- session that blocks it. Arrays of p are not used beside u, so rows are sorted and hashed without
-- them.
create function tacho._decode_sql(q tacho.question, columns text, tail text, joined text default '')
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_marked constant boolean := q.scope = 'all';
	v_blockers text;
begin
	select string_agg(' and ' || tacho._accept_sql(
		case f ->> 'dimension'
			when 'blocked_by' then 'nullif(bs.pid, 0)::text'
			else $e$case u.root when 0 then null when -1 then '(cycle)'
				else (select r.pid::text from tacho.session r where r.slot = $2 and r.id = u.root) end$e$
		end, f), '')
	into v_blockers
	from jsonb_array_elements(q.filters) f
	where f ->> 'dimension' in ('blocked_by', 'root_blocker');
	return format($sql$
		select %7$s
		from unnest($1) p
		cross join lateral (
			select
				x.*,
				p.start_ms + p.query_starts[x.start] as query_start,
				p.start_ms + p.xact_starts[x.start] as xact_start,
				p.start_ms + p.state_changes[x.start] as state_change,
				p.xmin_ages[x.n] as xmin_age,
				p.xid_ages[x.n] as xid_age,
				p.first_tick + coalesce(p.tick_offsets[x.i], x.i - 1) as tick
			from (
				select
					n,
					t.i,
					t.ms,
					t.weight,
					p.sessions[f.at[n] / p.n_ticks + 1] as session,
					coalesce(p.what[n] + 32769, p.wide[n]) as activity,
					coalesce(width_bucket(n, p.start_at), n) as start,
					b.id as blocker,
					r.roots[n] as root
				from (%6$s) f
				cross join lateral (select %10$s as roots offset 0) r
				cross join generate_series(1, cardinality(f.at)) n
				join (
					select
						i,
						p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms,
						coalesce(p.intervals[i], p.interval_ms)::bigint as weight
					from generate_series(1, p.n_ticks) i
					where coalesce(p.statuses[i], 1) <> 3
				) t on t.i = f.at[n] %% p.n_ticks + 1 and t.ms >= %1$s and t.ms < %2$s
				left join unnest(p.blocked_at, p.blockers) b (at, id) on b.at = n
			) x
			offset 0
		) u
		join (select * from tacho.session where slot = $2 and %3$s) s on s.id = u.session
		join (select * from tacho.activity where slot = $2 and %4$s) a on a.id = u.activity
		left join tacho.session bs on bs.slot = $2 and bs.id = u.blocker
		%9$s
		where true %5$s
		%8$s$sql$,
		ceil(q.since_us / 1000.0)::bigint,
		ceil(q.until_us / 1000.0)::bigint,
		tacho._side_sql(q, 'session', v_marked),
		tacho._side_sql(q, 'activity', v_marked),
		v_blockers,
		tacho._positions_sql('p'),
		columns,
		tail,
		joined,
		case when v_blockers ~ 'u\.root' then 'tacho._roots(p.sessions, p.blocked_at, p.blockers, f.at, p.n_ticks)' else 'null::integer[]' end);
end
$$;
comment on function tacho._decode_sql is 'SQL that decodes the samples of packs';

-- $3 is the number of rows wanted.
create function tacho._samples_sql(q tacho.question)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
return tacho._decode_sql(q, $sql$
	tacho._time(u.ms * 1000),
	u.tick,
	s.pid,
	s.backend_start,
	nullif(s.leader, 0),
	s.backend_type,
	s.category,
	s.database,
	s.username,
	s.application,
	s.client_addr,
	nullif(a.state, ''),
	nullif(a.wait_event_type, ''),
	nullif(a.wait_event, ''),
	nullif(a.cpu, ''),
	nullif(a.query_id, 0),
	nullif(a.plan_id, 0),
	null::text,
	tacho._time(u.query_start * 1000),
	tacho._time(u.xact_start * 1000),
	tacho._time(u.state_change * 1000),
	u.xmin_age::bigint,
	u.xid_age::bigint,
	nullif(a.progress_command, ''),
	nullif(a.progress_relation, 0),
	nullif(bs.pid, 0),
	case when a.marked & 1 = 0 then u.weight else 0 end,
	case when a.query_id <> 0 then tacho._query_text(a.query_id::text, s.database)
		else (select x.body from tacho.text x where x.id = a.text_id and a.text_id <> 0) end$sql$,
	'order by p.start_ms desc, u.i desc, s.pid, u.n limit $3');
comment on function tacho._samples_sql is 'SQL that gives the samples of packs, newest first';

create function tacho._only_samples(q tacho.question)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_first constant text := tacho._time_text(tacho._raw_first_us());
begin
	if q.since_us < tacho._raw_first_us() and exists (
		select from tacho.hour_tick h
		where h.last_ms >= q.since_us / 1000 and h.last_ms < tacho._raw_first_us() / 1000)
	then
		raise exception 'samples before % are not kept', v_first
			using errcode = 'invalid_parameter_value',
				hint = format('Ask with since => %L; timeline() and top() know what was before.', v_first);
	end if;
end
$$;
comment on function tacho._only_samples is 'refuses a window that has only hour rows';

create function tacho._samples(since timestamptz, until timestamptz, n bigint, filters jsonb, scope text, tz text, node text, by_leader boolean)
returns setof tacho.sample
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(since, until, scope, tz, node, by_leader, filters);
	v_left bigint := tacho._limit(n);
	v_slots smallint[];
	v_sql text;
	v_batch record;
	v_count bigint;
begin
	q := tacho._select(q, node);
	v_slots := tacho._lock_slots(q.since_us, q.until_us);
	perform tacho._only_samples(q);
	if v_slots = '{}' or q.since_us = q.until_us then
		perform tacho._say_empty(q);
		return;
	end if;
	v_sql := tacho._samples_sql(q);
	for v_batch in
		execute tacho._whole_packs_sql(q, v_slots, 'order by start_ms desc')
	loop
		return query execute v_sql using v_batch.packs, v_batch.slot, v_left;
		get diagnostics v_count = row_count;
		v_left := v_left - v_count;
		exit when v_left = 0;
	end loop;
	if v_left = tacho._limit(n) then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._samples is 'samples() with its filters as JSON';

call tacho._reader($decl$samples(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 100,
	FILTERS
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns setof tacho.sample rows 100$decl$,
'select * from tacho._samples(samples.since, samples.until, samples.n, {FILTERS}, samples.scope, samples.tz, samples.node, samples.by_leader)',
'What each session was doing at each tick, newest first; n => null gives all rows of the window. Filters: {DIMENSIONS}. Example: select sample_time, pid, wait_event, query_text from tacho.samples(username => ''app'', n => 20);');
