/*
 * 20_store.sql - adds one tick to `hot`
 *
 * The caller holds mutex_sampler, so that ids are given by one session at a
 * time and need no sequence. What a dictionary has no room for is stored
 * under one of its coarser rows and counted, never dropped.
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
	blocked_by integer
);
comment on type tacho.sampled is 'a session at a tick, as it is read from the server; blocked_by is a process id';

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

-- Texts of activity without a query id: autovacuum: VACUUM public.t
create function tacho._store_texts(samples tacho.sampled[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	insert into tacho.text (query_id, database, username, body)
	select distinct on (coalesce(s.query_id, 0), s.database, s.query_text)
		coalesce(s.query_id, 0),
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
		and (select count(*) from tacho.text) < (select text_limit from tacho.setting);
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

create function tacho._store_sessions(in_slot smallint, samples tacho.sampled[], room integer)
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_ids integer[];
	v_last integer;
begin
	select array_agg(f.id order by s.ordinality) into v_ids
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
	) f on true;
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

create function tacho._find_activities(in_slot smallint, samples tacho.sampled[])
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	return (select array_agg(f.id order by s.ordinality)
	from unnest(samples) with ordinality s
	left join lateral (
		select x.id
		from tacho.activity x
		where x.slot = in_slot
			and x.query_id = coalesce(s.query_id, 0)
			and x.wait_event = coalesce(s.wait_event, '')
			and x.wait_event_type = coalesce(s.wait_event_type, '')
			and x.state = coalesce(s.state, '')
			and x.cpu = coalesce(s.cpu, '')
			and x.marked = coalesce(s.marked, 0)
			and x.plan_id = coalesce(s.plan_id, 0)
			and x.progress_relation = coalesce(s.progress_relation, 0)
			and x.progress_command = coalesce(s.progress_command, '')
			and x.text_id = case when s.query_text is null or s.query_id <> 0 then 0
				else tacho._text_id(s.query_id, s.database, s.query_text) end
		limit 1
	) f on true);
end
$$;
comment on function tacho._find_activities is 'ids of the activities of samples in table activity, in their order; null = not there';

create function tacho._store_activities(in_slot smallint, samples tacho.sampled[], room integer)
returns integer[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_samples tacho.sampled[] := samples;
	v_ids integer[] := tacho._find_activities(in_slot, samples);
	v_last integer;
begin
	if array_position(v_ids, null) is null then
		return v_ids;
	end if;
	select coalesce(max(id), 0) into v_last from tacho.activity where slot = in_slot;
	if v_last >= room then
		-- no room: what is left out makes it few enough
		perform tacho._count('activities without query', cardinality(array_positions(v_ids, null)));
		for v_sample in 1 .. cardinality(v_ids) loop
			if v_ids[v_sample] is null then
				v_samples[v_sample].query_id := 0;
				v_samples[v_sample].plan_id := 0;
				v_samples[v_sample].query_text := null;
				v_samples[v_sample].progress_relation := 0;
			end if;
		end loop;
		v_ids := tacho._find_activities(in_slot, v_samples);
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
	return tacho._find_activities(in_slot, v_samples);
end
$$;
comment on function tacho._store_activities is
'ids of the activities of samples in table activity, in their order; new ones are added, without their query when there is no room';

-- Blockers that are not among the samples (imported history only).
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
			v_id := (tacho._store_sessions(in_slot, array[v_sample], room))[1];
		end if;
		v_ids := v_ids || v_id;
	end loop;
	return v_ids;
end
$$;
comment on function tacho._store_absent is 'ids in table session of processes of which only the id is known';

create function tacho._store_tick(t tacho.tick, samples tacho.sampled[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slot smallint;
	v_room integer;
	v_starts boolean;
	v_sessions integer[];
	v_activities integer[];
	v_absent integer[];
	v_absent_sessions integer[];
begin
	select r.slot, s.dictionary_limit, s.record_starts
	into strict v_slot, v_room, v_starts
	from tacho.ring r, tacho.setting s
	where r.is_current;
	if cardinality(samples) > 0 then
		if exists (select from unnest(samples) s where s.query_text is not null) then
			perform tacho._store_texts(samples);
		end if;
		v_sessions := tacho._store_sessions(v_slot, samples, v_room);
		v_activities := tacho._store_activities(v_slot, samples, v_room);
		v_absent := array(
			select distinct s.blocked_by from unnest(samples) s where s.blocked_by <> 0
			except
			select s.pid from unnest(samples) s);
		if v_absent <> '{}' then
			v_absent_sessions := tacho._store_absent(v_slot, v_absent, v_room);
		end if;
	end if;
	insert into tacho.hot (first_tick, start_ms, last_ms, slot, n_ticks, interval_ms, observed_ms, failed_ms,
		n_failed, statuses, reasons, vcpus_x100, connections, sessions, run_ats, run_lens, what, wide, blocked_at, blockers,
		query_starts, xact_starts, state_changes, xmin_ages, xid_ages)
	select
		t.tick,
		t.slot_ms,
		t.slot_ms,
		v_slot,
		1,
		t.interval_ms,
		case when t.status = 3 then 0 else t.interval_ms end,
		case when t.status = 3 then t.interval_ms else 0 end,
		case when t.status = 3 then 1 else 0 end,
		case when t.status <> 1 then array[t.status] end,
		case when t.reason is not null then array[t.reason] end,
		case when t.vcpus_x100 is not null then array[t.vcpus_x100] end,
		case when t.connections is not null then array[t.connections] end,
		coalesce(array_agg(s.session order by s.n), '{}'),
		case when count(*) > 0 then array[0::smallint] else '{}' end,
		case when count(*) > 0 then array[count(*)::smallint] else '{}' end,
		case when coalesce(max(s.activity), 1) <= 65536 then coalesce(array_agg((s.activity - 32769)::smallint order by s.n) filter (where s.activity <= 65536), '{}') end,
		case when max(s.activity) > 65536 then array_agg(s.activity order by s.n) end,
		array_agg(s.n order by s.n) filter (where s.blocker is not null),
		array_agg(s.blocker order by s.n) filter (where s.blocker is not null),
		case when count(s.query_start) > 0 then array_agg(s.query_start - t.slot_ms order by s.n) end,
		case when count(s.xact_start) > 0 then array_agg(s.xact_start - t.slot_ms order by s.n) end,
		case when count(s.state_change) > 0 then array_agg(s.state_change - t.slot_ms order by s.n) end,
		case when count(s.xmin_age) > 0 then array_agg(s.xmin_age order by s.n) end,
		case when count(s.xid_age) > 0 then array_agg(s.xid_age order by s.n) end
	from (
		select
			(row_number() over (order by v_sessions[s.ordinality], s.ordinality))::integer as n,
			v_sessions[s.ordinality] as session,
			v_activities[s.ordinality] as activity,
			coalesce(v_sessions[b.n], v_absent_sessions[array_position(v_absent, s.blocked_by)]) as blocker,
			case when v_starts then tacho._ms(s.query_start) end as query_start,
			case when v_starts then tacho._ms(s.xact_start) end as xact_start,
			case when v_starts then tacho._ms(s.state_change) end as state_change,
			case when v_starts then s.xmin_age end as xmin_age,
			case when v_starts then s.xid_age end as xid_age
		from unnest(samples) with ordinality s
		left join (
			select x.pid, min(x.ordinality) as n
			from unnest(samples) with ordinality x
			group by x.pid
		) b on b.pid = s.blocked_by
	) s;
end
$$;
comment on function tacho._store_tick is 'adds a tick and its samples; the caller holds mutex_sampler';
