/*
 * 70_export.sql - history as `tacho import` reads it
 *
 * Columns are the same as in `tacho export`; sql/export.sql writes them to files. Rows
 * come in the order of time while they are made. A call in FROM becomes part of the query
 * that calls it (no SET, no plpgsql). Packs are decoded one after the other, so at most
 * one is in memory. Times are texts in UTC, so that no setting of the session changes
 * them.
 *
 * The history has ages of transaction ids, not the ids. Exported ids are counted back
 * from next_xid, which is the same in each tick.
 *
 * Locks: none of its own. The caller first locks the ring against rotation, as
 * sql/export.sql does.
 */
create type tacho.exported_sample as (
	"time" text,
	tick bigint,
	interval_ms integer,
	tick_status text,
	tick_reason text,
	connections integer,
	vcpus numeric,
	next_xid bigint,
	pid integer,
	backend_start text,
	backend_type text,
	category text,
	database_oid oid,
	database text,
	user_oid oid,
	username text,
	application text,
	client_addr text,
	leader_pid integer,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	marked smallint,
	query_id bigint,
	plan_id bigint,
	text_key bigint,
	query_start text,
	xact_start text,
	state_change text,
	xmin bigint,
	xid bigint,
	progress_command text,
	progress_relation bigint,
	blocked_by integer,
	blocked_by_start text
);
comment on type tacho.exported_sample is 'the columns of export_sessions()';

create type tacho.exported_lock as (
	"time" text,
	tick bigint,
	waiter integer,
	waiter_start text,
	blocker integer,
	blocker_start text,
	blocker_xid bigint,
	blocker_gid text,
	hard integer,
	locktype text,
	lock_database bigint,
	field1 bigint,
	field2 bigint,
	field3 bigint,
	modes_held integer,
	mode_requested integer,
	wait_start text
);
comment on type tacho.exported_lock is 'the columns of export_locks()';

create type tacho.exported_marker as (
	"time" text,
	kind text,
	since text,
	until text,
	detail text,
	command text,
	object_class text,
	object_oid bigint,
	object_name text,
	database text,
	username text,
	application text,
	client_addr text,
	old_value text,
	new_value text,
	outcome text,
	left_out bigint
);
comment on type tacho.exported_marker is 'the columns of export_markers()';

-- Callers have datestyle ISO.
create function tacho._exported_time(ms bigint)
returns text
language sql stable
return (timestamp 'epoch' + ms * interval '1 millisecond')::text;
comment on function tacho._exported_time(bigint) is 'a time in UTC, without its zone';

create function tacho._exported_time(t timestamptz)
returns text
language sql stable
return (t at time zone 'UTC')::text;
comment on function tacho._exported_time(timestamptz) is 'a time in UTC, without its zone';

create function tacho._text_key(query_id bigint, body text)
returns bigint
language sql immutable
return hashtextextended(body, query_id) & 9223372036854775807 | 1;
comment on function tacho._text_key is 'number of a text in exports';

create function tacho._exported_packs(since_ms bigint, until_ms bigint)
returns setof tacho.pack
language sql stable
begin atomic
	(select *
	from tacho.pack p
	where p.start_ms < _exported_packs.until_ms
		and p.start_ms >= _exported_packs.since_ms - 3600000
		and p.last_ms >= _exported_packs.since_ms
	order by p.start_ms)
	union all
	(select * from tacho._hot_packs(_exported_packs.since_ms, _exported_packs.until_ms) h order by h.start_ms);
end;
comment on function tacho._exported_packs is 'packs with ticks in a window, then single ticks, which are later';

create function tacho._exported_ticks(p tacho.pack, since_ms bigint, until_ms bigint)
returns table (
	i integer,
	tick bigint,
	ms bigint
)
language sql stable
begin atomic
	select t.i, (p).first_tick + coalesce((p).tick_offsets[t.i], t.i - 1), t.ms
	from (
		select i, (p).start_ms + coalesce((p).time_offsets[i], coalesce((p).tick_offsets[i], i - 1) * (p).interval_ms) as ms
		from generate_series(1, (p).n_ticks::integer) i
	) t
	where t.ms >= _exported_ticks.since_ms
		and t.ms < _exported_ticks.until_ms;
