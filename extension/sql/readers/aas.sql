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
'Load (average active sessions) of one window, the last hour by default: average, peak and 99th percentile of its buckets. NULL means nothing was observed, 0 means no session was active. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Filters: {DIMENSIONS}. Example: select avg_aas, peak_aas from tacho.aas(since => now() - interval ''1 day'', database => ''shop'');';
