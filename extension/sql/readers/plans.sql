create function tacho.plans(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	query_id text default null,
	database text default null,
	username text default null,
	toplevel text default null,
	tz text default null,
	node text default null
)
returns table (
	query_id bigint,
	plan_id bigint,
	database text,
	username text,
	toplevel boolean,
	query_text text,
	first_seen timestamptz,
	last_seen timestamptz,
	calls bigint,
	total_exec_time numeric,
	pct numeric,
	mean_exec_time numeric,
	max_exec_time numeric,
	rows bigint,
	rows_per_call numeric,
	shared_blks_hit bigint,
	shared_blks_read bigint,
	temp_blks_written bigint,
	blocks_per_call numeric,
	source text,
	plan_type text,
	cpu_time numeric,
	p95_exec_time numeric
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.plans is
'Cost of each plan of a statement in a window (the last hour by default): one row for each statement and plan, with its calls, times (ms), rows, blocks and CPU time (ms). p95_exec_time is of intervals in which the statement had no other plan. The statement that took longest comes first. The plans of a statement add up to its row of tacho.statements_history. Without query_id: the n statements that took longest among those with more than one plan. Filters: query_id, database, username, toplevel. Example: select * from tacho.plans(since => now() - interval ''1 day'', query_id => ''-5736284362818247'');';
