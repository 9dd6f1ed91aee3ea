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
'How long executions of statements took in a window (the last hour by default), or in each bucket of it: a row for each class of times that executions fell into, from exec_time_from up to exec_time_to (ms, powers of 2 microseconds; the first class begins at 0, the last one has no end; executions of 8.4 s and more of older recorders are a class without an end, too), with their number, as the histogram of tacho.statements counts them. A row without class has executions whose time was not counted (tacho.statements_histogram), or 0: nothing ran; calls NULL means nothing was recorded. The sum of calls equals calls of tacho.statements_history. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Filters: query_id, database, username, toplevel. Example: select * from tacho.latency_history(since => now() - interval ''1 day'', bucket => ''10 minutes'', query_id => ''-5736284362818247'');';
