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

create temp table example as
select p.proname, m[1] as query
	from pg_proc p
	join pg_description d on d.objoid = p.oid and d.classoid = 'pg_proc'::regclass
	cross join regexp_matches(d.description, '(select [^;]*;)', 'g') m
	where p.pronamespace = 'tacho'::regnamespace
		and d.description ~ 'Example: ';

select count(*) > 15 as has_examples from example;
select proname, pg_temp.run(query) as result
	from example
	where pg_temp.run(query) <> 'ok'
	order by proname;

drop extension tacho;
