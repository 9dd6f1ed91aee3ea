/*
 * upgrade.sql - replaces an installed SQL edition of any version by this one
 *
 *     psql -f sql/upgrade.sql          or   \i sql/upgrade.sql
 *
 * One transaction: it succeeds, or everything is as before. History, settings and the
 * rights of readers stay; ticks wait meanwhile and are missed slots. The owner of schema
 * tacho runs it. Until it commits it needs room for a second copy of the history. It
 * refuses if views depend on the schema, because they would be dropped with the old one.
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
	v_reader name;
	v_have constant integer := (select count(*) from tacho.ring);
	v_need constant integer := (select count(*) from tacho_old.ring);
	-- older versions kept constants of utility statements
	v_mask constant boolean := not exists (
		select from pg_attribute where attrelid = 'tacho_old.setting'::regclass and attname = 'utility_literals');
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
		execute format('insert into tacho.%1$I (%2$s) overriding system value select %3$s from tacho_old.%1$I on conflict do nothing',
			v_table, v_columns, v_values);
	end loop;
	insert into tacho.watermark (name, ms) values ('pack', 0) on conflict do nothing;
	perform setval('tacho.word_id_seq', (select max(id) from tacho.word)),
		setval('tacho.text_id_seq', (select max(id) from tacho.text)),
		setval('tacho.statement_id_seq', (select max(id) from tacho.statement)),
		setval('tacho.generation', (select max(generation) from tacho.ring));
	for v_reader in
		select distinct r.rolname
		from pg_namespace n
		cross join lateral aclexplode(n.nspacl) a
		join pg_roles r on r.oid = a.grantee
		where n.nspname = 'tacho_old'
			and a.grantee <> n.nspowner
	loop
		perform tacho.grant_reader(v_reader);
	end loop;
end
$$;
call tacho._take_over();
drop procedure tacho._take_over();
do $$
declare
	v_relations text;
begin
	select string_agg(distinct v.oid::regclass::text, ', ')
	into v_relations
	from pg_depend d
	join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
	join pg_class v on v.oid = w.ev_class
	where v.relnamespace <> 'tacho_old'::regnamespace
		and (d.refclassid = 'pg_proc'::regclass and d.refobjid in (select p.oid from pg_proc p where p.pronamespace = 'tacho_old'::regnamespace)
			or d.refclassid = 'pg_class'::regclass and d.refobjid in (select k.oid from pg_class k where k.relnamespace = 'tacho_old'::regnamespace));
	if v_relations is not null then
		raise exception 'views depend on schema tacho'
			using errcode = 'dependent_objects_still_exist',
				detail = format('They are %s.', v_relations),
				hint = 'Drop them, upgrade, and create them again.';
	end if;
end
$$;
drop schema tacho_old cascade;
select tacho._mark('settings changed', format('upgraded from %s to %s', :'old_version', version)) from tacho.setting;
commit;
\echo 'tacho: upgraded.'
