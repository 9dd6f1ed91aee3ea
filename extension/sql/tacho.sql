/*
 * tacho.sql - the schema's comment, and what several readers need
 *
 * Every reader function is the same C function. The C function finds its SQL name, and
 * the names and types of its arguments, in pg_proc. It passes them on to
 * `tacho query NAME --argument=value ...`, and matches columns by name. A new reader is
 * a file readers/NAME.sql and a function in tape/src/query, and needs no C.
 */

comment on schema tacho is
'tacho: what the sessions of this server did and waited for. Start with: select * from tacho.periods();';

grant usage on schema tacho to public;


-- The name of a locked relation. Null unless the relation belongs to this database, or
-- is shared by all databases (lock_database 0), and still exists.
create function tacho._relation(lock_database bigint, lock_relation bigint)
returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select c.oid::regclass::text
		from pg_class c
		where c.oid = lock_relation::oid
			and lock_database in (
				0,
				(select d.oid::bigint from pg_database d where d.datname = current_database())
			);
end;

comment on function tacho._relation is
'The name of a locked relation, null when it is not one of this database. Example: select tacho._relation(0, 1262);';


-- A moment from its text. A text without a zone is read in zone tz, by default the
-- session's. A time of day is the last such time: at 02:00, '03:12' is yesterday's.
create function tacho._moment(at text, tz text)
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case
		when at ~ '^ *[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? *$' then (
			select case when (t.today + at::time) at time zone t.zone <= now()
					then (t.today + at::time) at time zone t.zone
					else (t.today - 1 + at::time) at time zone t.zone
				end
				from (
					select z.zone, (now() at time zone z.zone)::date as today
						from (select coalesce(tz, current_setting('timezone')) as zone) z
				) t
		)
		when tz is null or at !~ '[0-9]'
			or at ~* ':[0-9.]+ *([+-][0-9:]+|[a-z][a-z_/]*)$' and at !~* '[ap]m$'
			then at::timestamptz
		else at::timestamp at time zone tz
	end;
end;

comment on function tacho._moment is
'The moment that tacho.report() or tacho.changes() is about. Example: select tacho._moment(''03:12'', ''Europe/Berlin'');';
