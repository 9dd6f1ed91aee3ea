/*
 * 58_blocking.sql - sessions that blocked others
 *
 * At each tick the sessions that wait are edges of a graph: waiter to blocker. A parallel
 * worker stands for its leader. Ticks with the same edges are one graph, so a queue that
 * lasts for an hour is walked once. The head of a queue is a session that waits for no
 * other; in a cycle it is the first member. A session whose blocker is unknown stands
 * behind the node (0, 1). So the seconds of all rows equal the lock waits of top(), except
 * that a waiter behind several heads counts several times.
 *
 * The lock, its mode and the start of the wait are known in sampled history, and in
 * imported history that has them. Otherwise these columns are null.
 */
create type tacho.node as (
	pid integer,
	start_us bigint
);
comment on type tacho.node is
'a session: process id and start time, 0 if unknown. For process 0 start_us tells the kind: below 0 a prepared transaction (-xid), 1 an unknown blocker, 0 a lost one';

create type tacho.edge as (
	graph bigint,
	weight_ms bigint,
	first_ms bigint,
	last_ms bigint,
	session bigint,
	waiter tacho.node,
	blocker tacho.node,
	lock tacho.awaited
);
comment on type tacho.edge is 'session, which stands for waiter, waits for blocker in all ticks of a graph; weight_ms is their weight';

create type tacho.reach as (
	graph bigint,
	waiter tacho.node,
	node tacho.node,
	steps integer
);
comment on type tacho.reach is 'waiter stands behind node, at a distance of steps';

create type tacho.head as (
	node tacho.node,
	is_cycle boolean,
	blocked_ms bigint,
	waiters bigint,
	depth bigint,
	first_ms bigint,
	last_ms bigint,
	lock tacho.awaited,
	prepared_gid text
);
comment on type tacho.head is 'the head of queues, or one in a tree, and those behind it; lock: what others wait for, in a tree what it waits for itself';

create type tacho.blocker as (
	tree text,
	level integer,
	kind text,
	pid integer,
	backend_start timestamptz,
	prepared_xid bigint,
	prepared_gid text,
	database text,
	username text,
	application text,
	state text,
	xact_age interval,
	query_id bigint,
	query_text text,
	blocked_seconds numeric,
	waiters bigint,
	depth bigint,
	waited interval,
	via text,
	locktype text,
	object text,
	lock_database bigint,
	lock_relation bigint,
	relation text,
	mode text,
	mode_held text,
	first_seen timestamptz,
	last_seen timestamptz
);
comment on type tacho.blocker is 'the columns of blocking()';

create function tacho._node(in_slot smallint, in_id integer)
returns tacho.node
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select row(
		case when s.leader = 0 then s.pid else s.leader end,
		coalesce(tacho._us(case when s.leader = 0 then s.backend_start else (
			select max(l.backend_start)
			from tacho.session l
			where l.slot = s.slot
				and l.pid = s.leader
				and l.leader = 0
				and l.backend_start <= s.backend_start) end), 0))::tacho.node
	from tacho.session s
	where s.slot = in_slot
		and s.id = in_id;
end;
comment on function tacho._node is 'the node of a row of table session';

