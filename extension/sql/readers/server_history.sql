create function tacho.server_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	metric text default null,
	object text default null,
	tz text default null,
	node text default null
)
returns table (
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
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.server_history is
'Measurements of the server and its host, read every tacho.server_interval: one row a metric and object for the window (the last hour by default), or for each bucket of it. The object is a database, replica, slot or kind of I/O; null = the server. A counter (transactions, blocks, bytes of log, CPU time) has its increase as total, and avg, min and max are per second. A state (load, memory, lag) has no total, and avg, min and max are its values. A reading belongs to the bucket it was taken in. Filters metric and object: a value, a list a,b, or !value. Buckets begin at multiples of their width on the clock of tz, by default of the time zone of the session. Example: select * from tacho.server_history(since => now() - interval ''10 minutes'', bucket => ''1 minute'', metric => ''xact_commit,wal_bytes'');';
