create function tacho.status(
	node text default null
)
returns table (
	metric text,
	value text
)
language c volatile parallel restricted
cost 10000 rows 40
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_status';

comment on function tacho.status is
'What is being recorded, since when, how much space it takes, and why not if not. Example: select * from tacho.status();';
