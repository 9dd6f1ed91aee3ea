/*
 * tacho.sql - the SQL objects of the extension
 *
 * The working copy: the Makefile makes tacho--VERSION.sql from it with
 * expand.awk, which replaces the markers for the dimensions (see there).
 *
 * Every reader function is the same C function. It finds out its name and
 * the names and types of its arguments from pg_proc and passes them on to
 * `tacho query NAME --argument=value ...`; columns are matched by name. A new
 * reader function or argument is declared here, answered in
 * tape/src/query, and needs no C.
 */

-- complain if the script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION tacho" to load this file. \quit

-- A schema made beforehand by somebody else could hold anything, and its
-- owner could replace our functions.
do $$
begin
	if not exists (
		select
			from pg_catalog.pg_namespace n
			join pg_catalog.pg_roles r on r.oid = n.nspowner
			where n.nspname = '@extschema@'
				and (r.rolname = current_user or r.rolsuper)
	) then
		raise exception 'schema "@extschema@" belongs to another role'
			using errcode = 'insufficient_privilege',
				hint = 'Drop it or change its owner, then create the extension again.';
	end if;
end
$$;

comment on schema tacho is
'tacho: what the sessions of this server did and waited for. Start with: select * from tacho.periods();';

grant usage on schema tacho to public;


create function tacho.status(
	node text default null
)
returns table (
	metric text,
	value text
)
language c volatile parallel restricted
cost 10000 rows 40
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_status';

comment on function tacho.status is
'What is being recorded, since when, how much space it takes, and why not if not. Example: select * from tacho.status();';


