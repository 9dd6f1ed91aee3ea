/*
 * sql_edition.sql - the uniform day, hour by hour
 *
 * 50 sessions at every second of a day, each in one of 21 wait events and one
 * of 200 queries, drawn independently: nothing to compress but the ranges. The
 * same rows for tacho and for pg_ash, whose format is that of its versions 1
 * and 2: per tick and database [-wait, n, query, …, -wait, …].
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
		(16000 + substr(g.database, 3)::integer)::oid,
		sum(g.n)::smallint,
		('{' || string_agg(format('-%s,%s,%s', g.wait, g.n, g.queries), ',') || '}')::integer[],
		0
	from (
		select l.time, l.database, w.id as wait, count(*) as n, string_agg(q.id::text, ',') as queries
		from line l
		join ash.wait_event_map w on w.state = 'active' and w.type = coalesce(l.wait_event_type, 'CPU*') and w.event = coalesce(l.wait_event, 'CPU*')
		join ash.query_map_0 q on q.query_id = l.query_id
		group by l.time, l.database, w.id
	) g
	group by g.time, g.database
	order by 1, 2;
end
$$;