-- Samples that wait for a lock or have a blocker. A blocker that was recorded at one
-- tick also counts at the earlier ticks of that wait. If no tick has a blocker, it is
-- -1.
create function tacho._lock_waits_sql(q tacho.question, slots smallint[])
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select format($sql$
		with waiting as materialized (
			select slot, array_agg(id) as ids, array_agg((id - 32769)::smallint) filter (where id <= 65536) as codes
			from tacho.activity
			where slot = any (%5$L)
				and wait_event_type = 'Lock'
				and marked & 1 = 0
			group by slot
		), found as (
			select p.slot, x.*
			from (%1$s) p
			left join waiting l on l.slot = p.slot
			cross join lateral (%2$s) a
			cross join lateral (
				select
					p.start_ms + coalesce(p.time_offsets[y.i], coalesce(p.tick_offsets[y.i], y.i - 1) * p.interval_ms) as ms,
					coalesce(p.intervals[y.i], p.interval_ms)::bigint as weight,
					coalesce(p.statuses[y.i], 1) as status,
					y.session,
					y.blocker,
					y.wait
				from (
					select a.at[s.n] %% p.n_ticks + 1 as i, p.sessions[a.at[s.n] / p.n_ticks + 1] as session, b.blocker, b.wait
					from generate_subscripts(a.at, 1) s (n)
					left join unnest(p.blocked_at, p.blockers, p.waits) b (n, blocker, wait) on b.n = s.n
					where b.n is not null or coalesce(p.what[s.n] + 32769, p.wide[s.n]) = any (l.ids)
				) y
			) x
			where (p.blocked_at is not null or p.what && l.codes or p.wide && l.ids)
				and x.ms >= %3$s
				and x.ms < %4$s
				and x.status <> 3
		), told as (
			select f.*, s.pid, s.backend_start,
				count(f.blocker) over (partition by f.slot, s.pid, s.backend_start order by f.ms desc) as later
			from found f
			join tacho.session s on s.slot = f.slot and s.id = f.session
		), nearest as (
			select t.*,
				first_value(t.blocker) over w as next_blocker,
				first_value(t.wait) over w as next_wait
			from told t
			window w as (partition by t.slot, t.pid, t.backend_start, t.later order by t.ms desc)
		)
		select n.slot, n.ms, n.weight, n.session,
			case when n.blocker is not null then n.blocker when l.id is not null then n.next_blocker else -1 end as blocker,
			case when n.blocker is not null then n.wait else l.id end as wait
		from nearest n
		left join tacho.awaited l on n.blocker is null and l.slot = n.slot and l.id = n.next_wait
			and l.wait_start > '-infinity' and tacho._ms(l.wait_start) <= n.ms$sql$,
		tacho._packs_sql(q, slots, 'slot, start_ms, n_ticks, interval_ms, tick_offsets, time_offsets, intervals, statuses, sessions, run_ats, run_lens, what, wide, blocked_at, blockers, waits'),
		tacho._positions_sql('p'),
		ceil(q.since_us / 1000.0)::bigint,
		ceil(q.until_us / 1000.0)::bigint,
		slots);
end;
comment on function tacho._lock_waits_sql is 'SQL: waiters for locks at each tick of a window, with their blockers';

create function tacho._edges(q tacho.question)
returns setof tacho.edge
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slots smallint[] := tacho._lock_slots(q.since_us, q.until_us);
begin
	if v_slots = '{}' then
		return;
	end if;
	return query execute format($sql$
		with ticks as (
			select x.slot, x.ms, min(x.weight) as weight, array_agg(x.session order by x.session) as sessions,
				array_agg(x.blocker order by x.session) as blockers,
				array_agg(x.wait order by x.session) as waits
			from (%1$s) x
			group by x.slot, x.ms
		), graphs as (
			select
				row_number() over () as graph,
				slot,
				sessions,
				blockers,
				waits,
				sum(weight)::bigint as weight,
				min(ms) as first_ms,
				max(ms) as last_ms
			from ticks
			group by slot, sessions, blockers, waits
		), edges as (
			select g.graph, g.slot, g.weight, g.first_ms, g.last_ms, e.session, e.blocker, l as lock
			from graphs g
			cross join lateral unnest(g.sessions, g.blockers, g.waits) e (session, blocker, wait)
			left join tacho.awaited l on l.slot = g.slot and l.id = e.wait
		), nodes as materialized (
			select x.slot, x.id, tacho._node(x.slot, x.id) as node
			from (select slot, session from edges union select slot, blocker from edges) x (slot, id)
		), known as (
			select e.*, w.node as waiter,
				case when (e.lock).prepared_xid is not null then row(0, -(e.lock).prepared_xid)::tacho.node
					when e.blocker = -1 then row(0, 1)::tacho.node
					else b.node end as behind
			from edges e
			join nodes w on w.slot = e.slot and w.id = e.session
			left join nodes b on b.slot = e.slot and b.id = e.blocker
		)
		-- what one of a parallel group waits for all wait for
		select k.graph, k.weight, k.first_ms, k.last_ms, k.session::bigint, k.waiter,
			case when k.blocker = -1 then first_value(k.behind) over (partition by k.graph, k.waiter
				order by k.blocker = -1, (k.behind).pid = 0, k.behind) else k.behind end,
			k.lock
		from known k$sql$,
		tacho._lock_waits_sql(q, v_slots));
end
$$;
comment on function tacho._edges is 'waiters and their blockers in a window';

