/*
 * 65_server.sql - the server as a whole: known to be unknown
 */
create type tacho.reading as (
	period_start timestamptz,
	period_end timestamptz,
	metric text,
	object text,
	unit text,
	avg numeric,
	min numeric,
	max numeric,
	total numeric,
	readings bigint
);
comment on type tacho.reading is 'the columns of server_history()';

create function tacho._server_history(since timestamptz, until timestamptz, bucket interval, tz text, node text)
returns setof tacho.reading
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	q tacho.question := tacho._ask(since, until, null, tz, node, false, null);
begin
	if bucket is not null then
		perform tacho._buckets(q, bucket, tz, 100000);
	end if;
	perform tacho._select(q, node);
	raise notice 'the SQL edition does not record the server and its host'
		using hint = 'The extension does; aas() and timeline() have the load here.';
end
$$;
comment on function tacho._server_history is 'checks its arguments';

call tacho._reader($decl$server_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	metric text default null,
	object text default null,
	tz text default null,
	node text default null
)
returns setof tacho.reading rows 1$decl$,
'select * from tacho._server_history(server_history.since, server_history.until, server_history.bucket, server_history.tz, server_history.node)',
'Measurements of the server and its host, in the extension. The SQL edition records sessions only: no rows, and a notice that says so.');
