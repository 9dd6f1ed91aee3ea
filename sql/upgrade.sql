/*
 * upgrade.sql - replaces an installed SQL edition of any version by this one
 *
 *     psql -f sql/upgrade.sql          or   \i sql/upgrade.sql
 *
 * One transaction: it succeeds, or everything is as before. History, settings and
 * grants stay; ticks wait meanwhile and are missed slots. The owner of schema tacho runs
 * it. Until it commits it needs room for a second copy of the history. It refuses if
 * anything outside the schema depends on it, because that would be dropped with the old
 * one. Objects that others have created inside the schema go.
 *
 * The old schema steps aside, and this version is installed. Then every table is filled
 * with the columns that it has in both versions. A version that changes the meaning of a
 * column adds its statement at the end. Single ticks are packed before, so only the
 * format of packs is carried over.
 */
\set ON_ERROR_STOP on
begin read write;
set local client_min_messages = warning;
set local search_path = pg_catalog;
select exists (select from pg_class where relname = 'setting' and relnamespace = to_regnamespace('tacho')) as installed \gset
\if :installed
\else
do $$ begin raise exception 'tacho is not installed here' using hint = 'Run sql/tacho.sql.'; end $$;
\endif
do $$
declare
	v_objects text;
begin
	select string_agg(distinct case when d.classid = 'pg_rewrite'::regclass
			then pg_describe_object('pg_class'::regclass, (select w.ev_class from pg_rewrite w where w.oid = d.objid), 0)
			else pg_describe_object(d.classid, d.objid, d.objsubid) end, ', ')
	into v_objects
	from pg_depend d
	cross join lateral pg_identify_object_as_address(d.classid, d.objid, d.objsubid) o
	where (d.refclassid = 'pg_namespace'::regclass and d.refobjid = 'tacho'::regnamespace
			or d.refclassid = 'pg_proc'::regclass and d.refobjid in (select p.oid from pg_proc p where p.pronamespace = 'tacho'::regnamespace)
			or d.refclassid = 'pg_type'::regclass and d.refobjid in (select t.oid from pg_type t where t.typnamespace = 'tacho'::regnamespace)
			or d.refclassid = 'pg_class'::regclass and d.refobjid in (select k.oid from pg_class k where k.relnamespace = 'tacho'::regnamespace))
		-- the first name is the schema; of a type it is the whole name
		and coalesce(o.object_names[1] <> 'pg_toast', true)
		and (o.type like 'publication%' or not coalesce(o.object_names[1] ~ '^tacho($|[.])', false));
	if v_objects is not null then
		raise exception 'other objects depend on schema tacho'
			using errcode = 'dependent_objects_still_exist',
				detail = format('They are %s.', v_objects),
				hint = 'Drop them, upgrade, and create them again.';
	end if;
end
$$;
lock table tacho.mutex_maintenance, tacho.mutex_sampler in exclusive mode;
select version as old_version from tacho.setting \gset
select tacho._pack(9223372036854775807) \g /dev/null
alter schema tacho rename to tacho_old;

\set upgrading
\ir tacho.sql

create procedure tacho._take_over()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
	v_table text;
	v_columns text;
	v_values text;
	v_have constant integer := (select count(*) from tacho.ring);
	v_need constant integer := (select count(*) from tacho_old.ring);
	-- older versions kept more constants; a version with the same functions has masked all texts
	v_mask constant boolean := (select coalesce(not (to_jsonb(s) ->> 'utility_literals')::boolean, true) from tacho_old.setting s)
		and not (
			select bool_and(coalesce(replace(pg_get_functiondef(o.oid), 'tacho_old.', 'tacho.') = pg_get_functiondef(p.oid), false))
			from pg_proc p
			left join pg_proc o on o.proname = p.proname and o.pronamespace = 'tacho_old'::regnamespace
			where p.pronamespace = 'tacho'::regnamespace
				and p.proname in ('_tokens', '_lexemes', '_place_after', '_mask', '_without_constants'));