-- Does not continue through waiters without a known blocker, unless in a tree.
create function tacho._reach(edges tacho.edge[], is_tree boolean)
returns setof tacho.reach
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with recursive e as materialized (
		select distinct graph, waiter, blocker
		from unnest(edges)
		where waiter <> blocker
	), walk as (
		select graph, waiter, blocker as node, array[blocker] as path
		from e
		union all
		select w.graph, w.waiter, e.blocker, w.path || e.blocker
		from walk w
		join e on e.graph = w.graph and e.waiter = w.node
		where e.blocker <> all (w.path)
			and (is_tree or e.blocker <> row(0, 1)::tacho.node)
	)
	select graph, waiter, node, min(cardinality(path))
	from walk
	group by graph, waiter, node;
end;
comment on function tacho._reach is 'everybody each waiter stands behind, with the least number of steps';

create function tacho._heads(edges tacho.edge[], reach tacho.reach[], is_tree boolean)
returns setof tacho.head
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	with r as materialized (
		select * from unnest(reach)
	), free as materialized (
		select r.graph, r.waiter, r.node, r.steps, false as is_cycle
		from r
		where (r.graph, r.node) not in (select graph, waiter from r where is_tree or node <> row(0, 1)::tacho.node)
	), heads as (
		select * from free
		union all (
			select distinct on (r.graph, r.waiter) r.graph, r.waiter, r.node, r.steps, true
			from r
			where (r.graph, r.node) in (select graph, waiter from r where waiter = node)
				and (r.graph, r.waiter) not in (select graph, waiter from free)
			order by r.graph, r.waiter, r.node
		)
	)
	select
		x.node,
		x.is_cycle,
		sum(x.waiters * x.weight_ms)::bigint,
		max(x.waiters),
		max(x.steps)::bigint,
		min(x.first_ms),
		max(x.last_ms),
		null::tacho.awaited,
		null::text
	from (
		select
			e.graph, e.weight_ms, e.first_ms, e.last_ms, h.node, h.is_cycle,
			count(distinct e.session) as waiters,
			max(h.steps) as steps
		from unnest(edges) e
		join heads h on h.graph = e.graph and h.waiter = e.waiter
		group by e.graph, e.weight_ms, e.first_ms, e.last_ms, h.node, h.is_cycle
	) x
	group by x.node, x.is_cycle;
end;
comment on function tacho._heads is 'the heads of all queues';

create function tacho._waited_ms(lock tacho.awaited, at_ms bigint)
returns bigint
language sql immutable parallel safe
return case when (lock).wait_start > '-infinity' then greatest(at_ms - tacho._ms((lock).wait_start), 0) end;
comment on function tacho._waited_ms is 'for how long somebody waited at a time';

create function tacho._relation_name(lock tacho.awaited)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select k.oid::regclass::text
	from pg_class k
	where k.oid = (lock).lock_relation::oid
		and (lock).is_imported is null
		and (lock).lock_database in (0, (select d.oid::bigint from pg_database d where d.datname = current_database()));
end;
comment on function tacho._relation_name is 'name of a relation of this database that was recorded here, as long as it exists';

