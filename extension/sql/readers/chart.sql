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
'Load over time as bars stacked by the n largest keys of a dimension; the first row is the legend. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select bucket_start, aas, chart from tacho.chart(bucket => ''2 minutes'');';
