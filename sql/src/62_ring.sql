/*
 * 62_ring.sql - rotation, and one function that does all maintenance
 *
 * Rotation makes the oldest partition the current one and empties it. It refuses while an
 * hour of the partition is not summed up, and gives way to readers. It takes its locks
 * without waiting and releases all of them before it tries again, so it is never part of
 * a deadlock. Until it succeeds, the current partition grows; nothing is lost.
 */
create function tacho._slot_begin_ms(in_slot smallint)
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select greatest(r.since_ms, least(
		(select min(p.start_ms) from tacho.pack p where p.slot = r.slot),
		(select min(h.start_ms) from tacho.hot h where h.slot = r.slot)))
	from tacho.ring r
	where r.slot = in_slot
		and exists (select from tacho.pack p where p.slot = r.slot union all select from tacho.hot h where h.slot = r.slot);
end;
comment on function tacho._slot_begin_ms is 'begin of the history in a partition, null when it is empty';

create function tacho._empty_slot(in_slot smallint, patience interval)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_end constant timestamptz := clock_timestamp() + patience;
begin
	loop
		begin
			lock table tacho.mutex_sampler in exclusive mode;
			execute format('lock table tacho.session_%1$s, tacho.activity_%1$s, tacho.awaited_%1$s, tacho.pack_%1$s in access exclusive mode nowait', in_slot);
			execute format('truncate tacho.session_%1$s, tacho.activity_%1$s, tacho.awaited_%1$s, tacho.pack_%1$s', in_slot);
			return true;
		exception when lock_not_available then
			if clock_timestamp() >= v_end then
				return false;
			end if;
		end;
		perform pg_sleep(0.02);
	end loop;
end
$$;
comment on function tacho._empty_slot is 'truncates a partition and holds mutex_sampler; false when readers did not let go of it';

create function tacho.rotate(force boolean default false, patience interval default '2 seconds')
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_now_ms constant bigint := tacho._ms(clock_timestamp());
	v_current tacho.ring;
	v_next tacho.ring;
	v_begin_ms bigint;
	v_last_ms bigint;
	v_period_ms bigint;
begin
	if pg_is_in_recovery() then
		return 'standby';
	end if;
	lock table tacho.mutex_maintenance in exclusive mode;
	select * into strict v_current from tacho.ring where is_current;
	select * into strict v_next
	from tacho.ring
	where slot = (v_current.slot + 1) % (select count(*) from tacho.ring);
	v_begin_ms := tacho._slot_begin_ms(v_current.slot);
	select extract(epoch from period) * 1000 into v_period_ms from tacho.setting;
	if v_begin_ms is null or not force and v_now_ms - v_begin_ms < v_period_ms then
		return 'not due';
	end if;
	if exists (
		select from tacho.pack p
		where p.slot = v_next.slot and p.last_ms >= (select ms from tacho.watermark where name = 'hour')
		union all
		select from tacho.hot h where h.slot = v_next.slot)
	then
		perform tacho._count('rotations put off: not summed up');
		return 'not summed up';
	end if;
	if not tacho._empty_slot(v_next.slot, patience) then
		perform tacho._count('rotations put off: readers');
		return 'readers';
	end if;
	select coalesce(max(l.slot_ms), v_now_ms) into v_last_ms from tacho._last_tick() l;
	update tacho.ring set is_current = false where slot = v_current.slot;
	update tacho.ring
	set is_current = true,
		since_ms = v_last_ms + 1,
		generation = (select max(generation) + 1 from tacho.ring)
	where slot = v_next.slot;
	perform setval('tacho.generation', (select max(generation) from tacho.ring));
	return 'rotated';
end
$$;
comment on function tacho.rotate is
'Makes the next partition of the ring the current one when the present one is older than the setting period (or force): rotated, not due, not summed up, readers (they did not let go in time; nothing happened), standby. Called by tacho.maintain().';

create function tacho.configure_ring(partitions integer default null, logged boolean default null)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
	v_have constant integer := (select count(*) from tacho.ring);
	v_table text;