end;
comment on function tacho._exported_ticks is 'the ticks of a pack that are in a window';

-- Sample n belongs to tick i and session s, a place in `sessions`.
create function tacho._exported_places(p tacho.pack)
returns table (
	n bigint,
	i integer,
	s integer
)
language sql stable
begin atomic
	select row_number() over (order by x.at), x.at % (p).n_ticks + 1, x.at / (p).n_ticks + 1
	from unnest((p).run_ats, (p).run_lens) r (at, n), generate_series(r.at::integer, r.at + r.n - 1) x (at);
end;
comment on function tacho._exported_places is 'tick and session of the samples of a pack';

-- The dictionary rows of a pack are read once, by key, however large the
-- dictionaries are. Then samples are joined with them by hashing.
create function tacho._exported_samples(p tacho.pack, since_ms bigint, until_ms bigint)
returns setof tacho.exported_sample
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
set enable_nestloop = off
set jit = off
begin atomic
	with ticks as materialized (
		select
			t.i,
			tacho._exported_time(t.ms) as time,
			t.tick,
			coalesce((p).intervals[t.i], (p).interval_ms) as interval_ms,
			(array['ok', 'late', 'failed'])[coalesce((p).statuses[t.i], 1)] as status,
			(p).reasons[t.i] as reason,
			(p).connections[t.i]::integer as connections,
			((p).vcpus_x100[t.i] / 100.0)::numeric(12, 2) as vcpus,
			case when coalesce((p).xmin_ages, (p).xid_ages) is not null then 6442450944 end as next_xid
		from tacho._exported_ticks(p, _exported_samples.since_ms, _exported_samples.until_ms) t
	), sessions as materialized (
		select d.n as place, tacho._exported_time(s.backend_start) as start, s.*
		from unnest((p).sessions) with ordinality d (id, n)
		cross join lateral (select * from tacho.session x where x.slot = (p).slot and x.id = d.id limit 1) s
	), activities as materialized (
		select a.*, x.text_key
		from (select distinct coalesce(what + 32769, wide) as id from unnest((p).what, (p).wide) u (what, wide)) d
		cross join lateral (select * from tacho.activity x where x.slot = (p).slot and x.id = d.id limit 1) a
		left join lateral (select tacho._text_key(0, t.body) as text_key from tacho.text t where t.id = a.text_id and a.text_id <> 0 limit 1) x on true
	), blockers as materialized (
		select b.n, nullif(s.pid, 0) as pid, case when s.pid <> 0 then tacho._exported_time(s.backend_start) end as start
		from unnest((p).blocked_at, (p).blockers) b (n, id)
		cross join lateral (select * from tacho.session x where x.slot = (p).slot and x.id = b.id limit 1) s
	), samples as materialized (
		select x.*, coalesce(v.what + 32769, v.wide) as activity, coalesce(width_bucket(x.n::integer, (p).start_at), x.n) as start, v.xmin_age, v.xid_age
		from tacho._exported_places(p) x
		join unnest((p).what, (p).wide, (p).xmin_ages, (p).xid_ages) with ordinality v (what, wide, xmin_age, xid_age, n) on v.n = x.n
	), starts as materialized (
		select
			v.n,
			tacho._exported_time((p).start_ms + v.query_start) as query_start,
			tacho._exported_time((p).start_ms + v.xact_start) as xact_start,
			tacho._exported_time((p).start_ms + v.state_change) as state_change
		from unnest((p).query_starts, (p).xact_starts, (p).state_changes) with ordinality v (query_start, xact_start, state_change, n)
	)
	select
		t.time, t.tick, t.interval_ms, t.status, t.reason, t.connections, t.vcpus, t.next_xid,
		s.pid, s.start, s.backend_type, s.category, s.database_oid, s.database, s.user_oid, s.username, s.application, s.client_addr,
		nullif(s.leader, 0),
		nullif(a.state, ''), nullif(a.wait_event_type, ''), nullif(a.wait_event, ''), nullif(a.cpu, ''),
		a.marked, nullif(a.query_id, 0), nullif(a.plan_id, 0), a.text_key,
		x.query_start, x.xact_start, x.state_change,
		2147483648 - u.xmin_age, 2147483648 - u.xid_age,
		nullif(a.progress_command, ''), nullif(a.progress_relation, 0),
		b.pid, b.start
	from ticks t
	left join samples u on u.i = t.i
	left join sessions s on s.place = u.s
	left join activities a on a.id = u.activity
	left join blockers b on b.n = u.n
	left join starts x on x.n = u.start
	order by t.i, u.n;
