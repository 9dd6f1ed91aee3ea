/*
 * statements.sql - statistics of statements
 *
 * expand.awk replaces the marker COUNTERS by the columns of catalog/counters.h.
 */

create function tacho.statements(
	showtext boolean default true,
	texts_since timestamptz default null,
	called_since timestamptz default null
)
returns table (
	userid oid,
	dbid oid,
	toplevel boolean,
	queryid bigint,
	query text,
	/* COUNTERS */
	last_sqlstate text,
	last_error_at timestamptz,
	last_call timestamptz,
	stats_since timestamptz,
	minmax_stats_since timestamptz,
	text_since timestamptz,
	restored boolean
)
language c volatile parallel safe
cost 100 rows 1000
as 'MODULE_PATHNAME', 'tacho_statements_rows';

comment on function tacho.statements is
'Cost of every statement: a row for each user, database, query and nesting (top level or not). A row without a query but with a user counts errors outside of statements (syntax, missing objects, at commit). A row without query and user has the sum of the statements of a database that made room for others. Column last_call is the time of the last planning, execution or failure, to a tick of the sampler. A collector of differences takes the first reading of a restored row as the baseline. With called_since, the time of its last reading, it gets only rows that may have changed since then. Example: select query, calls from tacho.statements(true) order by calls desc limit 10;';

create view tacho.statements as
	select *
		from tacho.statements(true);

comment on view tacho.statements is
'Cost of every statement: a row for each user, database, query and nesting (top level or not). Example: select query, calls, mean_exec_time, p95_exec_time from tacho.statements order by total_exec_time desc limit 10;';

grant select on tacho.statements to public;

create function tacho.statement_plans(
	out userid oid,
	out dbid oid,
	out toplevel boolean,
	out queryid bigint,
	out plan_id bigint,
	out since timestamptz,
	out calls bigint,
	out total_exec_time double precision,
	out mean_exec_time double precision,
	out max_exec_time double precision,
	out rows bigint,
	out shared_blks_hit bigint,
	out shared_blks_read bigint,
	out temp_blks_written bigint,
	out cpu_time double precision
)
returns setof record
language c volatile strict parallel safe
cost 100 rows 1000
as 'MODULE_PATHNAME', 'tacho_statement_plans';

comment on function tacho.statement_plans is
'Cost of each plan of a statement: a row for each plan of each row of tacho.statements that has one. The rows of a statement add up to its calls, times (in ms), rows, blocks and CPU time (user_time + system_time) in tacho.statements. Up to four plans of a statement are distinguished at a time. Blocks of planning count for the first plan. Example: select plan_id, since, calls, mean_exec_time from tacho.statement_plans() where queryid = 42 order by since;';

create view tacho.statement_plans as
	select *
		from tacho.statement_plans();

comment on view tacho.statement_plans is
'Cost of each plan of a statement, see function tacho.statement_plans. Example: select queryid, plan_id, since, calls, mean_exec_time from tacho.statement_plans order by total_exec_time desc limit 10;';

grant select on tacho.statement_plans to public;

create function tacho.statements_info(
	out entries bigint,
	out max bigint,
	out reserved bigint,
	out evicted bigint,
	out skipped bigint,
	out text_bytes bigint,
	out text_bytes_max bigint,
	out texts_missing bigint,
	out plans_missing bigint,
	out normalizations bigint,
	out promotions bigint,
	out last_eviction timestamptz,
	out stats_reset timestamptz
)
returns record
language c volatile strict parallel safe
as 'MODULE_PATHNAME', 'tacho_statements_info';

comment on function tacho.statements_info is
'State of the statement statistics: entries and bytes of text in use, and entries that made room for others (evicted). Also executions that were not counted (skipped), or not for their plan (plans_missing). Example: select entries, text_bytes from tacho.statements_info();';

create view tacho.statements_info as
	select *
		from tacho.statements_info();

comment on view tacho.statements_info is
'State of the statement statistics, see function tacho.statements_info. Example: select * from tacho.statements_info;';

grant select on tacho.statements_info to public;

create function tacho.statements_reset(
	userid oid default 0,
	dbid oid default 0,
	queryid bigint default 0,
	minmax_only boolean default false
)
returns timestamptz
language c volatile strict parallel safe
as 'MODULE_PATHNAME', 'tacho_statements_reset';

comment on function tacho.statements_reset is
'Forgets the statistics of statements, or only their extremes; 0 matches every user, database or query. Returns the time that the touched statistics count from. Example: select tacho.statements_reset();';

revoke all on function tacho.statements_reset from public;

-- Makes the functions of pg_stat_statements call another library.
create function tacho.replace_pg_stat_statements(
	old_library text,
	new_library text
)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_function oid;
	v_replaced bigint := 0;
begin
	for v_function in
		select p.oid
			from pg_extension e
			join pg_depend d on d.refclassid = 'pg_extension'::regclass
				and d.refobjid = e.oid
				and d.classid = 'pg_proc'::regclass
				and d.deptype = 'e'
			join pg_proc p on p.oid = d.objid
			where e.extname = 'pg_stat_statements'
				and p.probin = old_library
			order by p.oid
	loop
		execute replace(pg_get_functiondef(v_function),
			quote_literal(old_library), quote_literal(new_library));
		v_replaced := v_replaced + 1;
	end loop;
	return v_replaced;
end
$$;

comment on function tacho.replace_pg_stat_statements is
'Used by tacho.install_pg_stat_statements and tacho.uninstall_pg_stat_statements: makes the member functions of the extension pg_stat_statements call another library, and returns their number.';

revoke all on function tacho.replace_pg_stat_statements from public;

create function tacho.install_pg_stat_statements()
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_replaced bigint;
begin
	if current_setting('tacho.pg_stat_statements', true) is distinct from 'on' then
		raise exception 'tacho does not replace pg_stat_statements in this server'
			using errcode = 'object_not_in_prerequisite_state',
				hint = 'Set tacho.pg_stat_statements = on and restart the server.';
	end if;
	-- CREATE EXTENSION needs no call: a hook of the library redirects its functions
	v_replaced := tacho.replace_pg_stat_statements('$libdir/pg_stat_statements',
		'$libdir/tacho');
	create extension if not exists pg_stat_statements schema public;
	return v_replaced;
end
$$;

comment on function tacho.install_pg_stat_statements is
'Makes view and functions of the extension pg_stat_statements show the statistics of tacho; creates the extension if it is missing. Members, grants and dependencies stay. Returns the number of functions that called their own library. For an extension made before tacho took its place: CREATE and ALTER EXTENSION pg_stat_statements need no call.';

revoke all on function tacho.install_pg_stat_statements from public;

create function tacho.uninstall_pg_stat_statements()
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
	select tacho.replace_pg_stat_statements('$libdir/tacho',
		'$libdir/pg_stat_statements');
$$;

comment on function tacho.uninstall_pg_stat_statements is
'Gives the functions of the extension pg_stat_statements back to their own library. Returns their number.';

revoke all on function tacho.uninstall_pg_stat_statements from public;
