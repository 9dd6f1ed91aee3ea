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
