/*
 * sql_edition.sql - the uniform day, hour by hour
 *
 * 50 sessions at every second of a day, each in one of 21 wait events and one
 * of 200 queries, drawn independently: nothing to compress but the ranges.
 */
create procedure uniform_hour(day timestamptz, hour integer)
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
	perform tacho.import_sessions('line');
	perform tacho._pack(tacho._ms(day + (hour + 1) * interval '1 hour'));
end
$$;