-- The attributes of a head, from its last tick.
create function tacho._blocker_rows(heads tacho.head[], levels integer[])
returns setof tacho.blocker
language sql volatile
set search_path = pg_catalog, pg_temp
set client_min_messages = warning
begin atomic
	with h as materialized (
		select h.*, (h.node).pid as pid, levels[h.ordinality] as level,
			case when (h.node).pid <> 0 and (h.node).start_us > 0 then tacho._time((h.node).start_us) end as backend_start,
			case when (h.node).pid = 0 and (h.node).start_us < 0 then -(h.node).start_us end as xid
		from unnest(heads) with ordinality h
	), seen as materialized (
		select t.last_ms, s.*
		from (select last_ms, string_agg(pid::text, ',') as pids from h where pid <> 0 group by last_ms) t
		cross join lateral tacho._samples(tacho._time(t.last_ms * 1000), tacho._time(t.last_ms * 1000 + 1), null,
			jsonb_build_object('pid', t.pids), 'all', null, null, false) s
	)
	select
		repeat('  ', least(h.level, 100)) || case
			when h.is_cycle then 'cycle of ' || h.pid
			when h.xid is not null then coalesce(format('prepared ''%s''', h.prepared_gid), 'prepared xid ' || h.xid)
			when h.pid = 0 and (h.node).start_us = 1 then '(unknown)'
			when h.pid = 0 then '(lost)'
			else h.pid::text end,
		h.level,
		case when h.is_cycle then 'cycle' when h.xid is not null then 'prepared transaction' when h.pid = 0 and (h.node).start_us = 1 then 'unknown'
			when h.pid = 0 then 'lost' else 'session' end,
		nullif(h.pid, 0),
		h.backend_start,
		h.xid,
		h.prepared_gid,
		s.database,
		s.username,
		s.application,
		s.state,
		case when s.xact_start is not null then greatest(tacho._time(h.last_ms * 1000) - s.xact_start, '0') end,
		s.query_id,
		s.query_text,
		tacho._round4(h.blocked_ms, 1000),
		h.waiters,
		h.depth,
		case when h.level > 0 then tacho._waited_ms(h.lock, h.last_ms) * interval '1 millisecond' end,
		case when h.level > 0 then case when (h.lock).is_hard then 'lock' when not (h.lock).is_hard then 'queue' end end,
		(h.lock).locktype,
		(h.lock).object,
		(h.lock).lock_database,
		(h.lock).lock_relation,
		tacho._relation_name(h.lock),
		(h.lock).mode,
		(h.lock).mode_held,
		tacho._time(h.first_ms * 1000),
		tacho._time(h.last_ms * 1000)
	from h
	left join seen s on s.last_ms = h.last_ms and s.pid = h.pid and s.backend_start is not distinct from h.backend_start
	order by h.ordinality;
end;
comment on function tacho._blocker_rows is 'the rows of blocking()';

create function tacho._blocking_window(q tacho.question, n bigint)
returns setof tacho.blocker
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_edges constant tacho.edge[] := array(select e from tacho._edges(q) e);
	v_reach constant tacho.reach[] := array(select r from tacho._reach(v_edges, false) r);
begin
	return query
		select b.*
		from tacho._blocker_rows(
			array(
				select row(h.node, h.is_cycle, h.blocked_ms, h.waiters, h.depth, h.first_ms, h.last_ms, l.lock, (l.lock).prepared_gid)::tacho.head
				from tacho._heads(v_edges, v_reach, false) h
				left join lateral (
					-- what others waited for longest
					select (array_agg(e.lock))[1] as lock
					from unnest(v_edges) e
					where e.blocker = h.node and (e.lock).object is not null
					group by (e.lock).object, (e.lock).mode, (e.lock).mode_held, (e.lock).is_hard
					order by sum(e.weight_ms) desc, (e.lock).object desc
					limit 1
				) l on true
				order by h.blocked_ms desc, (h.node).pid = 0, (h.node).start_us = 0, h.node, h.is_cycle
				limit n),
			array_fill(0, array[cardinality(v_edges)])) b;
end
$$;
comment on function tacho._blocking_window is 'the heads of the queues of a window';

create function tacho._blocking_tree(edges tacho.edge[], n bigint)
returns setof tacho.blocker
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_reach constant tacho.reach[] := array(select r from tacho._reach(edges, true) r);
	v_people tacho.head[];
	v_levels integer[];
begin
	with recursive pairs as materialized (
		select distinct on (waiter, blocker) waiter, blocker, lock, tacho._waited_ms(lock, edges[1].last_ms) as waited_ms
		from unnest(edges)
		where waiter <> blocker
		order by waiter, blocker, tacho._waited_ms(lock, edges[1].last_ms) desc nulls last
	), behind as materialized (
		select *, row_number() over (partition by blocker order by waited_ms desc nulls last, waiter) as rank
		from pairs
	), waits as materialized (
		select waiter, max(waited_ms) as waited_ms from pairs group by waiter
	), below as materialized (
		select r.node, count(*) as waiters, max(r.steps)::bigint as depth, sum(w.waited_ms)::bigint as waited_ms
		from unnest(v_reach) r
		join waits w on w.waiter = r.waiter
		group by r.node
	), gids as materialized (
		select blocker, max((lock).prepared_gid) as gid from unnest(edges) group by blocker
	), tree as (
		select h.node, h.is_cycle, array[h.node] as path, 0 as level, null::tacho.awaited as lock,
			array[row_number() over (order by b.waiters desc, (h.node).pid = 0, (h.node).start_us = 0, h.node, h.is_cycle)] as place
		from tacho._heads(edges, v_reach, true) h
		join below b on b.node = h.node
		union all
		select w.waiter, false, t.path || w.waiter, t.level + 1, w.lock, t.place || w.rank
		from tree t
		join behind w on w.blocker = t.node
		where w.waiter <> all (t.path)
			and t.place[1] <= n
	)
	select
		array_agg(row(t.node, t.is_cycle, coalesce(b.waited_ms, 0), coalesce(b.waiters, 0), coalesce(b.depth, 0),
			edges[1].first_ms, edges[1].last_ms, t.lock, g.gid)::tacho.head order by t.place),
		array_agg(t.level order by t.place)
	into v_people, v_levels
	from tree t
	left join below b on b.node = t.node
	left join gids g on g.blocker = t.node
	where t.place[1] <= n;
	return query select b.* from tacho._blocker_rows(v_people, v_levels) b;
