create function tacho.plan_changes(
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
	changed_at timestamptz,
	grain interval,
	time_lost numeric,
	ratio numeric,
	query_id bigint,
	database text,
	username text,
	toplevel boolean,
	query_text text,
	old_plan_id bigint,
	new_plan_id bigint,
	old_calls bigint,
	new_calls bigint,
	old_mean_exec_time numeric,
	new_mean_exec_time numeric,
	old_rows_per_call numeric,
	new_rows_per_call numeric,
	old_blocks_per_call numeric,
	new_blocks_per_call numeric,
	inputs text,
	back_at timestamptz,
	old_hint text,
	old_hint_lacks text,
	old_advice text,
	old_advice_lacks text
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.plan_changes is
'Statements that turned from one plan to another in a window (the last hour by default), the largest time_lost first. A change has at least 20 calls or 30 s of executions by either plan, which count from the change before to the next one. A statement that goes on with both plans, or had one of them three times, alternates, which is no change. If rows_per_call differs as well, the values of the parameters were probably others. inputs has the settings of the planner that differed between the two plans, and tables whose rows differed by a tenth or more. It also has tables that were analyzed in the ten minutes before the new plan. It says, too, if a custom plan became a generic one, or the reverse. If the statement ended with the old plan again, back_at has the time since which it is back. old_hint is a comment in front of the query with which the extension pg_hint_plan brings the old plan back; tacho never changes a plan. old_hint_lacks has what no hint says. old_advice has commands for the extension pg_stash_advice of PostgreSQL 19 that do the same, and old_advice_lacks has what no advice says. Filters: query_id, database, username, toplevel. Example: select * from tacho.plan_changes(since => now() - interval ''1 day'');';
