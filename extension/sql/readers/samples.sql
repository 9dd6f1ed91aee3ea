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
	tags text,
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
'The samples: one row for each session and tick, newest first; n => null gives all rows of the window. Filters: {DIMENSIONS}. Example: select sample_time, pid, wait_event, query_text from tacho.samples(username => ''app'', n => 20);';
