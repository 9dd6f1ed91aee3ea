/*
 * 22_import.sql - history from a table
 *
 * The columns of `tacho import sessions`:
 * - the tick: time, tick, tick_status, interval_ms, vcpus
 * - the session: pid, backend_start, leader_pid, backend_type, category, database,
 *   username, application, client_addr
 * - its activity: state, wait_event_type, wait_event, cpu, query_id, plan_id,
 *   query_start, xact_start, state_change, blocked_by, marked, query_text
 *
 * All but time may be missing. A row without pid is a tick without sessions. If there is
 * no column "state", sessions are active. `tick` is the number of the tick, which gives
 * its place even if the clock was set back.
 */
-- Columns waiter, blocker, blocker_xid, blocker_gid, hard, locktype,
-- lock_database, field1, field2, field3, modes_held (a bit each), mode_requested,
-- wait_start.
create function tacho._imported_lock(line jsonb)
returns tacho.waiting
language sql immutable
set search_path = pg_catalog, pg_temp
begin atomic
	select tacho._waiting(
		coalesce(line ->> 'hard', '0') = '1',
		line ->> 'locktype',
		(line ->> 'lock_database')::bigint,
		(line ->> 'field1')::bigint,
		(line ->> 'field2')::bigint,
		(line ->> 'field3')::bigint,
		(tacho._lock_modes())[(line ->> 'mode_requested')::integer],
		(select m.name from unnest(tacho._lock_modes()) with ordinality m (name, n)
			where (line ->> 'modes_held')::integer >> m.n::integer & 1 = 1 order by m.n desc limit 1),
		(line ->> 'wait_start')::timestamptz,
		nullif((line ->> 'blocker_xid')::bigint, 0),
		line ->> 'blocker_gid',
		true);
end;
comment on function tacho._imported_lock is 'a line of imported lock waits';

create function tacho._imported(line jsonb)
returns tacho.sampled
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_busy boolean;
	s tacho.sampled;
begin
	s.pid := line ->> 'pid';
	s.leader := line ->> 'leader_pid';
	s.backend_start := line ->> 'backend_start';
	s.backend_type := line ->> 'backend_type';
	s.category := coalesce(line ->> 'category', tacho._category(s.backend_type));
	s.database := line ->> 'database';
	s.username := line ->> 'username';
	s.application := line ->> 'application';
	s.client_addr := line ->> 'client_addr';
	s.state := case when line ? 'state' then line ->> 'state' else 'active' end;
	s.wait_event_type := line ->> 'wait_event_type';
	s.wait_event := line ->> 'wait_event';
	v_busy := s.state in ('active', 'fastpath function call')
		and coalesce(s.wait_event_type, s.wait_event) is null;
	s.cpu := case when line ? 'cpu' then line ->> 'cpu' when v_busy then 'CPU*' end;
	s.marked := coalesce(line ->> 'marked', '0');
	s.query_id := line ->> 'query_id';
	s.plan_id := line ->> 'plan_id';
	s.query_text := line ->> 'query_text';
	s.query_start := line ->> 'query_start';
	s.xact_start := line ->> 'xact_start';
	s.state_change := line ->> 'state_change';
	s.blocked_by := line ->> 'blocked_by';
	if line ? 'lock' then
		s.blocked_by := line -> 'lock' ->> 'blocker';
		s.lock := tacho._imported_lock(line -> 'lock');
	end if;
	return s;
end
$$;
comment on function tacho._imported is 'a line of imported history as a sample';