end
$$;
comment on function tacho._blocking_tree is 'heads and everybody behind them, at one tick';

create function tacho._last_observed_ms(q tacho.question)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slots constant smallint[] := tacho._lock_slots(q.since_us, q.until_us);
	v_ms bigint;
begin
	execute format($sql$
		select max(x.ms)
		from (%1$s) p
		cross join lateral (
			select p.start_ms + coalesce(p.time_offsets[i], coalesce(p.tick_offsets[i], i - 1) * p.interval_ms) as ms
			from generate_series(1, p.n_ticks) i
			where coalesce(p.statuses[i], 1) <> 3
		) x
		where x.ms >= %2$s
			and x.ms < %3$s$sql$,
		tacho._packs_sql(q, v_slots, 'start_ms, n_ticks, interval_ms, tick_offsets, time_offsets, statuses'),
		ceil(q.since_us / 1000.0)::bigint,
		ceil(q.until_us / 1000.0)::bigint)
	into v_ms;
	return v_ms;
end
$$;
comment on function tacho._last_observed_ms is 'the last tick of a window that did not fail';

create function tacho._blocking(at timestamptz, since timestamptz, until timestamptz, n bigint, tz text, node text)
returns setof tacho.blocker
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_n constant bigint := tacho._limit(n);
	q tacho.question;
	v_tick tacho.question;
	v_ms bigint;
begin
	if at is not null and (since is not null or until is not null) then
		raise exception 'at cannot be combined with since or until'
			using errcode = 'invalid_parameter_value',
				hint = 'Specify either a moment or a window.';
	end if;
	q := tacho._ask(coalesce(at - interval '60 seconds', since), coalesce(at + interval '1 microsecond', until), null, tz, node, false, null);
	q := tacho._select(q, node);
	perform tacho._only_samples(q);
	if at is null then
		return query select b.* from tacho._blocking_window(q, v_n) b;
		if not found then
			perform tacho._say_empty(q);
		end if;
		return;
	end if;
	v_ms := tacho._last_observed_ms(q);
	v_tick := q;
	v_tick.since_us := v_ms * 1000;
	v_tick.until_us := v_ms * 1000 + 1;
	if v_ms is not null then
		return query select b.* from tacho._blocking_tree(array(select e from tacho._edges(v_tick) e), v_n) b;
	end if;
	if v_ms is null or not found then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._blocking is 'blocking() itself';

call tacho._reader($decl$blocking(
	at timestamptz default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	tz text default null,
	node text default null
)
returns setof tacho.blocker rows 10$decl$,
'select * from tacho._blocking(blocking.at, blocking.since, blocking.until, blocking.n, blocking.tz, blocking.node)',
'Who blocked others. For a window (the last hour by default) the n sessions at the heads of lock queues, by the seconds others waited behind them. With "at" the tree of that moment: heads, and everybody behind them. kind is session, prepared transaction, cycle (a deadlock not yet noticed), unknown or lost. unknown means that the blocker was not seen, lost that it was gone or that a dictionary had no room for it. object is the lock that others wait for; in a tree, the lock that the session waits for. mode is the wanted mode, mode_held the mode of the blocker. via is lock if the blocker holds the lock, queue if it is only ahead in the queue. Example: select tree, state, xact_age, blocked_seconds, waiters, query_text from tacho.blocking(since => now() - interval ''15 minutes''); or: select tree, state, query_text from tacho.blocking(at => now());');
