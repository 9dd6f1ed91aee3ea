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
'State of the recording: since when, how much space the history takes, and if nothing is recorded, why. Example: select * from tacho.status();';
