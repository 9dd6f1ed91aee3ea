-- A naive scan of samples() gives the same as top, timeline and aas: from
-- single ticks, from packs, and from hour rows.
select setseed(0.42);
create table line as
select
	t.time,
	case when u.s is not null then 100 + u.s end as pid,
	case when u.s is not null then 'db' || u.s % 3 end as database,
	case when u.s is not null then 'user' || u.s % 2 end as username,
	case when u.s % 7 <> 3 then 'app' || u.s % 4 end as application,
	case when u.s = 5 then 'autovacuum worker' when u.s = 6 then 'parallel worker' else 'client backend' end as backend_type,
	case when u.s = 6 then 101 end as leader_pid,
	(array['active', 'active', 'active', 'idle in transaction', 'fastpath function call'])[1 + (random() * 4)::integer] as state,
	w.wait_event_type,
	w.wait_event,
	nullif((random() * 6)::integer, 0) as query_id,
	t.interval_ms,
	case when t.failed then 'failed' when random() < 0 then 'late' else '' end as tick_status
from (
	select
		timestamptz '2026-03-01 21:38:20+00' + i * interval '5 seconds' as time,
		case when i between 300 and 420 then 2500 else 5000 end as interval_ms,
		i % 97 = 11 as failed
	from generate_series(0, 1900) i
	where i not between 700 and 760
) t
left join lateral (
	select s
	from generate_series(1, 9) s
	where random() < 0.4 + 0 * extract(epoch from t.time) and not t.failed
) u on true
left join lateral (
	select
		case when random() < 0.7 + 0 * u.s then 'IO' when random() < 0.5 then 'Client' end as wait_event_type
) k on true
left join lateral (
	select k.wait_event_type, case k.wait_event_type when 'IO' then 'Read' || (random() * 3)::integer when 'Client' then 'ClientRead' end as wait_event
) w on true;
select tacho.import_sessions('line');

-- every sample, and every tick
create table s as
select *, coalesce(case when wait_event is not null then wait_event_type || ':' || wait_event end, cpu) as wait_key
from tacho.samples('2026-03-01', '2026-03-03', scope => 'all', n => null);
create table t as
select distinct time::timestamptz as time, interval_ms, tick_status = 'failed' as failed
from line;
select test.equal((select count(*)::text from s), (select count(pid)::text from line), 'all samples come back');
select test.equal(
	(select sum(hashtext(concat_ws('|', time, pid, database, username, application, backend_type, state, wait_event, query_id)))::text from line where pid is not null),
	(select sum(hashtext(concat_ws('|', sample_time, pid, database, username, application, backend_type, state, wait_event, query_id)))::text from s),
	'all samples come back with their attributes');

create view load as
select *
from s
where category = 'foreground'
	and state in ('active', 'fastpath function call')
	and wait_key is distinct from 'Client:ClientRead';

-- key, avg, peak, p99, sessions of a key in a window by buckets of a minute
create function test.naive(key_column text, condition text, since timestamptz, until timestamptz)
returns table (key text, avg_aas numeric, peak_aas numeric, p99_aas numeric, peak_sessions bigint)
language plpgsql
as $$
begin
	return query execute format($sql$
		with o as (
			select date_trunc('minute', time) as b, sum(interval_ms)::numeric as ms
			from t where not failed and time >= $1 and time < $2
			group by 1
		), c as (
			select (%1$s)::text as k, date_trunc('minute', sample_time) as b, sum(weight_ms) as ms
			from load where sample_time >= $1 and sample_time < $2 and %2$s
			group by 1, 2
		), n as (
			select k, max(n) as n
			from (select (%1$s)::text as k, sample_time, count(*) as n from load
				where sample_time >= $1 and sample_time < $2 and %2$s group by 1, 2) x
			group by 1
		), v as (
			select k.k, o.b, coalesce(c.ms, 0) * 1.0000000000000000000000000000000 / o.ms as aas, coalesce(c.ms, 0) as ms
			from (select distinct k from c) k
			cross join o
			left join c on c.k is not distinct from k.k and c.b = o.b
		), a as (
			select k, sum(ms) as ms, max(aas) as peak, array_agg(aas order by aas) as v, count(*) as n
			from v group by k
		)
		select a.k, round(a.ms / (select sum(ms) from o), 4), round(a.peak, 4),
			round(a.v[99 * (a.n - 1) / 100 + 1] + (a.v[least(99 * (a.n - 1) / 100 + 2, a.n)] - a.v[99 * (a.n - 1) / 100 + 1]) * (99 * (a.n - 1) %% 100) / 100.0, 4),
			n.n
		from a
		join n on n.k is not distinct from a.k
		order by a.ms desc, a.k collate "C" nulls last$sql$, key_column, condition)
	using since, until;
