create function tacho.sessions(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	/* FILTERS */
	scope text default 'all',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	pid integer,
	backend_start timestamptz,
	backend_type text,
	database text,
	username text,
	application text,
	client_addr text,
	span_start timestamptz,
	span_end timestamptz,
	kind text,
	seconds numeric,
	ticks bigint,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	query_id bigint,
	plan_id bigint,
	blocked_by integer,
	query_start timestamptz,
	xact_start timestamptz,
	query_text text
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.sessions is
'The lives of the n sessions seen for the longest time: spans in which state, wait, query and blocker stayed the same, in order of time. Filters: {DIMENSIONS}. Example: select span_start, seconds, kind, state, wait_event, query_text from tacho.sessions(pid => ''4711'', since => now() - interval ''10 minutes'');';
