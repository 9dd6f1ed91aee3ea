/*
 * tacho.sql - first part of the SQL objects of the extension
 *
 * The Makefile makes tacho--VERSION.sql of four parts, in this order: this file, the
 * readers (readers/, a file for each), grants.sql and statements.sql. expand.awk
 * replaces the markers for the dimensions in them. This file declares what several
 * readers need.
 *
 * Every reader function is the same C function. The C function finds its SQL name, and
 * the names and types of its arguments, in pg_proc. It passes them on to
 * `tacho query NAME --argument=value ...`, and matches columns by name. A new reader is
 * a file readers/NAME.sql and a function in tape/src/query, and needs no C.
 */

-- complain if the script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION tacho" to load this file. \quit

-- The objects belong to the role that initdb made, which cannot be dropped. So the
-- initial rights of the objects, which dumps compare with, never name a dropped role.
-- And if the role that created the extension leaves or is no longer a superuser, no
-- other role inherits its objects. A setting remembers the role before: the last
-- statement of the script (statements.sql) sets it back.
do $$
declare
	v_role name := (select r.rolname from pg_catalog.pg_roles r where r.oid = 10 and r.rolsuper);
begin
	if not pg_catalog.pg_has_role(session_user, v_role, 'member') then
		raise exception 'session role "%" must be a superuser to create extension "tacho"', session_user
			using errcode = 'insufficient_privilege',
				detail = pg_catalog.format('The objects are to belong to role "%s", which "%s" may not set.', v_role, session_user),
				hint = 'Connect as a superuser.';
	elsif v_role is not null then
		perform pg_catalog.set_config('create_tacho.role', pg_catalog.current_setting('role'), true);
		perform pg_catalog.set_config('role', v_role, true);
	end if;
end
$$;

-- The schema is made here, so it is a member of the extension, and a dump leaves it out
-- whoever owns it then. A schema that exists already is refused: its maker could have
-- put anything into it, and its owner could add functions that are called instead of
-- ours. The SQL edition has the same schema and functions, so it is refused, too.
do $$
begin
	if exists (
		select
			from pg_catalog.pg_class c
			where c.relname = 'setting'
				and c.relnamespace = pg_catalog.to_regnamespace('tacho')
	) then
		raise exception 'the SQL edition of tacho is installed in this database'
			using errcode = 'duplicate_object',
				detail = 'It has schema "tacho" and functions of the same names.',
				hint = 'To keep its history, export it with sql/export.sql, call tacho.uninstall(''yes''), create the extension again and give the files to "tacho import". Or create the extension in another database.';
	elsif pg_catalog.to_regnamespace('tacho') is not null then
		raise exception 'schema "tacho" already exists'
			using errcode = 'duplicate_schema',
				detail = (
					select pg_catalog.format('It belongs to role "%s". The extension makes its schema itself, so that no other role can have put anything into it.', r.rolname)
						from pg_catalog.pg_namespace n
						join pg_catalog.pg_roles r on r.oid = n.nspowner
						where n.nspname = 'tacho'),
				hint = 'Rename or drop it, then create the extension again.';
	end if;
end
$$;

create schema tacho;

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