begin
	if partitions < v_have or partitions > 1000 then
		raise exception 'the ring has % partitions', v_have
			using errcode = 'invalid_parameter_value',
				hint = 'It can grow up to 1000, not shrink; a shorter period makes it keep less.';
	end if;
	lock table tacho.mutex_maintenance in exclusive mode;
	lock table tacho.mutex_sampler in exclusive mode;
	call tacho._add_partitions(v_have, coalesce(partitions, v_have) - 1);
	update tacho.setting set partitions = coalesce(configure_ring.partitions, v_have);
	if logged is not null then
		for v_table in
			select k.oid::regclass::text
			from pg_class k
			where k.relnamespace = 'tacho'::regnamespace
				and k.relkind = 'r'
				and k.relname ~ '^(hot|(pack|session|activity|awaited)_[0-9]+)$'
		loop
			execute format('alter table %s set %s', v_table, case when logged then 'logged' else 'unlogged' end);
		end loop;
	end if;
	return format('%s partitions, %s', coalesce(partitions, v_have), (
		select case k.relpersistence when 'u' then 'unlogged' else 'logged' end
		from pg_class k
		where k.oid = 'tacho.hot'::regclass));
end
$$;
comment on function tacho.configure_ring is
'Adds partitions to the ring, or takes its samples out of the WAL: a crash then loses those that are not summed up. Example: select tacho.configure_ring(partitions => 8, logged => false);';

create procedure tacho._fail(step text, message text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
	insert into tacho.failure as f (step, failed_at, message)
	values (step, clock_timestamp(), message)
	on conflict on constraint failure_pkey do update set failed_at = excluded.failed_at, message = excluded.message;
	perform tacho._count('failures of maintenance');
end
$$;
comment on procedure tacho._fail is 'remembers that a step failed';

create function tacho._step(step text, now_ms bigint)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_begin constant timestamptz := clock_timestamp();
	v_result text;
begin
	case step
		when 'clock' then v_result := tacho._delete_future(now_ms);
		when 'pack' then v_result := tacho._pack(now_ms / 60000 * 60000);
		when 'texts' then v_result := tacho._find_texts();
		when 'statements' then v_result := tacho._record_statements(now_ms);
		when 'sum up' then v_result := tacho._roll_up_hours(now_ms / 60000 * 60000, 6);
		when 'rotate' then v_result := tacho.rotate();
		when 'forget' then
			perform tacho._forget(now_ms);
			perform tacho._forget_statements(now_ms);
			perform tacho._forget_texts(now_ms);
	end case;
	delete from tacho.failure f where f.step = _step.step and f.failed_at < v_begin;
	return v_result;
exception
	when query_canceled then
		raise;
	when others then
		call tacho._fail(step, sqlerrm);
		return 'failed: ' || sqlerrm;
end
$$;
comment on function tacho._step is 'a step of maintenance; a failure is remembered and does not stop the others';

-- Ticks of a slot before now are committed, or will never be.
create function tacho._await_tick()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	lock table tacho.mutex_sampler in exclusive mode;
	-- lets go of it
	raise exception using errcode = 'no_data_found';
exception when no_data_found then
	null;
end
$$;
comment on function tacho._await_tick is 'waits for the tick that is being added';

create function tacho.maintain()
returns table (
	step text,
	result text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set jit = off
as $$
declare
	v_now_ms constant bigint := tacho._ms(clock_timestamp());
	v_is_steady boolean;
begin
	if pg_is_in_recovery() then
		return query select 'maintain', 'standby';
		return;
	elsif current_setting('transaction_read_only')::boolean then
		return query select 'maintain', 'read only';
		return;
	end if;
	begin
		lock table tacho.mutex_maintenance in exclusive mode nowait;
		perform tacho._await_tick();
	exception when lock_not_available then
		return query select 'maintain', 'busy';
		return;
	end;
	v_is_steady := tacho._clock_is_steady(v_now_ms);
	foreach step in array array['clock', 'pack', 'texts', 'statements', 'sum up', 'rotate', 'forget'] loop
		continue when step = 'forget' and v_now_ms / 60000 % 60 <> 7;
		if step in ('sum up', 'rotate', 'forget') and not v_is_steady then
			result := 'waits: the clock jumped';
		else
			result := tacho._step(step, v_now_ms);
		end if;
		return next;
	end loop;
end
$$;
comment on function tacho.maintain is
'Packs full minutes, looks up texts, records statement statistics, sums up full hours, rotates, deletes what is too old or of a wrong clock. Called once a minute, by tacho.run_sampler() or a scheduler of your own.';
