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
'The n largest keys of a dimension by load, and (other) for the rest. order_by is avg, peak, p99 or sessions; "by" splits each key by a second dimension. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, avg_aas, pct from tacho.top(''query_id'', wait_event_type => ''Lock'');';
