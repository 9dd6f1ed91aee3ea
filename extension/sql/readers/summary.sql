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