begin
	call tacho._add_partitions(v_have, v_need - 1);
	if (select relpersistence from pg_class where oid = 'tacho_old.hot'::regclass) = 'u' then
		perform tacho.configure_ring(logged => false);
	end if;
	for v_table in
		select k.relname
		from pg_class k
		join pg_class o on o.relname = k.relname and o.relnamespace = 'tacho_old'::regnamespace
		where k.relnamespace = 'tacho'::regnamespace
			and k.relkind in ('r', 'p')
			and not k.relispartition
			and k.relname not in ('dimension', 'hot')
	loop
		select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
		into v_columns
		from pg_attribute a
		join pg_attribute o on o.attname = a.attname and o.attrelid = format('tacho_old.%I', v_table)::regclass
		where a.attrelid = format('tacho.%I', v_table)::regclass
			and a.attnum > 0
			and o.attnum > 0
			and not a.attisdropped
			and not o.attisdropped
			and not (v_table = 'setting' and a.attname = 'version');
		if v_table in ('setting', 'watermark', 'ring') then
			execute format('delete from tacho.%I', v_table);
		end if;
		v_values := v_columns;
		if v_table = 'text' and v_mask then
			v_values := replace(v_values, 'body', 'case when query_id = 0 then body else tacho._without_constants(body) end');
		end if;
		-- older versions kept the minute of a pass
		if v_table = 'statement_counters' and exists (select from pg_attribute
			where attrelid = 'tacho_old.statement_counters'::regclass and attname = 'minute_ms')
		then
			v_columns := v_columns || ', pass_ms';
			v_values := v_values || ', minute_ms';
		end if;
		execute format('insert into tacho.%1$I (%2$s) overriding system value select %3$s from tacho_old.%1$I on conflict do nothing',
			v_table, v_columns, v_values);
	end loop;
	insert into tacho.watermark (name, ms) values ('pack', 0) on conflict do nothing;
	perform setval('tacho.word_id_seq', (select max(id) from tacho.word)),
		setval('tacho.text_id_seq', (select max(id) from tacho.text)),
		setval('tacho.statement_id_seq', (select max(id) from tacho.statement)),
		setval('tacho.generation', (select max(generation) from tacho.ring));
end
$$;
-- A role that could read all of the history is a reader of this version. Every other
-- grant is given again on the object of the same name.
create procedure tacho._take_over_rights()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
	v_reader name;
	v_grant record;
	v_lost text;
begin
	for v_reader in
		select r.rolname
		from pg_class k
		cross join lateral aclexplode(k.relacl) a
		join pg_roles r on r.oid = a.grantee
		where k.oid in ('tacho_old.pack'::regclass, 'tacho_old.text'::regclass)
			and a.privilege_type = 'SELECT'
			and a.grantee <> k.relowner
		group by r.rolname
		having count(distinct k.oid) = 2
	loop
		perform tacho.grant_reader(v_reader);
	end loop;
	for v_grant in
		select o.kind, o.object, a.privilege_type, a.is_grantable, a.grantee as role, coalesce(quote_ident(r.rolname), 'public') as grantee
		from (
			select 'schema' as kind, 'tacho' as object, n.nspacl as acl, n.nspowner as owner
			from pg_namespace n
			where n.nspname = 'tacho_old'
			union all
			select case k.relkind when 'S' then 'sequence' else 'table' end, format('tacho.%I', k.relname), k.relacl, k.relowner
			from pg_class k
			where k.relnamespace = 'tacho_old'::regnamespace
			union all
			select 'routine', replace(p.oid::regprocedure::text, 'tacho_old.', 'tacho.'), p.proacl, p.proowner
			from pg_proc p
			where p.pronamespace = 'tacho_old'::regnamespace
		) o
		cross join lateral aclexplode(o.acl) a
		left join pg_roles r on r.oid = a.grantee
		where a.grantee <> o.owner
	loop
		-- before 16, to_regprocedure() raises an error for a type that is gone
		if (case v_grant.kind when 'schema' then true
			when 'routine' then exists (select from pg_proc p where p.pronamespace = 'tacho'::regnamespace and p.oid::regprocedure::text = v_grant.object)
			else to_regclass(v_grant.object) is not null end)
		then
			execute format('grant %s on %s %s to %s%s', v_grant.privilege_type, v_grant.kind, v_grant.object, v_grant.grantee,
				case when v_grant.is_grantable then ' with grant option' else '' end);
		elsif not has_table_privilege(v_grant.role, 'tacho.pack', 'select') then
			v_lost := concat_ws(', ', v_lost, format('%s on %s to %s', v_grant.privilege_type, v_grant.object, v_grant.grantee));
		end if;
	end loop;
	select concat_ws(', ', v_lost, string_agg(format('%s on column %s of tacho.%I to %s', a.privilege_type, c.attname, k.relname,
		coalesce(quote_ident(r.rolname), 'public')), ', '))
	into v_lost
	from pg_class k
	join pg_attribute c on c.attrelid = k.oid
	cross join lateral aclexplode(c.attacl) a
	left join pg_roles r on r.oid = a.grantee
	where k.relnamespace = 'tacho_old'::regnamespace;
	if v_lost <> '' then
		raise warning 'the upgrade did not keep some grants'
			using detail = format('They are %s.', v_lost);
	end if;
end
$$;
call tacho._take_over();
call tacho._take_over_rights();
drop procedure tacho._take_over();
drop procedure tacho._take_over_rights();
drop schema tacho_old cascade;
select tacho._mark('settings changed', format('upgraded from %s to %s', :'old_version', version)) from tacho.setting;
commit;
\echo 'tacho: upgraded.'
