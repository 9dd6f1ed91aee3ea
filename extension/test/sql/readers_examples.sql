-- The manual of \df+: every example in a comment runs. One that fails is
-- shown, and why.
create extension tacho;
set client_min_messages = warning;

create function pg_temp.run(example text)
returns text
language plpgsql
as $$
begin
	execute 'select count(*) from (' || rtrim(example, ';') || ') e';
	return 'ok';
exception when others then
	return sqlstate || ' ' || sqlerrm || ': ' || example;
end
$$;

create temp view object as
select 'pg_proc'::regclass as catalog, oid, proname as name,
		proretset or proargmodes is not null as has_columns
	from pg_proc
	where pronamespace = to_regnamespace('tacho')
union all
select 'pg_class'::regclass, oid, relname, true
	from pg_class
	where relnamespace = to_regnamespace('tacho') and relkind in ('r', 'v');

create temp table example as
select o.name, m[1] as query
	from object o
	join pg_description d on d.objoid = o.oid and d.classoid = o.catalog
	cross join regexp_matches(d.description, '(select [^;]*;)', 'g') m
	where d.description ~ 'Example: ';

select count(*) > 20 as has_examples from example;
select name, pg_temp.run(query) as result
	from example
	where pg_temp.run(query) <> 'ok'
	order by name;

-- what has columns and no example: none, but what is not called by people
select catalog, name
	from object
	where has_columns and name !~ '^_'
		and coalesce(obj_description(oid, catalog::text), '') !~ 'Example: select '
	order by name;

drop extension tacho;
