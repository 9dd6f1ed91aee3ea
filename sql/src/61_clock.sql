/*
 * 61_clock.sql - a clock that was wrong by more than a day
 *
 * A clock that is a year ahead for two minutes leaves ticks of the next year. No tick is
 * added before the newest one, so nothing would be recorded for a year. And maintenance
 * would delete the history of a year. Two rules prevent this:
 * - After a jump of the clock, maintenance only packs for an hour. The time that a
 *   server was stopped is no jump, up to 30 days.
 * - When the clock is right again, the ticks of the wrong time are deleted.
 *
 * A clock that was ahead by less than a day is not corrected: its ticks stay, and
 * status() says until when ticks are refused. The same holds if it was ahead for more
 * than a day.
 */
create function tacho._clock_is_steady(now_ms bigint)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_hour constant bigint := 3600000;
	v_before_ms constant bigint := tacho._swap_watermark('maintenance', now_ms);
	v_passed_ms constant bigint := now_ms - v_before_ms;
begin
	if v_passed_ms < -24 * c_hour
		or v_passed_ms > 24 * c_hour
			and (v_passed_ms > 30 * 24 * c_hour or tacho._ms(pg_postmaster_start_time()) < v_before_ms)
	then
		perform tacho._swap_watermark('clock jumped', now_ms);
	end if;
	return not exists (select from tacho.watermark where name = 'clock jumped' and ms > now_ms - c_hour);
end
$$;
comment on function tacho._clock_is_steady is 'false in the hour after a jump of the clock; called once each maintenance';

-- The clock was ahead if the record goes on until now, and then has a hole of a day or
-- more. After a clock that was set back, it has no such hole.
create function tacho._delete_future(now_ms bigint)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_day constant bigint := 86400000;
	v_first_ms bigint;
	v_last_ms bigint;
	v_before_ms bigint;
	v_ticks bigint;
begin
	select max(l.slot_ms) into v_last_ms from tacho._last_tick() l;
	if v_last_ms is null or v_last_ms < now_ms + c_day then
		return 0;
	end if;
	lock table tacho.mutex_sampler in exclusive mode;
	v_first_ms := least((select min(start_ms) from tacho.hot where start_ms > now_ms), (select min(start_ms) from tacho.pack where start_ms > now_ms));
	v_before_ms := greatest((select max(start_ms) from tacho.hot where start_ms <= now_ms), (select max(start_ms) from tacho.pack where start_ms <= now_ms));
	if v_first_ms < now_ms + c_day or v_last_ms - v_first_ms > c_day or coalesce(v_before_ms, 0) < now_ms - 2 * c_day then
		return 0;
	end if;
	select (select count(*) from tacho.hot where start_ms >= v_first_ms) + (select coalesce(sum(n_ticks), 0) from tacho.pack where start_ms >= v_first_ms)
	into v_ticks;
	delete from tacho.hot where start_ms >= v_first_ms;
	delete from tacho.pack where start_ms >= v_first_ms;
	delete from tacho.hour_pair where hour >= now_ms / 3600000;
	delete from tacho.hour_key where hour >= now_ms / 3600000;
	delete from tacho.hour_tick where hour >= now_ms / 3600000;
	delete from tacho.statement_counters where pass_ms > now_ms + c_day;
	update tacho.watermark set ms = now_ms / 3600000 * 3600000 where name = 'hour' and ms > now_ms;
	update tacho.watermark set ms = now_ms / 60000 * 60000 where name = 'pack' and ms > now_ms;
	update tacho.ring set since_ms = now_ms where since_ms > now_ms;
	delete from tacho.marker where kind = 'gap' and period_end > tacho._time((now_ms + c_day) * 1000);
	update tacho.marker set period_end = tacho._time(now_ms * 1000) where kind = 'clock step' and period_end > tacho._time((now_ms + c_day) * 1000);
	perform tacho._mark('clock step', format('the clock was ahead: %s ticks from %s to %s were deleted', v_ticks,
		tacho._time_text(v_first_ms * 1000), tacho._time_text(v_last_ms * 1000)));
	return v_ticks;
end
$$;
comment on function tacho._delete_future is 'deletes the ticks of a clock that was ahead, and returns their number';