end
$$;

create procedure test.compare(what text)
language plpgsql
as $$
declare
	v_window timestamptz[];
	v_dimension text[];
	v_filter text[];
	v_known text;
begin
	foreach v_window slice 1 in array array[
		['2026-03-01 21:00+00', '2026-03-02 01:00+00'],
		['2026-03-01 21:50:10+00', '2026-03-01 22:20:40+00'],
		['2026-03-01 21:50:10+00', '2026-03-02 00:10:40+00'],
		['2026-03-01 22:35+00', '2026-03-01 22:50+00']]::timestamptz[]
	loop
		foreach v_dimension slice 1 in array array[['wait_event', 'wait_key'], ['query_id', 'coalesce(query_id::text, ''(no query id)'')'],
			['application', 'application'], ['pid', 'pid'], ['state', 'state']]
		loop
			foreach v_filter slice 1 in array array[['', 'true'], [', database => ''db1''', 'database = ''db1'''],
				[', wait_event => ''!IO:Read1,!IO:Read2''', 'wait_key is distinct from ''IO:Read1'' and wait_key is distinct from ''IO:Read2'''],
				[', query_id => ''2,3,(null)''', '(query_id in (2, 3) or query_id is null)']]
			loop
				perform test.equal(
					test.rows(format('select key, avg_aas, peak_aas, p99_aas, peak_sessions from tacho.top(%L, %L, %L, n => null%s)',
						v_dimension[1], v_window[1], v_window[2], v_filter[1])),
					test.rows(format('select key, avg_aas, peak_aas, p99_aas, peak_sessions from test.naive(%L, %L, %L, %L)',
						v_dimension[2], v_filter[2], v_window[1], v_window[2])),
					format('%s: top(%s%s) from %s to %s', what, v_dimension[1], v_filter[1], v_window[1], v_window[2]));
			end loop;
		end loop;
		perform test.equal(
			test.rows(format('select avg_aas, peak_aas, p99_aas, peak_sessions from tacho.aas(%L, %L)', v_window[1], v_window[2])),
			test.rows(format('select avg_aas, peak_aas, p99_aas, peak_sessions from test.naive(''null'', ''true'', %L, %L)', v_window[1], v_window[2])),
			format('%s: aas from %s to %s', what, v_window[1], v_window[2]));
	end loop;
	perform test.equal(
		test.rows($q$select bucket_start, key, avg_aas, backend_seconds from tacho.timeline('2026-03-01 21:30+00', '2026-03-02 00:20:30+00', '10 minutes', by => 'wait_event', n => null)
			where avg_aas > 0$q$),
		test.rows($q$
			select c.b, c.k, round(c.ms::numeric / o.ms, 4), round(c.ms / 1000.0, 4)
			from (select date_bin('10 minutes', sample_time, '2026-01-01') as b, wait_key as k, sum(weight_ms) as ms from load group by 1, 2) c
			join (select date_bin('10 minutes', time, '2026-01-01') as b, sum(interval_ms)::numeric as ms from t where not failed group by 1) o using (b)
			join (select wait_key as k, sum(weight_ms) as total from load group by 1) r on r.k is not distinct from c.k
			order by c.b, r.total desc, c.k collate "C"$q$),
		what || ': timeline');
	-- compare() is top() twice
	foreach v_known in array array['wait_event', 'application'] loop
		perform test.equal(
			test.rows(format($q$
				select key, avg_delta, change, avg_aas_1, avg_aas_2, peak_aas_1, p99_aas_2, peak_sessions_2, pct_1, pct_2
				from tacho.compare(%L, '2026-03-01 21:50:10+00', null, '2026-03-01 22:50+00', '2026-03-01 23:10+00', n => null)
				order by key$q$, v_known)),
			test.rows(format($q$
				select
					coalesce(a.key, b.key),
					round(d.delta, 4),
					case when a.key_text is null then 'new' when b.key_text is null then 'gone' when d.delta > 0 then 'up' when d.delta < 0 then 'down' else 'same' end,
					coalesce(a.avg_aas, 0.0000), coalesce(b.avg_aas, 0.0000), coalesce(a.peak_aas, 0.0000),
					coalesce(b.p99_aas, 0.0000), coalesce(b.peak_sessions, 0), coalesce(a.pct, 0.0000), coalesce(b.pct, 0.0000)
				from (select coalesce(key, '(null)') as key_text, *
					from tacho.top(%1$L, '2026-03-01 21:50:10+00', '2026-03-01 22:10:10+00', n => null)) a
				full join (select coalesce(key, '(null)') as key_text, *
					from tacho.top(%1$L, '2026-03-01 22:50+00', '2026-03-01 23:10+00', n => null)) b on b.key_text = a.key_text
				cross join (select
					sum(interval_ms) filter (where time >= '2026-03-01 21:50:10+00' and time < '2026-03-01 22:10:10+00') / 1000.0 as s_1,
					sum(interval_ms) filter (where time >= '2026-03-01 22:50+00' and time < '2026-03-01 23:10+00') / 1000.0 as s_2
					from t where not failed) o
				cross join lateral (select coalesce(b.backend_seconds, 0) / o.s_2 - coalesce(a.backend_seconds, 0) / o.s_1 as delta) d
				order by 1$q$, v_known)),
			format('%s: compare %s', what, v_known));
	end loop;
	-- lives are the samples again, and have no holes
	perform test.equal(
		test.rows($q$select pid, state, wait_event, cpu, query_id, sum(seconds), sum(ticks)
			from tacho.sessions('2026-03-01 21:50:10+00', '2026-03-02 00:10:40+00', n => null) where kind = 'sampled' group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5$q$),
		test.rows($q$select pid, state, wait_event, cpu, query_id, round(sum(weight_ms) / 1000.0, 4), count(*)
			from s where sample_time >= '2026-03-01 21:50:10+00' and sample_time < '2026-03-02 00:10:40+00' group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5$q$),
		what || ': spans');
	perform test.equal(
		(select count(*)::text || ' ' || count(*) filter (where x.hole) from (
			select span_start <> lag(span_end) over (partition by pid order by span_start) as hole
			from tacho.sessions('2026-03-01 21:50:10+00', '2026-03-02 00:10:40+00', n => 2)) x),
		(select count(*)::text || ' 0' from tacho.sessions('2026-03-01 21:50:10+00', '2026-03-02 00:10:40+00', n => 2)),
		what || ': no holes in a life');
