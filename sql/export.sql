/*
 * export.sql - writes the history as files that `tacho import` reads
 *
 *     psql -f sql/export.sql                      into the present directory
 *     psql -v directory=DIR -f sql/export.sql
 *
 * For a move from the SQL edition to the extension; see README.md. One
 * snapshot, taken while the ring is locked against rotation; ticks go on.
 * Rows are written while they are read. Whoever may read the history may
 * export it.
 */
\set ON_ERROR_STOP on
\if :{?directory}
\else
\set directory .
\endif
begin isolation level repeatable read read only;
-- before the snapshot, which the first query takes
lock table tacho.session, tacho.activity, tacho.awaited, tacho.pack in access share mode;
set local client_encoding = 'UTF8';
copy (select * from tacho.export_sessions()) to stdout (format csv, header) \g :directory/sessions.csv
copy (select * from tacho.export_locks()) to stdout (format csv, header) \g :directory/locks.csv
copy (select * from tacho.export_texts()) to stdout (format csv, header) \g :directory/texts.csv
copy (select * from tacho.export_markers()) to stdout (format csv, header) \g :directory/markers.csv
copy (select * from tacho.export_statements()) to stdout (format csv, header) \g :directory/statements.csv
\echo 'tacho: written. To import, as the user of the server that will record, before it does:'
select concat_ws(' ', 'tacho import sessions', :'directory' || '/sessions.csv',
	(select string_agg(format('--with %s=%s/%1$s.csv', kind, :'directory'), ' ' order by n)
		from unnest('{locks, texts, markers, statements}'::text[]) with ordinality k (kind, n)),
	'--node', node,
	'--system', (select system_identifier from pg_control_system()),
	'--tape DIR')
from tacho.setting \g (tuples_only=on format=unaligned)
select format('Samples before %s are summed up by hour only, which nothing else reads: they stay behind.',
	tacho._time_text(coalesce((select min(start_ms) from tacho.pack), (select min(start_ms) from tacho.hot)) * 1000))
where exists (
	select from tacho.hour_tick h
	where h.last_ms < coalesce((select min(start_ms) from tacho.pack), (select min(start_ms) from tacho.hot), 9000000000000000)) \g (tuples_only=on format=unaligned)
commit;
