create function tacho._blocking(
	at timestamptz default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	tz text default null,
	node text default null
)
returns table (
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
	mode text,
	mode_held text,
	first_seen timestamptz,
	last_seen timestamptz
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho._blocking is
'The rows of tacho.blocking() without names of relations. Example: select * from tacho._blocking();';


create function tacho.blocking(
	at timestamptz default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	tz text default null,
	node text default null
)
returns table (
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
)
language sql volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
begin atomic
	select b.tree, b.level, b.kind, b.pid, b.backend_start, b.prepared_xid,
		b.prepared_gid, b.database, b.username, b.application, b.state,
		b.xact_age, b.query_id, b.query_text, b.blocked_seconds, b.waiters,
		b.depth, b.waited, b.via, b.locktype, b.object,
		b.lock_database, b.lock_relation,
		tacho._relation(b.lock_database, b.lock_relation),
		b.mode, b.mode_held, b.first_seen, b.last_seen
	from tacho._blocking(
		at => blocking.at,
		since => blocking.since,
		until => blocking.until,
		n => blocking.n,
		tz => blocking.tz,
		node => blocking.node
	) with ordinality b
	order by b.ordinality;
end;

comment on function tacho.blocking is
'Sessions that blocked others. For a window (the last hour by default): the n sessions at the heads of lock queues, by the seconds that others waited behind them. A waiter behind several heads counts at each. With "at": the tree of that moment, heads and all sessions behind them. The seconds of all rows add up to the waits of class Lock in top() with scope all, but such a waiter counts several times. Example: select tree, state, xact_age, blocked_seconds, waiters, object, relation, mode, query_text from tacho.blocking(since => now() - interval ''15 minutes''); or: select tree, waited, via, relation, mode, query_text from tacho.blocking(at => now());';
