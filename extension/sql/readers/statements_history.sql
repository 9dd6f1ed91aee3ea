create function tacho.statements_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	n integer default 10,
	order_by text default 'time',
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
	key text,
	query_id bigint,
	database text,
	username text,
	toplevel boolean,
	query_text text,
	grain interval,
	coverage_pct numeric,
	pct numeric,
	calls_per_second numeric,
	mean_exec_time numeric,
	stddev_exec_time numeric,
	p50_exec_time numeric,
	p95_exec_time numeric,
	p99_exec_time numeric,
	running bigint,
	running_time numeric,
	last_call timestamptz,
	/* SUMS */
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.statements_history is
'Cost of statements in a window (the last hour by default), or in each bucket of it: a row for each of the n largest by order_by, and (other) for the rest. order_by is time, mean, p95, p99, cpu, blocks, running_time, or a counter such as calls. (evicted) is the sum of the statements that made room for others. The counters have the names of tacho.statements and count only the period, times in ms. NULL means nothing was recorded, 0 means the statement did not run. An execution counts when it has ended; until then it counts in running and running_time. last_call is the time of the last planning, execution or failure in the period. If the statement was called again soon after, it is the end of the interval of the record. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Filters: query_id, database, username, toplevel. Example: select period_start, calls_per_second, mean_exec_time, p95_exec_time from tacho.statements_history(since => now() - interval ''1 day'', bucket => ''10 minutes'', query_id => ''-5736284362818247'');';
