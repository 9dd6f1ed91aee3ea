/*
 * 46_measures.sql - exact numbers
 *
 * Sums are integers (ms). The load of a bucket is sum / observed ms of the bucket. All
 * buckets of an answer are brought to the least common multiple of their observed ms. So
 * loads are integers ("scores"), which are compared and interpolated without rounding.
 * Only _round4() rounds, half away from zero, to four places.
 */
create aggregate tacho._lcm(numeric) (sfunc = lcm, stype = numeric);
comment on aggregate tacho._lcm(numeric) is 'least common multiple';

create function tacho._round4(num numeric, den numeric)
returns numeric
language sql immutable parallel safe
return case when den > 0 then round(div(abs(num) * 20000 + den, den * 2) * sign(num) / 10000, 4) end;
comment on function tacho._round4 is 'num / den of whole numbers, rounded half away from zero to four places; null when den is not positive';

-- percentile_cont(0.99) of n values, in hundredths. Only the highest values are given,
-- in descending order; the others are zero.
create function tacho._p99(scores numeric[], n bigint)
returns numeric
language sql immutable parallel safe
return case when n > 0 then
	coalesce(scores[n - 99 * (n - 1) / 100], 0) * (100 - 99 * (n - 1) % 100)
	+ coalesce(scores[greatest(n - 99 * (n - 1) / 100 - 1, 1)], 0) * (99 * (n - 1) % 100)
end;
comment on function tacho._p99 is 'hundredfold 99th percentile of scores';

create type tacho.coverage as (
	observed_ms numeric,
	failed_ms numeric,
	n_observed bigint,
	n_failed bigint,
	interval_ms integer,
	vcpus_x100 integer,
	lcm numeric,
	n_buckets bigint
);
comment on type tacho.coverage is 'observed ticks of a window; lcm: least common multiple of the observed ms of its n_buckets observed buckets';

create function tacho._coverage(q tacho.question, observed tacho.observed[])
returns tacho.coverage
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select row(
		coalesce(sum(o.observed_ms), 0),
		coalesce(sum(o.failed_ms), 0),
		coalesce(sum(o.n_observed), 0),
		coalesce(sum(o.n_failed), 0),
		coalesce((array_agg(o.last_interval_ms order by o.last_ms desc))[1], tacho._interval_before(q)),
		(array_agg(o.vcpus_x100 order by o.vcpus_ms desc) filter (where o.vcpus_x100 is not null))[1],
		coalesce(tacho._lcm(o.observed_ms) filter (where o.observed_ms > 0), 1),
		count(*) filter (where o.observed_ms > 0)
	)::tacho.coverage
	from unnest(observed) o;
end;
comment on function tacho._coverage is 'observed ticks of a window';

-- Scores are added up and sorted as bigint if they fit.
create function tacho._score_type(observed tacho.observed[], c tacho.coverage)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case when (c).lcm / min(o.observed_ms) < 10000 then 'bigint' else 'numeric' end
	from unnest(observed) o
	where o.observed_ms > 0;
end;
comment on function tacho._score_type is 'type of scores';

create function tacho._ticks_expected(c tacho.coverage, length_us bigint)
returns bigint
language sql immutable parallel safe
return c.n_observed + c.n_failed
	+ div(greatest(length_us - (c.observed_ms + c.failed_ms) * 1000, 0), coalesce(nullif(c.interval_ms, 0), 1000) * 1000)::bigint;
comment on function tacho._ticks_expected is 'ticks a period should have';

create function tacho._percent(c tacho.coverage, length_us bigint)
returns numeric
language sql immutable parallel safe
return tacho._round4(100 * least(c.observed_ms * 1000, length_us), length_us);
comment on function tacho._percent is 'percentage of a period that was observed';

-- Notice with an answer that has no rows: "nothing happened" and "nothing was observed"
-- are different answers. Answers with rows have no such notice.
create function tacho._say_empty(q tacho.question)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_minute constant bigint := 60000000;
	v_raw_us constant bigint := tacho._raw_first_us();
	w tacho.question := q;
	v_observed_ms numeric;
	v_percent numeric;
begin
	if current_setting('client_min_messages') in ('warning', 'error') then
		return;
	end if;
	-- where samples are gone, full minutes are known
	if w.since_us < v_raw_us then
		w.since_us := ceil(w.since_us::numeric / v_minute) * v_minute;
	end if;
	if w.until_us < v_raw_us then
		w.until_us := floor(w.until_us::numeric / v_minute) * v_minute;
	end if;
	if w.since_us < w.until_us then
		w.origin_us := floor(w.since_us::numeric / v_minute) * v_minute;
		w.width_us := ceil((w.until_us - w.origin_us)::numeric / v_minute) * v_minute;
		w.n_buckets := 1;
		w.edges_us := null;
		w.scope := 'load';
		w.by_leader := false;
		w.filters := '[]';
		select sum(o.observed_ms) into v_observed_ms from tacho._observed(tacho._plan(w, null, null, false)) o;
		v_percent := tacho._round4(100 * least(v_observed_ms * 1000, w.until_us - w.since_us), w.until_us - w.since_us);
	end if;
	if v_observed_ms > 0 then
		raise notice 'no rows: % %% of the period was observed', v_percent
			using detail = format('The period is %s to %s.', tacho._time_text(q.since_us), tacho._time_text(q.until_us));
	else
		raise notice 'no rows: the period was not observed'
			using detail = format('The period is %s to %s.', tacho._time_text(q.since_us), tacho._time_text(q.until_us)),
				hint = 'Use status to see the times that the history covers.';
	end if;
end
$$;
comment on function tacho._say_empty is 'a notice for an answer without rows: how much of its period was observed';
