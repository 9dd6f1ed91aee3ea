/*
 * owner.sql - first part of both scripts of the extension
 *
 * The Makefile makes two scripts: tacho--VERSION.sql for CREATE EXTENSION, and
 * tacho--0.1--VERSION.sql for ALTER EXTENSION UPDATE. Both have these parts, in this order:
 * owner.sql, create.sql or update.sql, tacho.sql, the readers (readers/, a file for each),
 * grants.sql, statements.sql and end.sql. expand.awk replaces the markers for the
 * dimensions in them.
 */

-- complain if the script is sourced in psql, rather than via CREATE or ALTER EXTENSION
\echo Use "CREATE EXTENSION tacho" or "ALTER EXTENSION tacho UPDATE" to load this file. \quit

-- The search path of CREATE EXTENSION. The objects of 0.1 were in the schema of the
-- extension: its owner could have put operators there that are called instead of ours.
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- The objects belong to the role that initdb made, which cannot be dropped. So the
-- initial rights of the objects, which dumps compare with, never name a dropped role.
-- And if the role that created the extension leaves or is no longer a superuser, no
-- other role inherits its objects. A setting remembers the role before: end.sql sets it
-- back.
do $$
declare
	v_role name := (select r.rolname from pg_catalog.pg_roles r where r.oid = 10 and r.rolsuper);
begin
	if not pg_catalog.pg_has_role(session_user, v_role, 'member') then
		raise exception 'session role "%" must be a superuser to make the objects of extension "tacho"', session_user
			using errcode = 'insufficient_privilege',
				detail = pg_catalog.format('The objects are to belong to role "%s", which "%s" may not set.', v_role, session_user),
				hint = 'Connect as a superuser.';
	elsif v_role is not null then
		perform pg_catalog.set_config('create_tacho.role', pg_catalog.current_setting('role'), true);
		perform pg_catalog.set_config('role', v_role, true);
	end if;
end
$$;