end;
comment on function tacho._exported_samples is 'the rows of a pack, a tick without samples is one';

-- Numbers of a locked object, read from the text of _lock_object(); none without an
-- object.
create function tacho._lock_fields(locktype text, object text)
returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp
begin atomic
	select case
		when locktype = 'frozenid' or cardinality(v) is null then array[v[1]]
		when locktype in ('transactionid', 'virtualxid', 'spectoken') then null::bigint || v
		when locktype = 'advisory' and cardinality(v) = 1 then array[null, v[1] >> 32 & 4294967295, v[1] & 4294967295, 1]
		when locktype = 'advisory' then array[null, v[1] & 4294967295, v[2] & 4294967295, 2]
		else v
	end
	from (
		select array_agg(m.v[1]::bigint order by m.n) as v
		from regexp_matches(substr(object, length(locktype) + 1), '-?[0-9]+', 'g') with ordinality m (v, n)
	) x;
end;
comment on function tacho._lock_fields is 'database and three fields of a lock tag, from the object as text';

create function tacho._exported_locks(p tacho.pack, since_ms bigint, until_ms bigint)
returns setof tacho.exported_lock
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
set jit = off
begin atomic
	select
		tacho._exported_time(t.ms),
		t.tick,
		s.pid,
		tacho._exported_time(s.backend_start),
		nullif(bs.pid, 0),
		case when bs.pid <> 0 then tacho._exported_time(bs.backend_start) end,
		w.prepared_xid,
		w.prepared_gid,
		case when w.is_hard then 1 else 0 end,
		w.locktype,
		f.v[1],
		f.v[2],
		f.v[3],
		f.v[4],
		1 << array_position(tacho._lock_modes(), w.mode_held),
		array_position(tacho._lock_modes(), w.mode),
		case when w.wait_start <> '-infinity' then tacho._exported_time(w.wait_start) end
	from unnest((p).blocked_at, (p).blockers, (p).waits) b (n, id, wait)
	join tacho._exported_places(p) u on u.n = b.n
	join tacho._exported_ticks(p, _exported_locks.since_ms, _exported_locks.until_ms) t on t.i = u.i
	join tacho.session s on s.slot = (p).slot and s.id = (p).sessions[u.s]
	join tacho.session bs on bs.slot = (p).slot and bs.id = b.id
	join tacho.awaited w on w.slot = (p).slot and w.id = b.wait
	cross join lateral (select tacho._lock_fields(w.locktype, w.object) as v) f
	order by t.i, u.n;
end;
comment on function tacho._exported_locks is 'the lock waits of a pack';

create function tacho._export_ms(t timestamptz, open_end bigint)
returns bigint
language sql immutable
return case when isfinite(t) then ceil(extract(epoch from t at time zone 'UTC') * 1000)::bigint else open_end end;
comment on function tacho._export_ms is 'the first ms that is not before a time; of one that is null or infinite the end that is open';

create function tacho.export_sessions(since timestamptz default null, until timestamptz default null)
returns setof tacho.exported_sample
language sql stable
begin atomic
	select x.*
	from tacho._exported_packs(tacho._export_ms(export_sessions.since, -9000000000000000), tacho._export_ms(export_sessions.until, 9000000000000000)) p
	cross join lateral tacho._exported_samples(p, tacho._export_ms(export_sessions.since, -9000000000000000),
		tacho._export_ms(export_sessions.until, 9000000000000000)) x;
end;
comment on function tacho.export_sessions is
'Samples and ticks that are kept, oldest first, as "tacho import sessions" reads them; sql/export.sql writes all there is to files. Example: \copy (select * from tacho.export_sessions()) to ''sessions.csv'' csv header';

