/*
 * sql_edition.sql - the uniform day, hour by hour
 *
 * 50 sessions at every second of a day, each in one of 21 wait events and one
 * of 200 queries, drawn independently: nothing to compress but the ranges. tacho
 * and pg_ash get the same rows. The format for pg_ash is the one of its versions
 * 1 and 2: per tick and database [-wait, n, query, …, -wait, …]. pg_ash gets them
 * as of one database, as in its own benchmark.
 */
create procedure uniform_line(day timestamptz, hour integer)
language plpgsql
as $$
begin
	perform setseed(hour / 24.0);
	create temp table line on commit drop as
	select
		t as time,
		1000 + s as pid,
		day - interval '1 day' + s * interval '1 second' as backend_start,
		'db' || s % 2 as database,
		'user' || s % 5 as username,
		'app' || s % 3 as application,
		'active' as state,
		case when w < 20 then (array['IO', 'LWLock', 'Lock', 'IPC'])[w % 4 + 1] end as wait_event_type,
		case when w < 20 then 'Event' || w end as wait_event,
		q + 1 as query_id
	from generate_series(day + hour * interval '1 hour', day + (hour + 1) * interval '1 hour' - interval '1 second', interval '1 second') t
	cross join generate_series(1, 50) s
	cross join lateral (select floor(random() * 21 + 0 * s * extract(epoch from t))::integer as w, floor(random() * 200 + 0 * s * extract(epoch from t))::integer as q) r;
end
$$;

create procedure uniform_hour(day timestamptz, hour integer)
language plpgsql
as $$
begin
	call uniform_line(day, hour);
	perform tacho.import_sessions('line');
	perform tacho._pack(tacho._ms(day + (hour + 1) * interval '1 hour'));
end
$$;

-- repeats the drawn hours as later hours
create procedure again(drawn integer, times integer)
language plpgsql
as $$
begin
	for i in 1 .. times - 1 loop
		insert into tacho.pack (first_tick, start_ms, last_ms, slot, n_ticks, interval_ms, observed_ms, failed_ms, n_failed, sessions, run_ats, run_lens, what)
		select first_tick + i * drawn * 3600, start_ms + i * drawn * 3600000, last_ms + i * drawn * 3600000,
			slot, n_ticks, interval_ms, observed_ms, failed_ms, n_failed, sessions, run_ats, run_lens, what
		from tacho.pack p
		where p.start_ms < (select min(start_ms) from tacho.pack) + drawn * 3600000;
	end loop;
end
$$;

-- repeats the hour rows thirty times as earlier hours
create procedure month(hours integer)
language plpgsql
as $$
begin
	for i in 1 .. 30 * 24 / hours - 1 loop
		insert into tacho.hour_tick
		select hour - i * hours, last_ms - i * hours * 3600000::bigint, observed_ms, failed_ms, n_observed, n_failed, intervals_ms, vcpus_x100
		from tacho.hour_tick where hour > (select max(hour) from tacho.hour_tick) - hours;
		insert into tacho.hour_key
		select hour - i * hours, dimension, first_minute, key, sessions, sum_ms, unit_ms, weights, wide, peaks
		from tacho.hour_key where hour > (select max(hour) from tacho.hour_tick) - hours;
		insert into tacho.hour_pair
		select hour - i * hours, query, unit_ms, waits, sessions, weights
		from tacho.hour_pair where hour > (select max(hour) from tacho.hour_tick) - hours;
	end loop;
end
$$;

create procedure ash_hour(day timestamptz, hour integer)
language plpgsql
as $$
begin
	call uniform_line(day, hour);
	insert into ash.wait_event_map (state, type, event)
	select distinct 'active', coalesce(wait_event_type, 'CPU*'), coalesce(wait_event, 'CPU*') from line
	on conflict do nothing;
	insert into ash.query_map_0 (query_id) select distinct query_id from line on conflict do nothing;
	insert into ash.sample (sample_ts, datid, active_count, data, slot)
	select
		extract(epoch from g.time - ash.epoch())::integer,
		16000::oid,
		sum(g.n)::smallint,
		('{' || string_agg(format('-%s,%s,%s', g.wait, g.n, g.queries), ',') || '}')::integer[],
		0
	from (
		select l.time, w.id as wait, count(*) as n, string_agg(q.id::text, ',') as queries
		from line l
		join ash.wait_event_map w on w.state = 'active' and w.type = coalesce(l.wait_event_type, 'CPU*') and w.event = coalesce(l.wait_event, 'CPU*')
		join ash.query_map_0 q on q.query_id = l.query_id
		group by l.time, w.id
	) g
	group by g.time
	order by 1;
end
$$;
