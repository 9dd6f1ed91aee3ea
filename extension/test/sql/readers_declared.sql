-- Declarations of the extension: signatures, comments, privileges. A change
-- here is a change of the interface.
create extension tacho;
\pset format unaligned
\pset tuples_only on

\set SHOW_CONTEXT never

-- every function, its arguments and its columns; the filters, which are made
-- from the catalog of dimensions, stand as one: the text arguments of summary
-- before its scope
create temp view declared as
select p.oid, p.proname, f.arguments,
		case when strpos(f.arguments, f.filters || ', scope ') > 0 then f.filters end as filters,
		pg_get_function_result(p.oid) as result
	from pg_proc p, lateral (
		select pg_get_function_arguments(p.oid) as arguments,
				substring(pg_get_function_arguments(s.oid)
					from '((?:\w+ text DEFAULT NULL::text, )*\w+ text DEFAULT NULL::text), scope ') as filters
			from pg_proc s
			where s.oid = 'tacho.summary'::regproc) f
	where p.pronamespace = 'tacho'::regnamespace
		and p.prosrc in ('tacho_reader', 'tacho_status');
select format(E'%s(\n    %s)\n  -> %s', proname,
		replace(replace(arguments, filters, 'FILTERS'), ', ', E',\n    '),
		replace(result, ', ', E',\n     '))
	from declared
	where filters is not null
	order by proname;
select format(E'%s(\n    %s)\n  -> %s', proname,
		replace(arguments, ', ', E',\n    '),
		replace(result, ', ', E',\n     '))
	from declared
	where filters is null
	order by proname;

-- functions with a scope and other filters than summary: none
select proname from declared where arguments like '%, scope %' and filters is null;

-- objects of the extension without a comment: none
select pg_describe_object(classid, objid, objsubid)
	from pg_depend
	where refclassid = 'pg_extension'::regclass and deptype = 'e'
		and refobjid = (select oid from pg_extension where extname = 'tacho')
		and classid <> 'pg_type'::regclass -- row types of views: members since 18
		and obj_description(objid, classid::regclass::text) is null;

-- functions whose comment lacks an example: none
select proname
	from pg_proc
	where pronamespace = 'tacho'::regnamespace
		and prosrc in ('tacho_reader', 'tacho_status')
		and obj_description(oid, 'pg_proc') not like '%Example: select % from tacho.' || proname || '(%;%';

-- the dimensions are listed where they can be used
select proname
	from declared
	where obj_description(oid, 'pg_proc')
		like '%: ' || array_to_string(array(select split_part(filter, ' ', 1) from unnest(string_to_array(filters, ', ')) as filter), ', ') || '. Example%'
	order by proname;
select obj_description('tacho'::regnamespace, 'pg_namespace');

-- attributes that all share
select distinct l.lanname, provolatile, proparallel, prosecdef, proretset,
		proconfig, prosrc
	from pg_proc p
	join pg_language l on l.oid = p.prolang
	where pronamespace = 'tacho'::regnamespace
		and prosrc in ('tacho_reader', 'tacho_status')
	order by prosrc;

-- the owner and pg_read_all_stats may execute them, PUBLIC may not
select proname, has_function_privilege('pg_read_all_stats', oid, 'execute') as stats,
		exists (select from aclexplode(proacl) where grantee = 0) as everybody
	from pg_proc
	where pronamespace = 'tacho'::regnamespace
		and prosrc in ('tacho_reader', 'tacho_status')
	order by proname;

-- the schema is dropped with the extension; an existing schema is refused
drop view declared;
drop extension tacho;
select to_regnamespace('tacho');
create role regress_tacho_squatter;
create schema tacho authorization regress_tacho_squatter;
create extension tacho;
drop schema tacho;
drop role regress_tacho_squatter;
create extension tacho;
drop extension tacho;
