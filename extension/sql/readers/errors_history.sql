create function tacho.errors_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	n integer default 10,
	sqlstate text default null,
	query_id text default null,
	database text default null,
	username text default null,
	toplevel text default null,
	tz text default null,
	node text default null
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	sqlstate text,
	condition text,
	class_name text,
	key text,
	query_id bigint,
	database text,
	username text,
	toplevel boolean,
	query_text text,
	coverage_pct numeric,
	errors bigint,
	errors_per_second numeric
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.errors_history is
'Errors of statements by SQLSTATE in a window (the last hour by default), or in each bucket of it: the n pairs of a statement and an SQLSTATE that had most errors. Rows with key (other) add up the other statements of each SQLSTATE. A statement is a query of a user in a database, top level or nested. Cancellations are errors with 57014. Errors before the server has identified a statement, such as a syntax error, have key (no query id). A record, one each tacho.statements_interval, tells apart 1,024 pairs of a statement and an SQLSTATE; further errors have no SQLSTATE. A record belongs to the bucket with its middle. Filters: sqlstate (a code or a class of two characters), query_id, database, username, toplevel. Example: select * from tacho.errors_history(since => now() - interval ''1 day'', sqlstate => ''23505,40'');';
