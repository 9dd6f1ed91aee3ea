/*
 * 20_store.sql - adds one tick to `hot`
 *
 * The caller holds mutex_sampler, so one session at a time gives out ids, which need no
 * sequence. If a dictionary has no room for a row, the row is stored under a coarser one
 * and counted, never dropped.
 */
create type tacho.sampled as (
	pid integer,
	leader integer,
	backend_start timestamptz,
	backend_type text,
	category text,
	database_oid oid,
	database text,
	user_oid oid,
	username text,
	application text,
	client_addr text,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	marked smallint,
	query_id bigint,
	plan_id bigint,
	query_text text,
	query_start timestamptz,
	xact_start timestamptz,
	state_change timestamptz,
	xmin_age integer,
	xid_age integer,
	progress_command text,
	progress_relation bigint,
	blocked_by integer,
	lock tacho.waiting
);
comment on type tacho.sampled is
'a session at a tick, as it is read from the server; blocked_by is a process id; 0 or null with a lock: the blocker is no session';

create type tacho.tick as (
	tick bigint,
	slot_ms bigint,
	interval_ms integer,
	status smallint,
	reason text,
	vcpus_x100 integer,
	connections smallint
);
comment on type tacho.tick is 'the heartbeat: status 1 ok, 2 late, 3 failed';