-- Hours that are summed up are never added to; empty ones are opened again.
create function tacho._open_hours(first_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	if exists (select from tacho.hour_tick h where h.hour >= first_ms / 3600000) then
		raise exception 'time is in an hour that is summed up'
			using errcode = 'invalid_parameter_value',
				detail = format('Hours before %s are.', tacho._time((select ms * 1000 from tacho.watermark where name = 'hour')));
	end if;
	update tacho.watermark set ms = first_ms / 3600000 * 3600000 where name = 'hour' and ms > first_ms;
end
$$;
comment on function tacho._open_hours is 'makes sure that ticks from a time on will be summed up';

-- Columns may be of the type they are meant for, or texts; '' is null.
create function tacho._lines_sql(source regclass)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
return format($sql$
	select (l.line ->> 'time')::timestamptz as time, l.n, l.line
	from (
		select t.ctid as n, (select jsonb_object_agg(key, nullif(value, '')) from jsonb_each_text(to_jsonb(t))) as line
		from %s t
	) l$sql$, source);
comment on function tacho._lines_sql is 'a query for the rows of a table: time, place and line';

-- Each waiter has one blocker, a holder if there is one.
create function tacho._imported_lines_sql(source regclass, locks regclass)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
return case when locks is null then
	format('select time, array_agg(line order by n) as lines from (%s) s group by time order by time', tacho._lines_sql(source))
else
	format($sql$
		with waits as materialized (
			select distinct on (w.time, w.pid, w.start) w.*
			from (
				select l.time, l.line, (l.line ->> 'waiter')::integer as pid,
					coalesce((l.line ->> 'waiter_start')::timestamptz, '-infinity') as start
				from (%2$s) l
			) w
			order by w.time, w.pid, w.start, coalesce(w.line ->> 'hard', '0') = '1' desc, (w.line ->> 'blocker')::integer
		)
		select s.time, array_agg(case when w.line is null then s.line
			else s.line || jsonb_build_object('lock', w.line) end order by s.n) as lines
		from (%1$s) s
		left join waits w on w.time = s.time
			and w.pid = (s.line ->> 'pid')::integer
			and w.start = coalesce((s.line ->> 'backend_start')::timestamptz, '-infinity')
		group by s.time
		order by s.time$sql$, tacho._lines_sql(source), tacho._lines_sql(locks))
end;
comment on function tacho._imported_lines_sql is 'a query for the ticks of a table: time and lines, with what they wait for';

create function tacho.import_sessions(source regclass, sample_interval interval default '1 second', locks regclass default null)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
	v_interval_ms constant integer := extract(epoch from sample_interval) * 1000;
	v_last record;
	v_slot_ms bigint;
	v_tick tacho.tick;
	v_line record;
	v_samples tacho.sampled[];
	v_ticks bigint := 0;
	v_lines constant text := tacho._imported_lines_sql(source, locks);
begin
	lock table tacho.mutex_maintenance in exclusive mode;
	lock table tacho.mutex_sampler in exclusive mode;
	select * into v_last from tacho._last_tick();
	v_tick.tick := v_last.tick;
	v_tick.slot_ms := v_last.slot_ms;
	for v_line in
		execute v_lines
	loop
		v_slot_ms := tacho._ms(v_line.time);
		v_tick.interval_ms := coalesce((v_line.lines[1] ->> 'interval_ms')::integer, v_interval_ms);
		v_tick.status := case v_line.lines[1] ->> 'tick_status' when 'late' then 2 when 'failed' then 3 else 1 end;
		v_tick.vcpus_x100 := round((v_line.lines[1] ->> 'vcpus')::numeric * 100);
		if v_slot_ms <= v_tick.slot_ms then
			raise exception 'time is not later than the newest tick'
				using errcode = 'invalid_parameter_value',
					detail = format('The newest tick is of %s.', tacho._time(v_tick.slot_ms * 1000));
		end if;
		if v_ticks = 0 then
			perform tacho._open_hours(v_slot_ms);
		end if;
		v_tick.tick := coalesce((v_line.lines[1] ->> 'tick')::bigint, v_tick.tick + greatest((v_slot_ms - v_tick.slot_ms) / v_tick.interval_ms, 1), 1);
		v_tick.slot_ms := v_slot_ms;
		v_samples := array(
			select tacho._imported(l) from unnest(v_line.lines) l where l ->> 'pid' is not null);
		if v_tick.status = 3 and v_samples <> '{}' then
			raise exception 'a failed tick has no sessions'
				using errcode = 'invalid_parameter_value';
		end if;
		perform tacho._store_tick(v_tick, v_samples);
		v_ticks := v_ticks + 1;
	end loop;
	return v_ticks;
end
$$;
comment on function tacho.import_sessions is
'Adds history from a table with the columns of "tacho import sessions" (see the head of 22_import.sql) and returns the number of ticks added. The ticks must be newer than those in the store. locks is a table of what they waited for, with the columns of "--with locks=FILE". Example: \copy my_table from sessions.csv csv header, then select tacho.import_sessions(''my_table'');';

create function tacho.import_markers(source regclass)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
	v_count bigint;
begin
	execute format($sql$
		insert into tacho.marker (marker_time, kind, period_start, period_end, detail, command, object_class, object_oid,
			object_name, database, username, application, client_addr, old_value, new_value, outcome, left_out)
		select (l ->> 'time')::timestamptz, l ->> 'kind', (l ->> 'since')::timestamptz, (l ->> 'until')::timestamptz, l ->> 'detail',
			l ->> 'command', l ->> 'object_class', nullif((l ->> 'object_oid')::bigint, 0),
			l ->> 'object_name', l ->> 'database', l ->> 'username', l ->> 'application', l ->> 'client_addr',
			l ->> 'old_value', l ->> 'new_value', l ->> 'outcome', nullif((l ->> 'left_out')::bigint, 0)
		from (
			select (select jsonb_object_agg(key, nullif(value, '')) from jsonb_each_text(to_jsonb(t))) as l
			from %s t
		) x$sql$, source);
	get diagnostics v_count = row_count;
	return v_count;
end
$$;
comment on function tacho.import_markers is
'Adds markers from a table and returns their number. The columns are time, kind, since, until, detail and the columns of changes in "tacho import sessions --with markers=FILE".';
