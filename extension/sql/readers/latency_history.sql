create function tacho.latency_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	query_id text default null,
	database text default null,
	username text default null,
	toplevel text default null,
	tz text default null,
	node text default null
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	exec_time_from numeric,
	exec_time_to numeric,
	calls bigint,
	grain interval,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.latency_history is
'Durations of executions of statements in a window (the last hour by default), or in each bucket of it. A row has the number of executions in a class of durations, as in the histogram of tacho.statements. A class goes from exec_time_from to exec_time_to (ms, powers of 2 microseconds). The first class begins at 0, the last one has no end. Older recorders have one class without an end for executions of 8.4 s and more. A row without class has executions whose time was not counted (tacho.statements_histogram), or 0 if nothing ran. calls is NULL if nothing was recorded. The sum of calls equals calls of tacho.statements_history. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Filters: query_id, database, username, toplevel. Example: select * from tacho.latency_history(since => now() - interval ''1 day'', bucket => ''10 minutes'', query_id => ''-5736284362818247'');';
