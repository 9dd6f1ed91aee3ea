/*
 * 60_rollup.sql - sums up complete hours
 *
 * An hour is complete when its last minute is packed. It stays complete, because no tick
 * is added before the newest one. Rows of an hour are written once, in one transaction
 * with the watermark "hour": ticks before the watermark are in hour rows. The caller
 * holds mutex_maintenance.
 */
create aggregate tacho._gcd(bigint) (sfunc = gcd, stype = bigint);
comment on aggregate tacho._gcd(bigint) is 'greatest common divisor';

create function tacho._hour_question(hour integer, width_us bigint)
returns tacho.question
language sql immutable parallel safe
return row(null, hour * 3600000000::bigint, (hour + 1) * 3600000000::bigint, width_us,
	hour * 3600000000::bigint, null, 3600000000 / width_us, 'load', false, '[]', null, null)::tacho.question;
comment on function tacho._hour_question is 'the question an hour is summed up by';

create function tacho._words(cells tacho.cell[])
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	insert into tacho.word (value)
	select k.value
	from (
		select c.key from unnest(cells) c
		union
		select c.by_key from unnest(cells) c
	) k (value)
	where not exists (select from tacho.word w where w.value = k.value or w.value is null and k.value is null);
end;
comment on function tacho._words is 'adds the keys of cells to the words';

create function tacho._roll_up_keys(in_hour integer, in_position smallint, in_dimension text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_cells tacho.cell[] := array(
		select c from tacho._raw_cells(tacho._hour_question(in_hour, 60000000), in_dimension, null) c);
begin
	perform tacho._words(v_cells);
	insert into tacho.hour_key (hour, dimension, first_minute, key, sessions, sum_ms, unit_ms, weights, wide, peaks)
	select
		in_hour,
		in_position,
		k.first_minute,
		k.key,
		k.sessions,
		k.sum_ms,
		k.unit_ms,
		case when k.most <= 32767 then m.weights::smallint[] end,
		case when k.most > 32767 then m.weights end,
		case when in_dimension is distinct from 'query_id' then m.peaks end
	from (
		select
			w.id as key,
			c.key as value,
			min(c.bucket) as first_minute,
			max(c.bucket) as last_minute,
			max(c.sessions) as sessions,
			sum(c.sum_ms) as sum_ms,
			tacho._gcd(c.sum_ms) as unit_ms,
			max(c.sum_ms) / tacho._gcd(c.sum_ms) as most
		from unnest(v_cells) c
		join tacho.word w on w.value = c.key or w.value is null and c.key is null
		group by 1, 2
	) k
	cross join lateral (
		select
			array_agg((coalesce(c.sum_ms, 0) / k.unit_ms)::integer order by i) as weights,
			array_agg(least(coalesce(c.sessions, 0), 32767)::smallint order by i) as peaks
		from generate_series(k.first_minute, k.last_minute) i
		left join unnest(v_cells) c on c.bucket = i and c.key is not distinct from k.value
	) m;
end
$$;
comment on function tacho._roll_up_keys is 'hour rows of a dimension; position 0 is the total';

create function tacho._roll_up(in_hour integer)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q constant tacho.question := tacho._hour_question(in_hour, 60000000);
	v_dimension record;
	v_pairs tacho.cell[];
begin
	insert into tacho.hour_tick (hour, last_ms, observed_ms, failed_ms, n_observed, n_failed, intervals_ms, vcpus_x100)
	select
		in_hour,
		max(o.last_ms),
		array_agg(coalesce(o.observed_ms, 0)::integer order by i),
		array_agg(coalesce(o.failed_ms, 0)::integer order by i),
		array_agg(coalesce(o.n_observed, 0)::integer order by i),
		array_agg(coalesce(o.n_failed, 0)::integer order by i),
		array_agg(o.last_interval_ms order by i),
		case when count(o.vcpus_x100) > 0 then array_agg(o.vcpus_x100 order by i) end
	from generate_series(0, 59) i
	left join tacho._raw_observed(q) o on o.bucket = i
	having count(o.bucket) > 0;
	if not found then
		return;
	end if;
	perform tacho._roll_up_keys(in_hour, 0::smallint, null);
	for v_dimension in select d.position, d.name from tacho.dimension d where d.in_hours loop
		perform tacho._roll_up_keys(in_hour, v_dimension.position, v_dimension.name);
	end loop;

	v_pairs := array(select c from tacho._raw_cells(tacho._hour_question(in_hour, 3600000000), 'query_id', 'wait_event') c);
	perform tacho._words(v_pairs);
	insert into tacho.hour_pair (hour, query, unit_ms, waits, sessions, weights)
	select
		in_hour,
		qw.id,
		tacho._gcd(c.sum_ms),
		array_agg(ww.id order by ww.id),
		array_agg(least(c.sessions, 32767)::smallint order by ww.id),
		array_agg((c.sum_ms / g.unit_ms)::integer order by ww.id)
	from unnest(v_pairs) c
	join tacho.word qw on qw.value = c.key or qw.value is null and c.key is null
	join tacho.word ww on ww.value = c.by_key or ww.value is null and c.by_key is null
	join (
		select x.key, tacho._gcd(x.sum_ms) as unit_ms
		from unnest(v_pairs) x
		group by x.key
	) g on g.key is not distinct from c.key
	group by qw.id;
end
$$;
comment on function tacho._roll_up is 'writes the rows of a complete hour';

create function tacho._roll_up_hours(until_ms bigint, most integer default 200)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
	v_hour integer;
	v_hours integer := 0;
	v_done bigint := (select ms from tacho.watermark where name = 'hour');
	-- an hour with a tick that could not be packed is not complete
	v_until_ms constant bigint := least(until_ms, (select min(h.start_ms) from tacho.hot h)) / 3600000 * 3600000;
begin
	for v_hour in
		select distinct (p.start_ms / 3600000)::integer
		from tacho.pack p
		where p.start_ms >= v_done
			and p.start_ms < v_until_ms
		order by 1
		limit most
	loop
		perform tacho._roll_up(v_hour);
		update tacho.watermark set ms = (v_hour + 1) * 3600000::bigint where name = 'hour';
		v_hours := v_hours + 1;
	end loop;
	if v_hours < most then
		update tacho.watermark
		set ms = v_until_ms
		where name = 'hour'
			and ms < v_until_ms;
	end if;
	return v_hours;
end
$$;
comment on function tacho._roll_up_hours is 'sums up hours before a time if all their ticks are packed; returns how many';

create function tacho._forget_words()
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	with named as materialized (
		select k.key from tacho.hour_key k
		union
		select p.query from tacho.hour_pair p
		union
		select unnest(p.waits) from tacho.hour_pair p
	)
	delete from tacho.word w
	where not exists (select from named n where n.key = w.id);
end;
comment on function tacho._forget_words is 'deletes keys that no hour row has';

create function tacho._forget(now_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_hour constant integer := (now_ms - (select extract(epoch from hour_retention) * 1000 from tacho.setting)) / 3600000;
begin
	delete from tacho.hour_pair where hour < v_hour;
	delete from tacho.hour_key where hour < v_hour;
	delete from tacho.hour_tick where hour < v_hour;
	delete from tacho.marker where marker_time < to_timestamp(v_hour * 3600.0);
	if now_ms / 3600000 % 24 = 3 then
		perform tacho._forget_words();
	end if;
end
$$;
comment on function tacho._forget is 'deletes hour rows and markers older than hour_retention; once a day also the words of hour rows that are gone';
