/*
 * 22_import.sql - history from a table
 *
 * The columns of `tacho import sessions`: time, pid, backend_start, leader_pid,
 * backend_type, category, database, username, application, client_addr, state,
 * wait_event_type, wait_event, cpu, query_id, plan_id, query_start, xact_start,
 * state_change, blocked_by, marked, query_text, tick_status, vcpus, interval_ms.
 * All but time may be missing; a row without pid is a tick without sessions.
 * Without a column "state" sessions are active.
 */
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

create function tacho.import_sessions(source regclass, sample_interval interval default '1 second')
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
begin
	lock table tacho.mutex_maintenance in exclusive mode;
	lock table tacho.mutex_sampler in exclusive mode;
	select * into v_last from tacho._last_tick();
	v_tick.tick := v_last.tick;
	v_tick.slot_ms := v_last.slot_ms;
	for v_line in
		execute format($sql$
			select time::text::timestamptz as time, array_agg(line order by ctid) as lines
			from (
				select t.time, t.ctid, (
					select jsonb_object_agg(key, case when value <> '' then value end)
					from jsonb_each_text(to_jsonb(t))) as line
				from %s t
			) x
			group by 1
			order by 1
		$sql$, source)
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
		v_tick.tick := coalesce(v_tick.tick + greatest((v_slot_ms - v_tick.slot_ms) / v_tick.interval_ms, 1), 1);
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
'Adds history from a table with the columns of "tacho import sessions" (see the head of 22_import.sql), newer than what is there; returns the ticks added. Example: \copy my_table from sessions.csv csv header, then select tacho.import_sessions(''my_table'');';