-- Texts of activities without a query id, such as "autovacuum: VACUUM public.t".
create function tacho._store_texts(samples tacho.sampled[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_left bigint;
begin
	with fresh as materialized (
		select distinct on (coalesce(s.query_id, 0), s.database, s.query_text)
			coalesce(s.query_id, 0) as query_id,
			s.database,
			s.username,
			s.query_text
		from unnest(samples) s
		where s.query_text is not null
			and not exists (
				select from tacho.text t
				where t.query_id = coalesce(s.query_id, 0)
					and t.database is not distinct from s.database
					and md5(t.body) = md5(s.query_text)
			)
	), stored as (
		insert into tacho.text (query_id, database, username, body)
		select *
		from fresh
		limit (select greatest(s.text_limit - (select count(*) from tacho.text), 0) from tacho.setting s)
		returning 1
	)
	select (select count(*) from fresh) - (select count(*) from stored) into v_left;
	perform tacho._count('texts without room', v_left);
end
$$;
comment on function tacho._store_texts is 'keeps texts that came with samples';

create function tacho._text_id(query_id bigint, database text, body text)
returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
	return coalesce((
		select t.id
		from tacho.text t
		where t.query_id = 0
			and t.database is not distinct from _text_id.database
			and md5(t.body) = md5(_text_id.body)
	), 0);
end
$$;
comment on function tacho._text_id is 'id of the text of an activity without a query id, 0 when it is not stored';

create function tacho._wait_id(in_slot smallint, w tacho.waiting)
returns integer
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select x.id
	from tacho.awaited x
	where x.slot = in_slot
		and x.wait_start = (w).wait_start
		and x.object = (w).object
		and (x.is_hard, x.mode, x.mode_held, x.prepared_xid, x.is_imported) is not distinct from
			((w).is_hard, (w).mode, (w).mode_held, (w).prepared_xid, (w).is_imported)
	limit 1;
end;
comment on function tacho._wait_id is 'the row of a wait in table awaited';

create function tacho._find(
	in_slot smallint,
	samples tacho.sampled[],
	out sessions integer[],
	out activities integer[],
	out with_texts boolean,
	out with_blockers boolean
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	select
		array_agg(x.id order by s.ordinality),
		array_agg(a.id order by s.ordinality),
		bool_or(s.query_text is not null),
		bool_or(s.blocked_by <> 0 or (s.lock).locktype is not null)
	into sessions, activities, with_texts, with_blockers
	from unnest(samples) with ordinality s
	left join lateral (
		select x.id
		from tacho.session x
		where x.slot = in_slot
			and x.pid = s.pid
			and x.leader = coalesce(s.leader, 0)
			and (x.backend_start, x.backend_type, x.category, x.database, x.username, x.application, x.client_addr)
				is not distinct from
				(s.backend_start, s.backend_type, s.category, s.database, s.username, s.application, s.client_addr)
		limit 1
	) x on true
	left join lateral (
		select a.id
		from tacho.activity a
		where a.slot = in_slot
			and a.query_id = coalesce(s.query_id, 0)
			and a.wait_event = coalesce(s.wait_event, '')
			and a.wait_event_type = coalesce(s.wait_event_type, '')
			and a.state = coalesce(s.state, '')
			and a.cpu = coalesce(s.cpu, '')
			and a.marked = coalesce(s.marked, 0)
			and a.plan_id = coalesce(s.plan_id, 0)
			and a.progress_relation = coalesce(s.progress_relation, 0)
			and a.progress_command = coalesce(s.progress_command, '')
			and a.text_id = case when s.query_text is null or s.query_id <> 0 then 0
				else tacho._text_id(s.query_id, s.database, s.query_text) end
		limit 1
	) a on true;
end
$$;
comment on function tacho._find is 'ids of the sessions and activities of samples in the dictionaries, in their order; null = not there';

create function tacho._store_sessions(in_slot smallint, samples tacho.sampled[], room integer, ids integer[])
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_ids integer[] := ids;
	v_last integer;
begin
	if array_position(v_ids, null) is null then
		return v_ids;
	end if;
	select coalesce(max(id), 0) into v_last from tacho.session where slot = in_slot;
	insert into tacho.session (slot, id, pid, leader, backend_start, backend_type, category, database_oid,
		database, user_oid, username, application, client_addr)
	select in_slot, f.id, f.pid, coalesce(f.leader, 0), f.backend_start, f.backend_type, f.category, f.database_oid,
		f.database, f.user_oid, f.username, f.application, f.client_addr
	from (
		select s.*, v_last + row_number() over (order by s.ordinality) as id
		from unnest(samples) with ordinality s
		where v_ids[s.ordinality] is null
	) f
	where f.id <= room
	union all
	select in_slot, room + 1, 0, 0, null, null, 'foreground', null, null, null, null, null, null
	where v_last <= room and v_last + cardinality(array_positions(v_ids, null)) > room;

	select array_agg(coalesce(u.id, least(v_last + u.fresh, room + 1)) order by u.ord) into v_ids
	from (
		select id, ord, (count(*) filter (where id is null) over (order by ord))::integer as fresh
		from unnest(v_ids) with ordinality u (id, ord)
	) u;
	perform tacho._count('sessions without identity', cardinality(array_positions(v_ids, room + 1)));
	return v_ids;
end
$$;
comment on function tacho._store_sessions is
'ids of the sessions of samples in table session, in their order; new ones are added, those without room share one row';

create function tacho._store_activities(in_slot smallint, samples tacho.sampled[], room integer, ids integer[])
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_samples tacho.sampled[] := samples;
	v_ids integer[] := ids;
	v_last integer;
begin
	if array_position(v_ids, null) is null then
		return v_ids;
	end if;
	select coalesce(max(id), 0) into v_last from tacho.activity where slot = in_slot;
	if v_last >= room then
		-- no room: activities without their query are few enough
		perform tacho._count('activities without query', cardinality(array_positions(v_ids, null)));
		for v_sample in 1 .. cardinality(v_ids) loop
			if v_ids[v_sample] is null then
				v_samples[v_sample].query_id := 0;
				v_samples[v_sample].plan_id := 0;
				v_samples[v_sample].query_text := null;
				v_samples[v_sample].progress_relation := 0;
			end if;
		end loop;
		v_ids := (tacho._find(in_slot, v_samples)).activities;
	end if;
	insert into tacho.activity (slot, id, marked, query_id, plan_id, text_id, progress_relation,
		wait_event_type, wait_event, state, cpu, progress_command)
	select in_slot, v_last + row_number() over (), f.*
	from (
		select distinct
			coalesce(s.marked, 0)::smallint,
			coalesce(s.query_id, 0),
			coalesce(s.plan_id, 0),
			case when s.query_text is null or s.query_id <> 0 then 0
				else tacho._text_id(s.query_id, s.database, s.query_text) end,
			coalesce(s.progress_relation, 0),
			coalesce(s.wait_event_type, ''),
			coalesce(s.wait_event, ''),
			coalesce(s.state, ''),
			coalesce(s.cpu, ''),
			coalesce(s.progress_command, '')
		from unnest(v_samples) with ordinality s
		where v_ids[s.ordinality] is null
	) f;
	return (tacho._find(in_slot, v_samples)).activities;
end
$$;
comment on function tacho._store_activities is
'ids of the activities of samples in table activity, in their order; new ones are added, without their query when there is no room';

-- Blockers that are not among the samples; process 0 is not a session.
create function tacho._store_absent(in_slot smallint, pids integer[], room integer)
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_pid integer;
	v_id integer;
	v_ids integer[] := '{}';
	v_sample tacho.sampled;
begin
	foreach v_pid in array pids loop
		select max(x.id) into v_id from tacho.session x where x.slot = in_slot and x.pid = v_pid;
		if v_id is null then
			v_sample.pid := v_pid;
			v_id := (tacho._store_sessions(in_slot, array[v_sample], room, array[null::integer]))[1];
		end if;
		v_ids := v_ids || v_id;
	end loop;
	return v_ids;
end
$$;
comment on function tacho._store_absent is 'ids in table session of processes that are known only by process id';

-- A wait without room is stored without its start. A tenth more rows are reserved for
-- these; beyond that, each mode has one row.
create function tacho._store_waits(in_slot smallint, samples tacho.sampled[], room integer)
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_parts constant text[] := '{start, object}';
	v_ids integer[] := array_fill(null::integer, array[cardinality(samples)]);
	v_last integer;
	v_left integer;
begin
	for v_level in 0 .. 2 loop
		select coalesce(max(id), 0) into v_last from tacho.awaited where slot = in_slot;
		insert into tacho.awaited (slot, id, is_hard, locktype, object, lock_database, lock_relation, mode, mode_held,
			wait_start, prepared_xid, prepared_gid, is_imported)
		select in_slot, x.id, (x.lock).*
		from (
			select y.lock, v_last + row_number() over () as id
			from (
				select distinct tacho._coarser(s.lock, v_level) as lock
				from unnest(samples) with ordinality s
				where (s.lock).locktype is not null and v_ids[s.ordinality] is null
			) y
			where tacho._wait_id(in_slot, y.lock) is null
		) x
		where v_level = 2 or x.id <= room + v_level * (room / 10)::bigint;
		v_ids := array(
			select coalesce(v_ids[s.ordinality], tacho._wait_id(in_slot, tacho._coarser(s.lock, v_level)))
			from unnest(samples) with ordinality s
			order by s.ordinality);
		v_left := (
			select count(*) from unnest(samples) with ordinality s
			where (s.lock).locktype is not null and v_ids[s.ordinality] is null);
		exit when v_left = 0;
		perform tacho._count('lock waits without ' || c_parts[v_level + 1], v_left);
	end loop;
	return nullif(v_ids, array_fill(null::integer, array[cardinality(v_ids)]));
end
$$;
comment on function tacho._store_waits is 'ids in table awaited of what samples wait for, in their order; null when none waits';

-- Sessions of the last tick, if starts before it need not be stored again.
create function tacho._known_sessions(in_slot smallint, before_ms bigint, slot_ms bigint)
returns integer[]
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select p.sessions
	from tacho.hot h
	join tacho.hot_pack p on p.start_ms = h.start_ms
	where h.start_ms = before_ms
		and before_ms / 60000 = slot_ms / 60000
		and h.slot = in_slot
		and h.status is distinct from 3
		and h.is_apart is null;
end;
comment on function tacho._known_sessions is 'sessions whose earlier starts are known from the tick before; null when there is none like that';

-- `blockers` are ids of sessions by the place of the sample they block, `waits` ids of
-- the waits by place.
create function tacho._insert_tick(
	t tacho.tick,
	in_slot smallint,
	samples tacho.sampled[],
	sessions integer[],
	activities integer[],
	blockers integer[],
	waits integer[],
	known integer[],
	before_ms bigint
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
as $$
declare
	c_none constant bigint := -9223372036854775808;
	v_base constant integer := (select min(x) from unnest(sessions) x);
	v_wide constant boolean := (select max(x) from unnest(sessions) x) - v_base > 65535
		or (select max(x) from unnest(activities) x) > 65536;
	v_starts constant boolean := (select record_starts from tacho.setting);
begin
	insert into tacho.hot (start_ms, tick, interval_ms, slot, connections, session_base, status, vcpus_x100, reason,
		samples, wide, xmin_ages, xid_ages, start_at, query_starts, xact_starts, state_changes, blocked_at, blockers, waits)
	select
		t.slot_ms,
		t.tick,
		t.interval_ms,
		in_slot,
		t.connections,
		v_base,
		nullif(t.status, 1),
		t.vcpus_x100,
		t.reason,
		array_agg((s.session - s.session_before - 32768) * 65536 + s.activity - 1) filter (where not v_wide),
		array_agg(s.session::bigint << 32 | s.activity) filter (where v_wide),
		case when max(s.xmin) > -1 then (array_agg(s.xmin))[:max(s.n) filter (where s.xmin is not null)] end,
		case when max(s.xid) > -1 then (array_agg(s.xid))[:max(s.n) filter (where s.xid is not null)] end,
		array_agg(s.n) filter (where s.is_told),
		array_agg(s.query_start - t.slot_ms) filter (where s.is_told),
		array_agg(case when s.xact_start is null and s.query_start is not null then c_none
			else nullif(s.xact_start, s.query_start) - t.slot_ms end) filter (where s.is_told),
		array_agg(case when s.state_change is null and s.query_start is not null then c_none
			else nullif(s.state_change, s.query_start) - t.slot_ms end) filter (where s.is_told),
		array_agg(s.n::integer) filter (where s.blocker is not null),
		array_agg(s.blocker) filter (where s.blocker is not null),
		case when waits is not null then array_agg(s.wait) filter (where s.blocker is not null) end
	from (
		select
			(row_number() over places)::smallint as n,
			x.session,
			lag(x.session, 1, v_base) over places as session_before,
			x.activity,
			x.blocker,
			x.wait,
			x.query_start,
			x.xact_start,
			x.state_change,
			nullif(x.xmin, lag(x.xmin) over places) as xmin,
			nullif(x.xid, lag(x.xid) over places) as xid,
			v_starts and (k.session is null or x.state_change is null or x.xact_start is null or
				greatest(x.query_start, x.xact_start, x.state_change) >= before_ms) as is_told
		from (
			select
				s.ordinality,
				sessions[s.ordinality] as session,
				activities[s.ordinality] as activity,
				blockers[s.ordinality] as blocker,
				waits[s.ordinality] as wait,
				tacho._ms(s.query_start) as query_start,
				tacho._ms(s.xact_start) as xact_start,
				tacho._ms(s.state_change) as state_change,
				case when v_starts then coalesce(s.xmin_age, -1) end as xmin,
				case when v_starts then coalesce(s.xid_age, -1) end as xid
			from unnest(samples) with ordinality s
		) x
		left join unnest(known) k (session) on k.session = x.session
		window places as (order by x.session, x.ordinality)
	) s;
end
$$;
comment on function tacho._insert_tick is 'writes the row of a tick';

-- Ids of the blockers of samples, by place.
create function tacho._blocker_ids(in_slot smallint, samples tacho.sampled[], sessions integer[], room integer)
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_absent integer[];
	v_absent_sessions integer[];
begin
	v_absent := array(
		select distinct s.blocked_by from unnest(samples) s where s.blocked_by <> 0
		union
		select 0 from unnest(samples) s where coalesce(s.blocked_by, 0) = 0 and (s.lock).locktype is not null
		except
		select s.pid from unnest(samples) s);
	if v_absent <> '{}' then
		v_absent_sessions := tacho._store_absent(in_slot, v_absent, room);
	end if;
	return (
		select array_agg(coalesce(sessions[b.n], v_absent_sessions[array_position(v_absent, s.blocked_by)],
			case when (s.lock).locktype is not null then v_absent_sessions[array_position(v_absent, 0)] end) order by s.ordinality)
		from unnest(samples) with ordinality s
		left join (
			select x.pid, min(x.ordinality) as n
			from unnest(samples) with ordinality x
			group by x.pid
		) b on b.pid = s.blocked_by);
end
$$;
comment on function tacho._blocker_ids is 'ids in table session of who blocks the samples, in their order';

-- before_ms is the slot of the tick before, if its sampler stores starts as the server
-- gives them.
create function tacho._store_tick(t tacho.tick, samples tacho.sampled[], before_ms bigint default null)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slot smallint;
	v_room integer;
	v_found record;
	v_sessions integer[];
	v_known integer[];
begin
	select r.slot, s.dictionary_limit
	into strict v_slot, v_room
	from tacho.ring r, tacho.setting s
	where r.is_current;
	if coalesce(cardinality(samples), 0) = 0 then
		perform tacho._insert_tick(t, v_slot, '{}', null, null, null, null, null, null);
		return;
	end if;
	v_found := tacho._find(v_slot, samples);
	if v_found.with_texts then
		perform tacho._store_texts(samples);
	end if;
	v_sessions := tacho._store_sessions(v_slot, samples, v_room, v_found.sessions);
	v_known := tacho._known_sessions(v_slot, before_ms, t.slot_ms);
	-- sessions without identity share one row, so none of them is known
	v_known := array_remove(v_known, v_room + 1);
	perform tacho._insert_tick(
		t,
		v_slot,
		samples,
		v_sessions,
		tacho._store_activities(v_slot, samples, v_room, v_found.activities),
		case when v_found.with_blockers then tacho._blocker_ids(v_slot, samples, v_sessions, v_room) end,
		case when v_found.with_blockers then tacho._store_waits(v_slot, samples, v_room) end,
		v_known,
		before_ms);
end
$$;
comment on function tacho._store_tick is 'adds a tick and its samples; the caller holds mutex_sampler';
