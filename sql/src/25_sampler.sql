/*
 * 25_sampler.sql - reads the server and adds a tick
 *
 * pg_stat_activity is read once a tick, pg_locks once and only if a session waits for a
 * lock. take_sample() never raises. An error makes a tick of status failed with its
 * reason, so that the coverage shows it. A tick that cannot be stored is a hole between
 * its neighbours.
 *
 * Recorded: sessions in any state but idle, processes without a state unless they wait
 * for work (wait class Activity), and blockers in any state. Not recorded: this session,
 * and the sampler of another database of the server while it sleeps. A session that
 * takes the sampler's name can hide nothing but sleep.
 */
create function tacho._conflict(requested text, held text)
returns boolean
language sql immutable parallel safe
return case requested
	when 'AccessShareLock' then held = 'AccessExclusiveLock'
	when 'RowShareLock' then held in ('ExclusiveLock', 'AccessExclusiveLock')
	when 'RowExclusiveLock' then held in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
	when 'ShareUpdateExclusiveLock' then held in ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
	when 'ShareLock' then held in ('RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
	when 'ShareRowExclusiveLock' then held in ('RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
	when 'ExclusiveLock' then held not in ('AccessShareLock', 'SIReadLock')
	when 'AccessExclusiveLock' then held <> 'SIReadLock'
	else false
end;
comment on function tacho._conflict is 'true when a lock mode cannot be had beside another';

create function tacho._read_sessions(out connections integer, out hidden integer, out samples tacho.sampled[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	with a as materialized (
		select
			a.*,
			a.query = '<insufficient privilege>' and a.state is null as is_hidden,
			(a.application_name, a.wait_event) is not distinct from ('tacho sampler', 'PgSleep') as is_sampler
		from pg_stat_activity a
		where a.pid <> pg_backend_pid()
	), locks as materialized (
		select
			l.pid,
			l.mode,
			l.granted,
			l.waitstart,
			l.virtualtransaction,
			l.locktype,
			l.database::bigint as database,
			coalesce(l.relation::bigint, l.transactionid::text::bigint, split_part(l.virtualxid, '/', 1)::bigint, l.classid::bigint) as a,
			coalesce(l.page, split_part(l.virtualxid, '/', 2)::bigint, l.objid::bigint) as b,
			coalesce(l.tuple, l.objsubid)::bigint as c,
			row(l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid, l.classid,
				l.objid, l.objsubid)::text as tag
		from pg_locks l
		where exists (select from a where a.wait_event_type = 'Lock')
	), pairs as (
		-- a holder of the lock waited for; without a holder, the next session ahead in
		-- the queue
		select distinct on (w.pid)
			w.pid, w.locktype, w.database, w.a, w.b, w.c, w.mode, w.waitstart,
			h.pid as blocker, h.granted, h.mode as held, h.virtualtransaction
		from locks w
		left join a wa on wa.pid = w.pid
		left join (
			-- of many in one mode the first ten are enough: groups that do not block themselves are smaller
			select l.*, coalesce(a.leader_pid, l.pid) as leader,
				row_number() over (partition by l.tag, l.mode, l.granted order by l.waitstart, l.pid) as place
			from locks l
			left join a on a.pid = l.pid
			where l.tag in (select w.tag from locks w where not w.granted)
		) h on h.tag = w.tag
			and h.leader is distinct from coalesce(wa.leader_pid, w.pid)
			and tacho._conflict(w.mode, h.mode)
			and (h.granted or h.waitstart < w.waitstart)
			and h.place <= 10
		where not w.granted
		order by w.pid, h.granted desc nulls last, h.waitstart nulls first, h.pid, array_position(tacho._lock_modes(), h.mode) desc
	), edges as (
		select
			p.pid,
			coalesce(p.blocker, 0) as blocker,
			tacho._waiting(p.granted, p.locktype, p.database, p.a, p.b, p.c, p.mode,
				case when p.granted then p.held end, p.waitstart, x.transaction::text::bigint, x.gid) as lock
		from pairs p
		left join lateral (
			-- it has a lock on its own xid
			select x.transaction, x.gid
			from pg_prepared_xacts x
			join locks l on l.pid is null and l.locktype = 'transactionid' and l.a = x.transaction::text::bigint
			where p.granted
				and p.blocker is null
				and l.virtualtransaction = p.virtualtransaction
			limit 1
		) x on true
	)
	select
		count(*) filter (where a.backend_type = 'client backend'),
		count(*) filter (where a.is_hidden),
		array_agg(row(
			a.pid,
			a.leader_pid,
			a.backend_start,
			a.backend_type,
			tacho._category(a.backend_type),
			a.datid,
			a.datname,
			a.usesysid,
			a.usename,
			nullif(a.application_name, ''),
			case when a.client_addr is not null then host(a.client_addr) when a.client_port = -1 then '[local]' end,
			a.state,
			a.wait_event_type,
			a.wait_event,
			case when a.wait_event is null and (a.state is null or a.state in ('active', 'fastpath function call')) then 'CPU*' end,
			case when a.state = 'idle' or a.state is null and a.wait_event_type = 'Activity' then 1 else 0 end,
			a.query_id,
			null,
			case when a.backend_type = 'autovacuum worker' then nullif(a.query, '') end,
			a.query_start,
			a.xact_start,
			a.state_change,
			age(a.backend_xmin),
			age(a.backend_xid),
			null,
			null,
			e.blocker,
			e.lock
		)::tacho.sampled) filter (where not a.is_hidden and (
			case when a.state is null then a.wait_event_type is distinct from 'Activity' else a.state <> 'idle' and not a.is_sampler end
			or a.pid in (select blocker from edges)))
	into connections, hidden, samples
	from a
	left join edges e on e.pid = a.pid;
	samples := tacho._readable(samples);
end
$$;
comment on function tacho._read_sessions is 'sessions of this server and their activity: one read of pg_stat_activity';

-- Makes names and texts of autovacuum from databases in other encodings readable.
-- Checks all of them together, because hardly any tick has one.
create function tacho._readable(samples tacho.sampled[])
returns tacho.sampled[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_samples tacho.sampled[] := samples;
begin
	if tacho._is_valid((select string_agg(concat(s.database, s.username, s.application, s.query_text), '') from unnest(samples) s)) then
		return samples;
	end if;
	for i in 1 .. cardinality(samples) loop
		v_samples[i].database := tacho._shown(samples[i].database);
		v_samples[i].username := tacho._shown(samples[i].username);
		v_samples[i].application := tacho._shown(samples[i].application);
		v_samples[i].query_text := tacho._shown(samples[i].query_text,
			(select pg_encoding_to_char(d.encoding) from pg_database d where d.oid = samples[i].database_oid));
	end loop;
	return v_samples;
end
$$;
comment on function tacho._readable is 'samples whose texts can be stored here';

create function tacho._last_tick(out tick bigint, out slot_ms bigint, out interval_ms integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	select h.tick, h.start_ms, h.interval_ms
	into tick, slot_ms, interval_ms
	from tacho.hot h
	order by h.start_ms desc
	limit 1;
	if not found then
		select p.first_tick + coalesce(p.tick_offsets[p.n_ticks], p.n_ticks - 1), p.last_ms, p.interval_ms
		into tick, slot_ms, interval_ms
		from tacho.pack p
		order by p.start_ms desc
		limit 1;
	end if;
end
$$;
comment on function tacho._last_tick is 'the newest tick stored';

-- Marks the time between two ticks if it is more than some missed slots.
create function tacho._mark_gap(last_ms bigint, last_interval_ms integer, slot_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_since timestamptz := tacho._time((last_ms + last_interval_ms) * 1000);
	v_until timestamptz := tacho._time(slot_ms * 1000);
begin
	if v_until - v_since < greatest(interval '10 seconds', 10 * last_interval_ms * interval '1 millisecond') then
		return;
	end if;
	perform tacho._mark(
		'gap',
		case
			when exists (select from tacho.marker where kind = 'stop' and marker_time between v_since - interval '1 minute' and v_until)
				then 'recording was off'
			when pg_postmaster_start_time() > v_since then 'server was stopped'
			else 'sampler did not run'
		end,
		v_since,
		v_until
	);
end
$$;
comment on function tacho._mark_gap is 'adds a gap marker when at least ten ticks and ten seconds are missing';

-- A clock step has one marker: no tick is taken until its slots are over.
create function tacho._mark_step(slot_ms bigint, last_ms bigint, last_interval_ms integer)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_since constant timestamptz := tacho._time(slot_ms * 1000);
	v_until constant timestamptz := tacho._time((last_ms + last_interval_ms) * 1000);
begin
	if not exists (select from tacho.marker m where m.kind = 'clock step' and m.period_end = v_until and m.period_start <= v_since) then
		perform tacho._mark('clock step', format('the clock was set back by %s s', (last_ms - slot_ms) / 1000), v_since, v_until);
	end if;
end
$$;
comment on function tacho._mark_step is 'adds a marker when the clock was set back behind the newest tick';

-- Summed-up hours stay. Everything after them is lost, and was not idle.
create function tacho._mark_loss(slot_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_hour_ms constant bigint := (select ms from tacho.watermark where name = 'hour');
begin
	if not exists (select from tacho.watermark where name = 'pack' and ms > 0) then
		return;
	end if;
	update tacho.watermark set ms = 0 where name = 'pack';
	update tacho.ring set since_ms = slot_ms;
	perform tacho._mark('gap', 'the samples were lost: the server crashed, and they are not in the WAL',
		case when v_hour_ms > 0 then tacho._time(v_hour_ms * 1000) else (select installed_at from tacho.setting) end,
		tacho._time(slot_ms * 1000));
end
$$;
comment on function tacho._mark_loss is 'says that samples once packed are gone, when the first tick finds none';

create function tacho._take_sample(slot_ms bigint, interval_ms integer)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_tick bigint;
	v_last_ms bigint;
	v_last_interval integer;
	v_connections integer;
	v_hidden integer;
	v_samples tacho.sampled[];
	v_late boolean;
begin
	select tick, l.slot_ms, l.interval_ms into v_tick, v_last_ms, v_last_interval from tacho._last_tick() l;
	if v_last_ms >= slot_ms or slot_ms < (select ms from tacho.watermark where name = 'hour') then
		if v_last_ms > slot_ms then
			update tacho.hot h set is_apart = true where h.start_ms = v_last_ms and h.is_apart is null;
			if v_last_ms > slot_ms + 1000 + interval_ms then
				perform tacho._mark_step(slot_ms, v_last_ms, v_last_interval);
			end if;
		end if;
		if coalesce(v_last_ms > slot_ms + 1000 + interval_ms, true) then
			perform tacho._count('ticks refused because the clock went back');
		end if;
		return 'taken';
	end if;
	if v_last_ms is not null then
		perform tacho._mark_gap(v_last_ms, v_last_interval, slot_ms);
	else
		perform tacho._mark_loss(slot_ms);
	end if;
	v_tick := coalesce(v_tick + greatest((slot_ms - v_last_ms) / interval_ms, 1), 1);

	select r.connections, r.hidden, r.samples into v_connections, v_hidden, v_samples from tacho._read_sessions() r;
	v_late := tacho._ms(clock_timestamp()) >= slot_ms + interval_ms;
	perform tacho._store_tick(
		row(v_tick, slot_ms, interval_ms, case when v_late then 2 else 1 end, null,
			(select round(vcpus * 100) from tacho.setting), least(v_connections, 32767))::tacho.tick,
		v_samples,
		v_last_ms);
	if v_hidden > 0 then
		perform tacho._count('sessions without permission to see them', v_hidden);
	end if;
	return case when v_late then 'late' else 'ok' end;
end
$$;
comment on function tacho._take_sample is 'adds the tick of a slot; the caller holds mutex_sampler';

create function tacho._store_failure(slot_ms bigint, interval_ms integer, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_last record;
begin
	lock table tacho.mutex_sampler in exclusive mode nowait;
	select * into v_last from tacho._last_tick();
	if v_last.slot_ms >= slot_ms then
		return;
	end if;
	perform tacho._store_tick(
		row(coalesce(v_last.tick + greatest((slot_ms - v_last.slot_ms) / interval_ms, 1), 1), slot_ms, interval_ms,
			3, left(reason, 200), null, null)::tacho.tick,
		null);
exception when others then
	raise warning 'could not store a failed tick: %', sqlerrm;
end
$$;
comment on function tacho._store_failure is 'adds a failed tick';

create function tacho._slot_ms(interval_ms integer)
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
return tacho._ms(clock_timestamp()) / interval_ms * interval_ms;
comment on function tacho._slot_ms is 'the present slot';

create function tacho.take_sample()
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set jit = off
as $$
declare
	v_enabled boolean;
	v_interval_ms integer;
	v_slot_ms bigint;
begin
	if pg_is_in_recovery() then
		return 'standby';
	end if;
	select enabled, (extract(epoch from sample_interval) * 1000)::integer
	into v_enabled, v_interval_ms
	from tacho.setting;
	if not v_enabled then
		return 'off';
	elsif current_setting('transaction_read_only')::boolean then
		return 'read only';
	end if;
	v_slot_ms := tacho._slot_ms(v_interval_ms);
	begin
		lock table tacho.mutex_sampler in exclusive mode;
	exception when lock_not_available then
		return 'busy';
	end;
	-- the slot of now: who had the mutex before knows that no older one comes
	v_slot_ms := tacho._slot_ms(v_interval_ms);
	return tacho._take_sample(v_slot_ms, v_interval_ms);
exception
	when query_canceled then
		perform tacho._store_failure(v_slot_ms, v_interval_ms, sqlerrm);
		return 'canceled';
	when others then
		if to_regnamespace('tacho') is null then -- uninstalled meanwhile
			return 'off';
		end if;
		perform tacho._store_failure(v_slot_ms, v_interval_ms, sqlerrm);
		return 'failed';
end
$$;
comment on function tacho.take_sample is
'Adds the tick of the present slot. Returns ok, late, canceled, off, standby, read only, failed (reason: in the history), taken (the slot has a tick) or busy (another session adds one). read only means that default_transaction_read_only is on: call tacho.run_sampler(), which writes nevertheless, or switch it off for the role. Called once an interval, by tacho.run_sampler() or a scheduler of your own.';