end
$$;

call test.compare('single ticks');
select tacho._pack(tacho._ms('2026-03-01 22:47+00'));
call test.compare('half packed');
select tacho._pack(tacho._ms('2026-03-03'));
select test.equal((select count(*)::text from tacho.hot), '0', 'all is packed');
select test.equal(
	(select sum(hashtext(x::text))::text from tacho.samples('2026-03-01', '2026-03-03', scope => 'all', n => null) x),
	(select sum(hashtext((sample_time, tick, pid, backend_start, leader, backend_type, category, database, username, application, client_addr, state,
		wait_event_type, wait_event, cpu, query_id, plan_id, tags, query_start, xact_start, state_change, xmin_age, xid_age, progress_command,
		progress_relation, blocked_by, weight_ms, query_text)::text))::text from s),
	'packing changes no sample');
call test.compare('packed');
-- the largest and the others, which hour rows find in another way
create view largest as
select w.since, d.dimension, t.key, t.avg_aas, t.peak_aas, t.p99_aas, t.pct, t.backend_seconds, case when t.key <> '(other)' then t.peak_sessions end as sessions
from (values (timestamptz '2026-03-01 21:00+00', timestamptz '2026-03-02 01:00+00'), ('2026-03-01 21:50:10+00', '2026-03-02 00:10:40+00')) w (since, until)
cross join (values ('wait_event'), ('query_id'), ('application'), ('pid'), ('username')) d (dimension)
cross join lateral tacho.top(d.dimension, w.since, w.until, n => 1) t
order by w.since, d.dimension, t.key collate "C";
create table largest_packed as select * from largest;
select tacho._roll_up_hours(tacho._ms('2026-03-03'));
select test.equal((select string_agg(source, ' ' order by period_start) from (
	select * from tacho.aas('2026-03-01 22:00+00', '2026-03-01 23:00+00')
	union all select * from tacho.aas('2026-03-01 22:10+00', '2026-03-01 23:10+00')
	union all select * from tacho.aas('2026-03-01 22:20+00', '2026-03-01 23:30+00', database => 'db1', username => 'user1')
	union all select * from tacho.aas('2026-03-01 22:30:10+00', '2026-03-02 00:30+00')) x), 'hour hour raw raw, hour', 'full minutes answer');
call test.compare('hours');
-- (parts of an hour do not have the most sessions of a query)
select test.equal((
	select string_agg(h::text, ' ')
	from (select *, row_number() over () as n from largest) h
	full join (select *, row_number() over () as n from largest_packed) p using (n)
	where row(h.since, h.dimension, h.key, h.avg_aas, h.peak_aas, h.p99_aas, h.pct, h.backend_seconds, h.sessions)
		is distinct from row(p.since, p.dimension, p.key, p.avg_aas, p.peak_aas, p.p99_aas, p.pct, p.backend_seconds, p.sessions)), null, 'largest and others');
