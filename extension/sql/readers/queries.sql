create function tacho.queries(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	order_by text default 'load',
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	key text,
	query_id bigint,
	query_text text,
	databases text,
	usernames text,
	avg_aas numeric,
	pct numeric,
	calls bigint,
	calls_per_second numeric,
	total_exec_time numeric,
	mean_exec_time numeric,
	p95_exec_time numeric,
	p99_exec_time numeric,
	rows bigint,
	shared_blks_read bigint,
	temp_blks_written bigint,
	errors bigint,
	running bigint,
	running_time numeric,
	last_call timestamptz,
	observed_pct numeric,
	counted_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 11
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.queries is
'The n largest queries of a window (the last hour by default), each with its load and its cost, and (other) for the rest. order_by is load, time, calls, mean, p95, rows, reads, temp, errors, running_time or last_call. Load (avg_aas, pct of all load) comes from the samples. The other measures come from the executions that ended in the window, in the listed databases and by the listed roles. Times are in ms, blocks have 8 kB: shared_blks_read were not in shared buffers, temp_blks_written went to temporary files. running is the number of executions that have not ended, running_time how long they have run, in ms. last_call is the time of the last call in the window, as far as the record knows it. (no query id) is load without a query, (evicted) is the cost of statements that made room for others. NULL means nothing was recorded: observed_pct of the window has samples, counted_pct has costs. Filters by query_id, database and username apply to load and cost; with another filter, cost covers all executions of the queries that have load. Dimensions and filters: {DIMENSIONS}. Example: select key, avg_aas, calls_per_second, mean_exec_time, query_text from tacho.queries(since => now() - interval ''15 minutes'');';
