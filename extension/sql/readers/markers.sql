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
	detail text,
	command text,
	object_class text,
	object_oid bigint,
	object_name text,
	database text,
	username text,
	application text,
	client_addr text,
	old_value text,
	new_value text,
	outcome text,
	left_out bigint
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.markers is
'Events that explain the history: starts, stops, gaps and their cause, changed settings, changes of the schema, steps of the clock. Changes have their object, role, client and values in columns; detail is the sentence of all. Example: select * from tacho.markers(since => now() - interval ''1 day'');';
