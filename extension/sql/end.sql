-- The transaction may go on: it gets back the role that owner.sql has remembered.
select pg_catalog.set_config('role', pg_catalog.current_setting('create_tacho.role'), true)
	where nullif(pg_catalog.current_setting('create_tacho.role', true), '') is not null;
