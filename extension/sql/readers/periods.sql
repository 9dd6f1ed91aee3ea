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
