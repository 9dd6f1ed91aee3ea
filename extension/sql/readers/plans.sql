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
	source text
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.plans is
'What each plan of a statement has cost in a window (the last hour by default): one row for each statement and plan, the statement with the most time first, with its calls, times (ms), rows and blocks; the plans of a statement add up to its row of tacho.statements_history. Without query_id: the n statements with the most time that had more than one plan. pct is the share of the statement''s time. first_seen is the begin of the plan''s first execution that was counted, also before the window, or else of the first interval that has it; last_seen the end of the last interval that has it. max_exec_time is known where each execution was counted for its plan, which begins with the second plan of a statement. source says where plan_id is from: counters, samples (the statement had one plan, and samples show which), or both; or why it is null. Filters: query_id, database, username, toplevel. Example: select * from tacho.plans(since => now() - interval ''1 day'', query_id => ''-5736284362818247'');';