create function tacho.export_locks(since timestamptz default null, until timestamptz default null)
returns setof tacho.exported_lock
language sql stable
begin atomic
	select x.*
	from tacho._exported_packs(tacho._export_ms(export_locks.since, -9000000000000000), tacho._export_ms(export_locks.until, 9000000000000000)) p
	cross join lateral tacho._exported_locks(p, tacho._export_ms(export_locks.since, -9000000000000000),
		tacho._export_ms(export_locks.until, 9000000000000000)) x
	where p.waits is not null;
end;
comment on function tacho.export_locks is 'Lock waits of sessions, in the format of "tacho import sessions --with locks=FILE". Example: \copy (select * from tacho.export_locks()) to ''locks.csv'' csv header';

-- Texts have no time; they are exported before the first tick.
create function tacho.export_texts()
returns table (
	"time" text,
	text_key bigint,
	query_id bigint,
	database text,
	username text,
	query_text text
)
language sql stable
begin atomic
	select '1970-01-01 00:00:00', tacho._text_key(t.query_id, t.body), nullif(t.query_id, 0), t.database, t.username, t.body
	from tacho.text t
	order by t.id;
end;
comment on function tacho.export_texts is 'Query texts, as "tacho import sessions --with texts=FILE" reads them.';

create function tacho.export_markers(since timestamptz default null, until timestamptz default null)
returns setof tacho.exported_marker
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
begin atomic
	select tacho._exported_time(m.marker_time), m.kind, tacho._exported_time(m.period_start), tacho._exported_time(m.period_end), m.detail,
		m.command, m.object_class, m.object_oid, m.object_name, m.database, m.username, m.application, m.client_addr,
		m.old_value, m.new_value, m.outcome, m.left_out
	from tacho.marker m
	where m.marker_time >= coalesce(export_markers.since, '-infinity')
		and m.marker_time < coalesce(export_markers.until, 'infinity')
	order by m.marker_time;
end;
comment on function tacho.export_markers is 'Events that explain the history, as "tacho import sessions --with markers=FILE" reads them.';

-- A row without a statement says that the rows of its time are complete. Times of
-- statements are in units of 10 us. Times of I/O are one sum here but four there, so
-- they are left out.
create function tacho.export_statements(since timestamptz default null, until timestamptz default null)
returns table (
	"time" text,
	elapsed_ms bigint,
	user_oid oid,
	username text,
	database_oid oid,
	database text,
	query_id bigint,
	toplevel integer,
	calls bigint,
	rows bigint,
	total_exec_time bigint,
	total_plan_time bigint,
	shared_blks_hit bigint,
	shared_blks_read bigint,
	shared_blks_dirtied bigint,
	shared_blks_written bigint,
	temp_blks_read bigint,
	temp_blks_written bigint,
	wal_bytes bigint
)
language sql stable
begin atomic
	select to_char(timestamp 'epoch' + c.pass_ms * interval '1 millisecond', 'YYYY-MM-DD HH24:MI:SS.MS'), c.elapsed_ms,
		s.user_oid, s.username, s.database_oid, s.database, s.query_id, s.toplevel::integer,
		c.calls, c.rows, c.total_exec_us / 10, c.total_plan_us / 10, c.shared_blks_hit, c.shared_blks_read, c.shared_blks_dirtied,
		c.shared_blks_written, c.temp_blks_read, c.temp_blks_written, c.wal_bytes
	from (
		select * from tacho.statement_counters
		union all
		select null, d.pass_ms, d.elapsed_ms, null, null, null, null, null, null, null, null, null, null, null, null
		from (select distinct x.pass_ms, x.elapsed_ms from tacho.statement_counters x) d
	) c
	left join tacho.statement s on s.id = c.statement
	where c.pass_ms >= tacho._export_ms(export_statements.since, -9000000000000000)
		and c.pass_ms < tacho._export_ms(export_statements.until, 9000000000000000)
	order by c.pass_ms, c.statement nulls first;
end;
comment on function tacho.export_statements is 'Cost of statements by minute, in the format of "tacho import sessions --with statements=FILE".';
