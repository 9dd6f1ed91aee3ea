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
'Load over time, a row for each bucket, also for empty ones. With "by", a row for each bucket and each of the n largest keys of that dimension, and (other). Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select * from tacho.timeline(bucket => ''5 minutes'', by => ''wait_event_type'');';
