/*
 * 68_status.sql - the state of the recording, and the reason if nothing is recorded
 */
create function tacho._status(node text)
returns table (
	metric text,
	value text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
	s tacho.setting;
	v_last record;
	v_first_ms bigint;
	v_hour_ms constant bigint := (select ms from tacho.watermark where name = 'hour');
	v_now_us constant bigint := tacho._us(clock_timestamp());
	q tacho.question;
	c tacho.coverage;
begin
	perform tacho._check_node(node);
	select * into strict s from tacho.setting;
	select * into v_last from tacho._last_tick();
	v_first_ms := (
		select min(x.ms)
		from (
			select h.hour * 3600000::bigint from tacho.hour_tick h
			union all
			(select start_ms from tacho.pack order by start_ms limit 1)
			union all
			(select start_ms from tacho.hot order by start_ms limit 1)
		) x (ms));
	q := tacho._buckets(tacho._ask(null, null, null, null, null, false, null), interval '1 hour', null, 10);
	c := tacho._coverage(q, array(select o from tacho._raw_observed(q) o));
	return query values
		('recording', case
			when pg_is_in_recovery() then 'standby: nothing is recorded here'
			when not s.enabled then 'off: call tacho.start()'
			when v_last.slot_ms is null then 'on, but no tick was ever taken: nothing calls tacho.run_sampler()'
			when greatest(v_last.slot_ms, v_hour_ms) * 1000 > v_now_us + (v_last.interval_ms + 1000) * 1000::bigint
				then format('on, but ticks are refused until %s: the clock was ahead', tacho._time_text(greatest(v_last.slot_ms, v_hour_ms) * 1000))
			when v_last.slot_ms * 1000 < v_now_us - 10 * greatest(v_last.interval_ms, 1000) * 1000::bigint then 'on, but nothing calls tacho.run_sampler()'
			else 'on' end),
		('permission', case when pg_has_role('pg_read_all_stats', 'usage') then 'sees all sessions'
			else 'sees only sessions of ' || current_user end),
		('pg_cron', tacho._cron_state()),
		('pg_stat_statements', case when tacho._pgss() is not null then 'available' else 'not available' end),
		('version', s.version),
		('node', s.node),
		('sample_interval', s.sample_interval::text),
		('first_tick_time', tacho._time_text(v_first_ms * 1000)),
		('last_tick_time', tacho._time_text(v_last.slot_ms * 1000)),
		('last_tick_age_s', ((v_now_us - v_last.slot_ms * 1000) / 1000000)::text),
		('last_tick', v_last.tick::text),
		('coverage_last_hour_pct', tacho._percent(c, 3600000000)::text),
		('samples_kept_since', tacho._time_text(greatest(tacho._raw_first_us(), v_first_ms * 1000))),
		('summed_up_until', tacho._time_text((select nullif(ms, 0) * 1000 from tacho.watermark where name = 'hour'))),
		('partitions', format('%s of %s', (select count(*) from tacho.ring), s.period)),
		('current_partition', (select slot::text from tacho.ring where is_current)),
		('sessions_in_partition', (select max(id)::text from tacho.session x join tacho.ring r using (slot) where r.is_current)),
		('activities_in_partition', (select max(id)::text from tacho.activity x join tacho.ring r using (slot) where r.is_current)),
		('waits_in_partition', (select max(id)::text from tacho.awaited x join tacho.ring r using (slot) where r.is_current)),
		('texts', (select count(*)::text from tacho.text)),
		('bytes', (select sum(pg_total_relation_size(k.oid))::text from pg_class k
			where k.relnamespace = 'tacho'::regnamespace and k.relkind = 'r'));
	return query select x.name, x.value::text from tacho.counter x where x.value > 0 order by x.name collate "C";
	return query select 'failed: ' || f.step, tacho._time_text(tacho._us(f.failed_at)) || ' ' || f.message
		from tacho.failure f order by f.step collate "C";
end
$$;
comment on function tacho._status is 'status() itself';

call tacho._reader($decl$status(
	node text default null
)
returns table (
	metric text,
	value text
) rows 40$decl$,
'select * from tacho._status(status.node)',
'State of the recording: since when, its size, and the reason if nothing is recorded. Example: select * from tacho.status();');