create function tacho.periods(
	until timestamptz default null,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period text,
	period_start timestamptz,
	period_end timestamptz,
	source text,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 6
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.periods is
'Load (average active sessions) of the last minute, 5 minutes, hour, day, week and month: the place to start. Example: select * from tacho.periods();';


create function tacho.aas(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default '1 minute',
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	source text,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.aas is
'Load (average active sessions) of one window, the last hour by default: average, peak and 99th percentile of its buckets. NULL means nothing was observed, 0 means nobody was active. Filters: {DIMENSIONS}. Example: select avg_aas, peak_aas from tacho.aas(since => now() - interval ''1 day'', database => ''shop'');';


create function tacho.timeline(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	by text default null,
	n integer default 10,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	bucket_start timestamptz,
	key text,
	source text,
	avg_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 60
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.timeline is
'Load over time, a row for each bucket, also for empty ones. With "by", a row for each bucket and each of the n largest keys of that dimension, and (other). Dimensions and filters: {DIMENSIONS}. Example: select * from tacho.timeline(bucket => ''5 minutes'', by => ''wait_event_type'');';


create function tacho.top(
	dimension text,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 10,
	bucket interval default '1 minute',
	order_by text default 'avg',
	by text default null,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	key text,
	by_key text,
	query_text text,
	source text,
	period_start timestamptz,
	period_end timestamptz,
	grain interval,
	avg_aas numeric,
	peak_aas numeric,
	p99_aas numeric,
	peak_sessions bigint,
	backend_seconds numeric,
	pct numeric,
	vcpus numeric,
	ticks_expected bigint,
	ticks_observed bigint,
	ticks_failed bigint,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 11
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.top is
'The n largest keys of a dimension by load, and (other) for the rest; order_by is avg, peak, p99 or sessions; "by" splits each key by a second dimension. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, avg_aas, pct from tacho.top(''query_id'', wait_event_type => ''Lock'');';


create function tacho.compare(
	dimension text default null,
	since_1 timestamptz default null,
	until_1 timestamptz default null,
	since_2 timestamptz default null,
	until_2 timestamptz default null,
	n integer default 10,
	bucket interval default '1 minute',
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	key text,
	query_text text,
	change text,
	avg_delta numeric,
	avg_aas_1 numeric,
	avg_aas_2 numeric,
	peak_aas_1 numeric,
	peak_aas_2 numeric,
	p99_aas_1 numeric,
	p99_aas_2 numeric,
	peak_sessions_1 bigint,
	peak_sessions_2 bigint,
	backend_seconds_1 numeric,
	backend_seconds_2 numeric,
	pct_1 numeric,
	pct_2 numeric,
	vcpus_1 numeric,
	vcpus_2 numeric,
	source_1 text,
	source_2 text,
	grain interval,
	period_start_1 timestamptz,
	period_end_1 timestamptz,
	period_start_2 timestamptz,
	period_end_2 timestamptz,
	coverage_pct_1 numeric,
	coverage_pct_2 numeric,
	note text
)
language c volatile parallel restricted
cost 10000 rows 11
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.compare is
'Two windows side by side: the load of each, and with a dimension the n keys that changed most (avg_delta = second minus first, in sessions), with (other) for the rest; change is new, gone, up, down or same. Without arguments the last hour against the same hour yesterday; with one bound of window 1, that window is as long as window 2. A window that was not observed reads NULL; note says so, and when coverage differs. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, change, avg_delta, avg_aas_1, avg_aas_2, note from tacho.compare(''query_id'', since_1 => now() - interval ''2 hours'');';


create function tacho.samples(
	since timestamptz default null,
	until timestamptz default null,
	n integer default 100,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	sample_time timestamptz,
	tick bigint,
	pid integer,
	backend_start timestamptz,
	leader integer,
	backend_type text,
	category text,
	database text,
	username text,
	application text,
	client_addr text,
	state text,
	wait_event_type text,
	wait_event text,
	cpu text,
	query_id bigint,
	plan_id bigint,
	query_start timestamptz,
	xact_start timestamptz,
	state_change timestamptz,
	xmin_age bigint,
	xid_age bigint,
	progress_command text,
	progress_relation bigint,
	blocked_by integer,
	weight_ms bigint,
	query_text text
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.samples is
'What each session was doing at each tick, newest first; n => null gives all rows of the window. Filters: {DIMENSIONS}. Example: select sample_time, pid, wait_event, query_text from tacho.samples(username => ''app'', n => 20);';


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
'The lives of the n sessions seen for the longest time: spans in which state, wait, query and blocker stayed the same, in order of time. cpu lists the kinds of CPU activity within a span, the most frequent first. kind tells what a row is: sampled; idle (observed, not seen); no match (not seen among what scope and filters let through); gap (nothing was observed). query_start and xact_start are those at the begin of the span. Filters: {DIMENSIONS}. Example: select span_start, seconds, kind, state, wait_event, query_text from tacho.sessions(pid => ''4711'', since => now() - interval ''10 minutes'');';


create function tacho.chart(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	by text default 'wait_event_type',
	n integer default 3,
	width integer default 40,
	color boolean default false,
	ascii boolean default false,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	bucket_start timestamptz,
	aas numeric,
	detail text,
	chart text
)
language c volatile parallel restricted
cost 10000 rows 61
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.chart is
'Load over time as bars stacked by the n largest keys of a dimension; the first row is the legend. Dimensions and filters: {DIMENSIONS}. Example: select bucket_start, aas, chart from tacho.chart(bucket => ''2 minutes'');';


create function tacho.summary(
	since timestamptz default null,
	until timestamptz default null,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	metric text,
	value text
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.summary is
'A window in a few lines: load, coverage, longest gaps and their cause, top waits, top queries. Example: select * from tacho.summary(since => now() - interval ''15 minutes'');';


-- A relation has a name here if the lock is one of this database, or of a
-- relation that all databases share, and the relation still exists.
create function tacho._relation(lock_database bigint, lock_relation bigint)
returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select c.oid::regclass::text
		from pg_class c
		where c.oid = lock_relation::oid
			and lock_database in (
				0,
				(select d.oid::bigint from pg_database d where d.datname = current_database())
			);
end;

comment on function tacho._relation is
'The name of a locked relation, null when it is not one of this database. Example: select tacho._relation(0, 1262);';


create function tacho._report(
	at timestamptz default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 5,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
)
language c volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho._report is
'What tacho.report() shows, at a full timestamp. Example: select * from tacho._report();';


-- The locked relations of a part of the report get their names.
create function tacho._with_relations(report jsonb, part text)
returns jsonb
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case jsonb_typeof(report -> part)
		when 'array' then jsonb_set(report, array[part], coalesce(
			(
				select jsonb_agg(
						e.value || jsonb_build_object(
							'relation',
							tacho._relation(
								(e.value ->> 'lock_database')::bigint,
								(e.value ->> 'lock_relation')::bigint
							)
						)
						order by e.ordinality
					)
					from jsonb_array_elements(report -> part) with ordinality e
			),
			'[]'
		))
		else report
	end;
end;

comment on function tacho._with_relations is
'A part of a report, blockers or tree, with the names of locked relations. Example: select tacho._with_relations(report, ''blockers'') from tacho._report();';


-- A time of day is the last one in the time zone of the session.
create function tacho.report(
	at text default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default 5,
	/* FILTERS */
	scope text default 'load',
	tz text default null,
	node text default null,
	by_leader boolean default false
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	report jsonb
)
language sql volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
begin atomic
	select r.period_start, r.period_end,
		tacho._with_relations(tacho._with_relations(r.report, 'blockers'), 'tree')
	from tacho._report(
		at => case
			when report.at ~ '^ *[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? *$' then (
				select t.today - case when t.today > now() then interval '1 day' else interval '0' end
					from (select (current_date + report.at::time)::timestamptz as today) t
			)
			else report.at::timestamptz
		end,
		since => report.since,
		until => report.until,
		n => report.n,
		/* FILTERS OF report */
		scope => report.scope,
		tz => report.tz,
		node => report.node,
		by_leader => report.by_leader
	) r;
end;

comment on function tacho.report is
'What was the database doing? One document about a window, or with "at" about half an hour around a moment ("03:12" is the last one): load against vCPUs, timeline by wait class, the n largest waits, queries (with texts and what they waited for), databases, users and applications, blockers (with names of locked relations of this database), what changed against the same time the day before (or just before), markers, coverage and gaps; "compat" has the keys of pg_ash''s report. Filters: {DIMENSIONS}; blockers and markers are those of the whole server. The command tacho report makes a page of it. Example: select jsonb_pretty(report -> ''queries'') from tacho.report(at => ''03:12'');';


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
'What tacho.blocking() shows, without names of relations. Example: select * from tacho._blocking();';


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
'Who blocked others. For a window (the last hour by default) the n sessions at the heads of lock queues, by the seconds others waited behind them; a waiter behind several heads counts at each. With "at" the tree of that moment: heads, and everybody behind them. kind is session, prepared transaction, cycle (a deadlock not yet noticed) or lost (the holder was gone); via says whether a lock is held or only asked for ahead in the queue. Example: select tree, state, xact_age, blocked_seconds, waiters, object, relation, mode, query_text from tacho.blocking(since => now() - interval ''15 minutes''); or: select tree, waited, via, relation, mode, query_text from tacho.blocking(at => now());';


create function tacho.markers(
	since timestamptz default null,
	until timestamptz default null,
	node text default null
)
returns table (
	marker_time timestamptz,
	kind text,
	period_start timestamptz,
	period_end timestamptz,
	detail text
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.markers is
'Events that explain the history: starts, stops, gaps and their cause, changed settings, steps of the clock. Example: select * from tacho.markers(since => now() - interval ''1 day'');';


create function tacho.server_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	metric text default null,
	object text default null,
	tz text default null,
	node text default null
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	metric text,
	object text,
	unit text,
	avg numeric,
	min numeric,
	max numeric,
	total numeric,
	readings bigint
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.server_history is
'Measurements of the server and its host, read every tacho.server_interval: one row a metric and object (database, replica, slot; null = the server) for the window, the last hour by default, or for each bucket of it. What is counted (transactions, blocks, bytes of log, CPU time) has the total in its unit, and avg, min and max per second; of what is a state (load, memory, lag) they are values. A reading belongs to the bucket it was taken in. Filters metric and object: a value, a list a,b, or !value. Example: select * from tacho.server_history(since => now() - interval ''10 minutes'', bucket => ''1 minute'', metric => ''xact_commit,wal_bytes'');';


create function tacho._overhead(
	out metric text,
	out value numeric,
	out unit text
)
returns setof record
language c volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_overhead';

comment on function tacho._overhead is
'What overhead() shows, without shared memory.';


create function tacho.overhead()
returns table (
	metric text,
	value numeric,
	unit text
)
language sql volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
begin atomic
	select o.metric, o.value, o.unit
		from tacho._overhead() o
	union all
	select 'shared_memory: ' || a.name, a.allocated_size, 'bytes'
		from pg_catalog.pg_shmem_allocations a
		where a.name like 'tacho%';
end;

comment on function tacho.overhead is
'What tacho itself costs at the moment: CPU of the sampler and the writer since the sampler started and at that pace in an hour, CPU of a tick (quantiles to a fifth), memory, bytes sent to the writer, bytes it wrote to disk, bytes kept. NULL is not known. Example: select * from tacho.overhead();';


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
	/* SUMS */
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.statements_history is
'What statements have cost in a window (the last hour by default), or in each bucket of it: a row for each of the n largest by order_by (time, mean, p95, p99, cpu, blocks, or a counter such as calls), and (other) for the rest; (evicted) is what made room for other statements. Counters are those of tacho.statements, times in ms, as counted in the period; pct is the share of execution time. NULL means nothing was recorded, 0 means it did not run. grain is the longest interval of the record, coverage_pct how much of the period it covers. key joins tacho.top(''query_id''). Filters: query_id, database, username, toplevel. Example: select period_start, calls_per_second, mean_exec_time, p95_exec_time from tacho.statements_history(since => now() - interval ''1 day'', bucket => ''10 minutes'', query_id => ''-5736284362818247'');';


-- Members of pg_read_all_stats see all sessions. Another role that is granted
-- EXECUTE sees its own sessions and the texts of its own queries only.
revoke execute on all functions in schema tacho from public;
grant execute on all functions in schema tacho to pg_read_all_stats;
