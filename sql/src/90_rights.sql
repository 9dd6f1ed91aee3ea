/*
 * 90_rights.sql - rights of roles; the last file
 *
 * PUBLIC gets nothing. grant_reader() gives a role what it needs to read all of the
 * history. Everything else is for the owner.
 */
create function tacho._reader_functions()
returns setof regprocedure
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select p.oid::regprocedure
	from pg_proc p
	where p.pronamespace = 'tacho'::regnamespace
		and p.prokind in ('f', 'a')
		and p.provolatile in ('i', 's')
	union
	select p.oid::regprocedure
	from pg_proc p
	where p.pronamespace = 'tacho'::regnamespace
		and p.proname in ('aas', 'periods', 'top', 'compare', 'timeline', 'chart', 'samples', 'sessions', 'blocking', 'summary', 'report', 'markers', 'status', 'statements_history', 'server_history', 'explain',
			'_aas', '_periods', '_top', '_compare', '_compare_rows', '_side', '_sessions', '_seen_sessions', '_doings', '_unobserved', '_lives', '_report', '_report_json', '_report_before', '_report_timeline', '_report_keys', '_report_queries', '_report_blockers', '_report_tree', '_report_changes', '_selected_load', '_compat', '_server_history', '_explain', '_timeline', '_chart', '_samples', '_blocking', '_blocking_window', '_blocking_tree', '_blocker_rows', '_edges', '_last_observed_ms', '_summary', '_markers', '_status', '_statements_history',
			'_load', '_ask', '_window', '_top_lines', '_top_keys', '_cells', '_pieces', '_rank_hours', '_outside', '_observed', '_raw_cells', '_raw_observed', '_lock_slots', '_last_tick', '_say_empty');
end;
comment on function tacho._reader_functions is 'functions a reader needs';

create function tacho._reader_tables()
returns setof regclass
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select k.oid::regclass
	from pg_class k
	where k.relnamespace = 'tacho'::regnamespace
		and k.relkind in ('r', 'p', 'S', 'v')
		and k.relname !~ '^(mutex_|statement_last|text_missing)';
end;
comment on function tacho._reader_tables is 'tables a reader needs';

create function tacho.grant_reader(reader name)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_object text;
begin
	execute format('grant usage on schema tacho to %I', reader);
	for v_object in select t::text from tacho._reader_tables() t loop
		execute format('grant select on %s to %I', v_object, reader);
	end loop;
	for v_object in select f::text from tacho._reader_functions() f loop
		execute format('grant execute on function %s to %I', v_object, reader);
	end loop;
end
$$;
comment on function tacho.grant_reader is
'Lets a role read the whole history: sessions of all roles and their query texts. Example: select tacho.grant_reader(''dba'');';

create function tacho.revoke_reader(reader name)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	if pg_has_role(reader, (select nspowner from pg_namespace where nspname = 'tacho'), 'member') then
		raise exception 'role "%" owns tacho', reader
			using errcode = 'invalid_parameter_value';
	end if;
	execute format('revoke all on all tables in schema tacho from %I', reader);
	execute format('revoke all on all sequences in schema tacho from %I', reader);
	execute format('revoke all on all routines in schema tacho from %I', reader);
	execute format('revoke all on schema tacho from %I', reader);
end
$$;
comment on function tacho.revoke_reader is 'Takes back what grant_reader() gave.';

-- Without waiting for a lock while it holds one: never part of a deadlock.
create function tacho._lock_everything(patience interval)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_end constant timestamptz := clock_timestamp() + patience;
	v_tables constant text := (
		select string_agg(k.oid::regclass::text, ', ' order by k.relname !~ '^mutex_', k.relname)
		from pg_class k
		where k.relnamespace = 'tacho'::regnamespace and k.relkind in ('r', 'p'));
begin
	loop
		begin
			execute format('lock table %s in access exclusive mode nowait', v_tables);
			return;
		exception when lock_not_available then
			if clock_timestamp() >= v_end then
				raise exception 'tacho is in use'
					using errcode = 'lock_not_available',
						hint = 'A reader or the sampler did not end in time; pg_locks knows who. Try again.';
			end if;
		end;
		perform pg_sleep(0.01);
	end loop;
end
$$;
comment on function tacho._lock_everything is 'locks all tables';

create function tacho.uninstall(confirm text default null, patience interval default '10 seconds')
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set client_min_messages = warning
as $$
begin
	if confirm is distinct from 'yes' then
		raise exception 'uninstalling removes the whole history'
			using errcode = 'invalid_parameter_value',
				hint = 'Call tacho.uninstall(''yes'') if you mean it.';
	end if;
	perform tacho._lock_everything(patience);
	perform tacho.stop();
	drop schema tacho cascade;
	return 'removed';
end
$$;
comment on function tacho.uninstall is 'Removes tacho and its whole history: select tacho.uninstall(''yes'');';

revoke all on all routines in schema tacho from public;
do $$
declare
	v_type text;
begin
	for v_type in
		select t.oid::regtype::text
		from pg_type t
		left join pg_class k on k.oid = t.typrelid
		where t.typnamespace = 'tacho'::regnamespace
			and t.typtype = 'c'
			and k.relkind = 'c'
	loop
		execute format('revoke all on type %s from public', v_type);
	end loop;
end
$$;
