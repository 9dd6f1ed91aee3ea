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
