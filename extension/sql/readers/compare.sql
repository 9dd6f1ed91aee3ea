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
'Two windows side by side: the load of each, and with a dimension the n keys that changed most, with (other) for the rest. avg_delta is second minus first, in sessions; change is new, gone, up, down or same. Without arguments it compares the last hour with the same hour yesterday. With one bound of window 1, that window is as long as window 2. The figures of a window that was not observed are NULL; note says so. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Dimensions and filters: {DIMENSIONS}. Example: select key, query_text, change, avg_delta, avg_aas_1, avg_aas_2, note from tacho.compare(''query_id'', since_1 => now() - interval ''2 hours'');';
