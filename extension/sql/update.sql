-- The library is newer than the setting tacho.comment_tags. Without it, the server runs a
-- library that lacks functions of these objects.
do $$
begin
	if pg_catalog.current_setting('tacho.sample_interval', true) is not null
		and pg_catalog.current_setting('tacho.comment_tags', true) is null then
		raise exception 'the server runs an older library of tacho'
			using errcode = 'object_not_in_prerequisite_state',
				hint = 'Restart the server, then update the extension.';
	end if;
end
$$;

-- Nothing else may be in the schema: objects there could be called instead of ours.
do $$
declare
	v_others text := (
		select pg_catalog.string_agg(i.type || ' ' || i.identity, e'\n' order by i.type, i.identity)
			from pg_catalog.pg_depend d
			cross join pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) i
			where d.refclassid = 'pg_catalog.pg_namespace'::regclass
				and d.refobjid = 'tacho'::regnamespace
				and d.classid <> 'pg_catalog.pg_extension'::regclass
				and not exists (
					select
						from pg_catalog.pg_depend m
						join pg_catalog.pg_extension e on e.oid = m.refobjid and e.extname = 'tacho'
						where m.refclassid = 'pg_catalog.pg_extension'::regclass
							and m.classid = d.classid
							and m.objid = d.objid
							and m.deptype = 'e'
				)
	);
begin
	if v_others is not null then
		raise exception 'schema "tacho" has objects that do not belong to extension "tacho"'
			using errcode = 'object_not_in_prerequisite_state',
				detail = v_others,
				hint = 'Move them to another schema or drop them, then update the extension.';
	end if;
end
$$;

-- All objects have the rights of new ones then. A grant in this script would belong to the
-- extension, and dumps would leave it out. So a warning has the statements that bring
-- back the rights from before.
do $$
declare
	v_rights text := (
		with object as (
			select 'pg_catalog.pg_proc'::regclass as class, p.oid, 'FUNCTION' as kind, pg_catalog.format('tacho.%I', p.proname) as name,
					p.proacl as rights, pg_catalog.acldefault('f', p.proowner) as usual, p.proowner as owner
				from pg_catalog.pg_proc p
				where p.pronamespace = 'tacho'::regnamespace
			union all
			select 'pg_catalog.pg_class'::regclass, c.oid, 'TABLE', pg_catalog.format('tacho.%I', c.relname),
					c.relacl, pg_catalog.acldefault('r', c.relowner), c.relowner
				from pg_catalog.pg_class c
				where c.relnamespace = 'tacho'::regnamespace and c.relkind = 'v'
			union all
			select 'pg_catalog.pg_namespace'::regclass, n.oid, 'SCHEMA', 'tacho',
					n.nspacl, array[pg_catalog.makeaclitem(0, n.nspowner, 'USAGE', false)], n.nspowner
				from pg_catalog.pg_namespace n
				where n.nspname = 'tacho'
		), item as (
			select o.kind, o.name, a.is_initial, a.grantee, a.privilege_type, pg_catalog.bool_or(a.is_grantable) as is_grantable
				from object o
				left join pg_catalog.pg_init_privs i on i.classoid = o.class and i.objoid = o.oid and i.objsubid = 0
				cross join lateral (
					select false as is_initial, e.grantee, e.privilege_type, e.is_grantable
						from pg_catalog.aclexplode(coalesce(o.rights, o.usual)) e
					union all
					select true, e.grantee, e.privilege_type, e.is_grantable
						from pg_catalog.aclexplode(coalesce(i.initprivs, o.usual)) e
						where e.grantee <> e.grantor and (e.grantee = 0 or e.grantee in (select r.oid from pg_catalog.pg_roles r))
				) a
				where a.grantee <> o.owner
				group by o.kind, o.name, a.is_initial, a.grantee, a.privilege_type
		)
		select pg_catalog.string_agg(
				pg_catalog.format(
					case when a.is_initial then 'REVOKE %1$s ON %2$s %3$s FROM %4$s;' else 'GRANT %1$s ON %2$s %3$s TO %4$s%5$s;' end,
					a.privilege_type, a.kind, a.name,
					case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end,
					case when a.is_grantable then ' WITH GRANT OPTION' else '' end),
				e'\n' order by a.name, a.is_initial, a.grantee, a.privilege_type)
			from item a
			where not exists (
				select
					from item f
					where f.kind = a.kind
						and f.name = a.name
						and f.is_initial <> a.is_initial
						and f.grantee = a.grantee
						and f.privilege_type = a.privilege_type
						and (a.is_initial or f.is_grantable >= a.is_grantable)
			)
	);
begin
	if v_rights is not null then
		raise warning 'objects of extension "tacho" have only the rights of new ones'
			using detail = v_rights,
				hint = 'To bring back the rights from before, run these statements.';
	end if;
end
$$;

-- The update replaces all objects, since most have other arguments or columns.
do $$
declare
	v_drop text;
	v_detail text;
begin
	for v_drop in
		select pg_catalog.format('drop %s %s', i.type, pg_catalog.string_agg(i.identity, ', '))
			from pg_catalog.pg_depend d
			join pg_catalog.pg_extension e on e.oid = d.refobjid and e.extname = 'tacho'
			cross join pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) i
			where d.refclassid = 'pg_catalog.pg_extension'::regclass
				and d.deptype = 'e'
				and d.classid in ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_class'::regclass)
			group by i.type
			order by i.type <> 'view' -- views use functions
	loop
		execute v_drop;
	end loop;
exception
	when dependent_objects_still_exist then
		get stacked diagnostics v_detail = pg_exception_detail;
		raise exception 'other objects depend on objects of extension "tacho", which the update replaces'
			using errcode = 'dependent_objects_still_exist',
				detail = v_detail,
				hint = 'Save their definitions, drop them, update the extension, and create them again.';
end
$$;

-- Scripts of 0.1 were in schema "tacho", so a dump was refused: CREATE EXTENSION ... WITH
-- SCHEMA tacho. Now the extension is in pg_catalog, and the schema is its member.
do $$
declare
	v_extension oid := (select e.oid from pg_catalog.pg_extension e where e.extname = 'tacho');
	v_grantee text;
begin
	execute pg_catalog.format('alter schema tacho owner to %I', current_user);
	for v_grantee in
		select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end
			from pg_catalog.pg_namespace n
			cross join pg_catalog.aclexplode(n.nspacl) a
			where n.nspname = 'tacho' and a.grantee <> n.nspowner
	loop
		execute pg_catalog.format('revoke all on schema tacho from %s cascade', v_grantee);
	end loop;
	if (select e.extnamespace = 'tacho'::regnamespace from pg_catalog.pg_extension e where e.oid = v_extension) then
		update pg_catalog.pg_extension set extnamespace = 'pg_catalog'::regnamespace where oid = v_extension;
		delete from pg_catalog.pg_depend
			where classid = 'pg_catalog.pg_extension'::regclass
				and objid = v_extension
				and refclassid = 'pg_catalog.pg_namespace'::regclass;
		alter extension tacho add schema tacho;
	end if;
end
$$;
