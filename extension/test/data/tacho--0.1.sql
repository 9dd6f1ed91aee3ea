-- The SQL objects of version 0.1, commit bdac35e, without comments: tests update them.
\echo Use "CREATE EXTENSION tacho" to load this file. \quit
do $$
begin
	if exists (
		select
			from pg_catalog.pg_class c
			where c.relname = 'setting'
				and c.relnamespace = pg_catalog.to_regnamespace('@extschema@')
	) then
		raise exception 'the SQL edition of tacho is installed in this database'
			using errcode = 'duplicate_object', detail = 'It has schema "@extschema@" and functions of the same names.',
				hint = 'To go on with its history, export it with sql/export.sql, call tacho.uninstall(''yes''), create the extension again and give the files to "tacho import"; or create the extension in another database.';
	end if;
	if not exists (
		select
			from pg_catalog.pg_namespace n
			join pg_catalog.pg_roles r on r.oid = n.nspowner
			where n.nspname = '@extschema@'
				and (r.rolname = current_user or r.rolsuper)
	) then
		raise exception 'schema "@extschema@" belongs to another role'
			using errcode = 'insufficient_privilege',
				hint = 'Drop it or change its owner, then create the extension again.';
	end if;
end
$$;
grant usage on schema tacho to public;
create function tacho._relation(lock_database bigint, lock_relation bigint)
returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select c.oid::regclass::text
		from pg_class c
		where c.oid = lock_relation::oid
			and lock_database in (
				0, (select d.oid::bigint from pg_database d where d.datname = current_database())
			);
end;
create function tacho.aas(
	since timestamptz default null, until timestamptz default null, bucket interval default '1 minute',
	wait_event_type text default null, wait_event text default null, query_id text default null,
	plan_id text default null, pid text default null, backend_type text default null, category text default null,
	database text default null, username text default null, application text default null,
	client_addr text default null, leader text default null, state text default null, cpu text default null,
	blocked_by text default null, root_blocker text default null, scope text default 'load', tz text default null,
	node text default null, by_leader boolean default false
)
returns table (
	period_start timestamptz, period_end timestamptz, source text, grain interval, avg_aas numeric,
	peak_aas numeric, p99_aas numeric, peak_sessions bigint, backend_seconds numeric, vcpus numeric,
	ticks_expected bigint, ticks_observed bigint, ticks_failed bigint, coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho._blocking(
	at timestamptz default null, since timestamptz default null, until timestamptz default null,
	n integer default 10, tz text default null, node text default null
)
returns table (
	tree text, level integer, kind text, pid integer, backend_start timestamptz, prepared_xid bigint,
	prepared_gid text, database text, username text, application text, state text, xact_age interval,
	query_id bigint, query_text text, blocked_seconds numeric, waiters bigint, depth bigint, waited interval,
	via text, locktype text, object text, lock_database bigint, lock_relation bigint, mode text, mode_held text,
	first_seen timestamptz, last_seen timestamptz
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.blocking(
	at timestamptz default null, since timestamptz default null, until timestamptz default null,
	n integer default 10, tz text default null, node text default null
)
returns table (
	tree text, level integer, kind text, pid integer, backend_start timestamptz, prepared_xid bigint,
	prepared_gid text, database text, username text, application text, state text, xact_age interval,
	query_id bigint, query_text text, blocked_seconds numeric, waiters bigint, depth bigint, waited interval,
	via text, locktype text, object text, lock_database bigint, lock_relation bigint, relation text, mode text,
	mode_held text, first_seen timestamptz, last_seen timestamptz
)
language sql volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
begin atomic
	select b.tree, b.level, b.kind, b.pid, b.backend_start, b.prepared_xid,
		b.prepared_gid, b.database, b.username, b.application, b.state,
		b.xact_age, b.query_id, b.query_text, b.blocked_seconds, b.waiters,
		b.depth, b.waited, b.via, b.locktype, b.object, b.lock_database, b.lock_relation,
		tacho._relation(b.lock_database, b.lock_relation), b.mode, b.mode_held, b.first_seen, b.last_seen
	from tacho._blocking(
		at => blocking.at, since => blocking.since, until => blocking.until, n => blocking.n, tz => blocking.tz,
		node => blocking.node
	) with ordinality b
	order by b.ordinality;
end;
create function tacho.chart(
	since timestamptz default null, until timestamptz default null, bucket interval default null,
	by text default 'wait_event_type', n integer default 3, width integer default 40, color boolean default false,
	ascii boolean default false, wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default 'load', tz text default null, node text default null, by_leader boolean default false
)
returns table (
	bucket_start timestamptz, aas numeric, detail text, chart text
)
language c volatile parallel restricted
cost 10000 rows 61
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.compare(
	dimension text default null, since_1 timestamptz default null, until_1 timestamptz default null,
	since_2 timestamptz default null, until_2 timestamptz default null, n integer default 10,
	bucket interval default '1 minute', wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default 'load', tz text default null, node text default null, by_leader boolean default false
)
returns table (
	key text, query_text text, change text, avg_delta numeric, avg_aas_1 numeric, avg_aas_2 numeric,
	peak_aas_1 numeric, peak_aas_2 numeric, p99_aas_1 numeric, p99_aas_2 numeric, peak_sessions_1 bigint,
	peak_sessions_2 bigint, backend_seconds_1 numeric, backend_seconds_2 numeric, pct_1 numeric, pct_2 numeric,
	vcpus_1 numeric, vcpus_2 numeric, source_1 text, source_2 text, grain interval, period_start_1 timestamptz,
	period_end_1 timestamptz, period_start_2 timestamptz, period_end_2 timestamptz, coverage_pct_1 numeric,
	coverage_pct_2 numeric, note text
)
language c volatile parallel restricted
cost 10000 rows 11
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.explain(
	function text, dimension text default null, since timestamptz default null, until timestamptz default null,
	n integer default null, bucket interval default null, order_by text default null, by text default null,
	since_1 timestamptz default null, until_1 timestamptz default null, since_2 timestamptz default null,
	until_2 timestamptz default null, wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default null, tz text default null, node text default null, by_leader boolean default null
)
returns table (
	scan bigint, plan text, period_start timestamptz, period_end timestamptz, first_tick bigint, last_tick bigint,
	files bigint, parts bigint, bytes bigint, why text
)
language c volatile parallel restricted
cost 10000 rows 4
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.latency_history(
	since timestamptz default null, until timestamptz default null, bucket interval default null,
	query_id text default null, database text default null, username text default null, toplevel text default null,
	tz text default null, node text default null
)
returns table (
	period_start timestamptz, period_end timestamptz, exec_time_from numeric, exec_time_to numeric, calls bigint,
	grain interval, coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.markers(
	since timestamptz default null, until timestamptz default null, node text default null
)
returns table (
	marker_time timestamptz, kind text, period_start timestamptz, period_end timestamptz, detail text
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho._overhead(
	out metric text, out value numeric, out unit text
)
returns setof record
language c volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_overhead';
create function tacho.overhead()
returns table (
	metric text, value numeric, unit text
)
language sql volatile parallel restricted
rows 30
set search_path = pg_catalog, pg_temp
begin atomic
	select o.metric, o.value, o.unit
		from tacho._overhead() o
	union all
	select 'shared_memory: ' || a.name, a.allocated_size, 'bytes'
		from pg_catalog.pg_shmem_allocations a
		where a.name like 'tacho%';
end;
create function tacho.periods(
	until timestamptz default null, wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default 'load', tz text default null, node text default null, by_leader boolean default false
)
returns table (
	period text, period_start timestamptz, period_end timestamptz, source text, grain interval, avg_aas numeric,
	peak_aas numeric, p99_aas numeric, peak_sessions bigint, backend_seconds numeric, vcpus numeric,
	ticks_expected bigint, ticks_observed bigint, ticks_failed bigint, coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 6
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho._report(
	at timestamptz default null, since timestamptz default null, until timestamptz default null,
	n integer default 5, wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default 'load', tz text default null, node text default null, by_leader boolean default false
)
returns table (
	period_start timestamptz, period_end timestamptz, report jsonb
)
language c volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho._with_relations(report jsonb, part text)
returns jsonb
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case jsonb_typeof(report -> part)
		when 'array' then jsonb_set(report, array[part], coalesce(
			(
				select jsonb_agg(
						e.value || jsonb_build_object(
							'relation', tacho._relation(
								(e.value ->> 'lock_database')::bigint, (e.value ->> 'lock_relation')::bigint
							)
						)
						order by e.ordinality
					)
					from jsonb_array_elements(report -> part) with ordinality e
			), '[]'
		))
		else report
	end;
end;
create function tacho._moment(at text, tz text)
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case
		when at ~ '^ *[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? *$' then (
			select case when (t.today + at::time) at time zone t.zone <= now()
					then (t.today + at::time) at time zone t.zone
					else (t.today - 1 + at::time) at time zone t.zone
				end
				from (
					select z.zone, (now() at time zone z.zone)::date as today
						from (select coalesce(tz, current_setting('timezone')) as zone) z
				) t
		)
		when tz is null or at !~ '[0-9]'
			or at ~* ':[0-9.]+ *([+-][0-9:]+|[a-z][a-z_/]*)$' and at !~* '[ap]m$'
			then at::timestamptz
		else at::timestamp at time zone tz
	end;
end;
create function tacho.report(
	at text default null, since timestamptz default null, until timestamptz default null, n integer default 5,
	wait_event_type text default null, wait_event text default null, query_id text default null,
	plan_id text default null, pid text default null, backend_type text default null, category text default null,
	database text default null, username text default null, application text default null,
	client_addr text default null, leader text default null, state text default null, cpu text default null,
	blocked_by text default null, root_blocker text default null, scope text default 'load', tz text default null,
	node text default null, by_leader boolean default false
)
returns table (
	period_start timestamptz, period_end timestamptz, report jsonb
)
language sql volatile parallel restricted
cost 10000 rows 1
set search_path = pg_catalog, pg_temp
begin atomic
	select r.period_start, r.period_end, tacho._with_relations(tacho._with_relations(r.report, 'blockers'), 'tree')
	from tacho._report(
		at => tacho._moment(report.at, report.tz), since => report.since, until => report.until, n => report.n,
		wait_event_type => report.wait_event_type, wait_event => report.wait_event, query_id => report.query_id,
		plan_id => report.plan_id, pid => report.pid, backend_type => report.backend_type,
		category => report.category, database => report.database, username => report.username,
		application => report.application, client_addr => report.client_addr, leader => report.leader,
		state => report.state, cpu => report.cpu, blocked_by => report.blocked_by,
		root_blocker => report.root_blocker, scope => report.scope, tz => report.tz, node => report.node,
		by_leader => report.by_leader
	) r;
end;
create function tacho.samples(
	since timestamptz default null, until timestamptz default null, n integer default 100,
	wait_event_type text default null, wait_event text default null, query_id text default null,
	plan_id text default null, pid text default null, backend_type text default null, category text default null,
	database text default null, username text default null, application text default null,
	client_addr text default null, leader text default null, state text default null, cpu text default null,
	blocked_by text default null, root_blocker text default null, scope text default 'load', tz text default null,
	node text default null, by_leader boolean default false
)
returns table (
	sample_time timestamptz, tick bigint, pid integer, backend_start timestamptz, leader integer,
	backend_type text, category text, database text, username text, application text, client_addr text, state text,
	wait_event_type text, wait_event text, cpu text, query_id bigint, plan_id bigint, query_start timestamptz,
	xact_start timestamptz, state_change timestamptz, xmin_age bigint, xid_age bigint, progress_command text,
	progress_relation bigint, blocked_by integer, weight_ms bigint, query_text text
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.server_history(
	since timestamptz default null, until timestamptz default null, bucket interval default null,
	metric text default null, object text default null, tz text default null, node text default null
)
returns table (
	period_start timestamptz, period_end timestamptz, metric text, object text, unit text, avg numeric,
	min numeric, max numeric, total numeric, readings bigint
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.sessions(
	since timestamptz default null, until timestamptz default null, n integer default 10,
	wait_event_type text default null, wait_event text default null, query_id text default null,
	plan_id text default null, pid text default null, backend_type text default null, category text default null,
	database text default null, username text default null, application text default null,
	client_addr text default null, leader text default null, state text default null, cpu text default null,
	blocked_by text default null, root_blocker text default null, scope text default 'all', tz text default null,
	node text default null, by_leader boolean default false
)
returns table (
	pid integer, backend_start timestamptz, backend_type text, database text, username text, application text,
	client_addr text, span_start timestamptz, span_end timestamptz, kind text, seconds numeric, ticks bigint,
	state text, wait_event_type text, wait_event text, cpu text, query_id bigint, plan_id bigint,
	blocked_by integer, query_start timestamptz, xact_start timestamptz, query_text text
)
language c volatile parallel restricted
cost 10000 rows 100
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.statements_history(
	since timestamptz default null, until timestamptz default null, bucket interval default null,
	n integer default 10, order_by text default 'time', query_id text default null, database text default null,
	username text default null, toplevel text default null, tz text default null, node text default null
)
returns table (
	period_start timestamptz, period_end timestamptz, key text, query_id bigint, database text, username text,
	toplevel boolean, query_text text, grain interval, coverage_pct numeric, pct numeric, calls_per_second numeric,
	mean_exec_time numeric, stddev_exec_time numeric, p50_exec_time numeric, p95_exec_time numeric,
	p99_exec_time numeric, plans bigint, total_plan_time numeric, calls bigint, total_exec_time numeric,
	rows bigint, shared_blks_hit bigint, shared_blks_read bigint, shared_blks_dirtied bigint,
	shared_blks_written bigint, local_blks_hit bigint, local_blks_read bigint, local_blks_dirtied bigint,
	local_blks_written bigint, temp_blks_read bigint, temp_blks_written bigint, shared_blk_read_time numeric,
	shared_blk_write_time numeric, local_blk_read_time numeric, local_blk_write_time numeric,
	temp_blk_read_time numeric, temp_blk_write_time numeric, wal_records bigint, wal_fpi bigint, wal_bytes bigint,
	wal_buffers_full bigint, jit_functions bigint, jit_generation_time numeric, jit_inlining_count bigint,
	jit_inlining_time numeric, jit_optimization_count bigint, jit_optimization_time numeric,
	jit_emission_count bigint, jit_emission_time numeric, jit_deform_count bigint, jit_deform_time numeric,
	parallel_workers_to_launch bigint, parallel_workers_launched bigint, generic_plan_calls bigint,
	custom_plan_calls bigint, user_time numeric, system_time numeric, run_queue_time numeric, read_bytes bigint,
	written_bytes bigint, minor_faults bigint, major_faults bigint, voluntary_switches bigint,
	involuntary_switches bigint, n_sampled bigint, errors bigint, cancellations bigint
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.status(
	node text default null
)
returns table (
	metric text, value text
)
language c volatile parallel restricted
cost 10000 rows 40
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_status';
create function tacho.summary(
	since timestamptz default null, until timestamptz default null, wait_event_type text default null,
	wait_event text default null, query_id text default null, plan_id text default null, pid text default null,
	backend_type text default null, category text default null, database text default null,
	username text default null, application text default null, client_addr text default null,
	leader text default null, state text default null, cpu text default null, blocked_by text default null,
	root_blocker text default null, scope text default 'load', tz text default null, node text default null,
	by_leader boolean default false
)
returns table (
	metric text, value text
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.timeline(
	since timestamptz default null, until timestamptz default null, bucket interval default null,
	by text default null, n integer default 10, wait_event_type text default null, wait_event text default null,
	query_id text default null, plan_id text default null, pid text default null, backend_type text default null,
	category text default null, database text default null, username text default null,
	application text default null, client_addr text default null, leader text default null,
	state text default null, cpu text default null, blocked_by text default null, root_blocker text default null,
	scope text default 'load', tz text default null, node text default null, by_leader boolean default false
)
returns table (
	bucket_start timestamptz, key text, source text, avg_aas numeric, peak_sessions bigint,
	backend_seconds numeric, vcpus numeric, ticks_expected bigint, ticks_observed bigint, ticks_failed bigint,
	coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 60
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
create function tacho.top(
	dimension text, since timestamptz default null, until timestamptz default null, n integer default 10,
	bucket interval default '1 minute', order_by text default 'avg', by text default null,
	wait_event_type text default null, wait_event text default null, query_id text default null,
	plan_id text default null, pid text default null, backend_type text default null, category text default null,
	database text default null, username text default null, application text default null,
	client_addr text default null, leader text default null, state text default null, cpu text default null,
	blocked_by text default null, root_blocker text default null, scope text default 'load', tz text default null,
	node text default null, by_leader boolean default false
)
returns table (
	key text, by_key text, query_text text, source text, period_start timestamptz, period_end timestamptz,
	grain interval, avg_aas numeric, peak_aas numeric, p99_aas numeric, peak_sessions bigint,
	backend_seconds numeric, pct numeric, vcpus numeric, ticks_expected bigint, ticks_observed bigint,
	ticks_failed bigint, coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 11
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';
revoke execute on all functions in schema tacho from public;
grant execute on all functions in schema tacho to pg_read_all_stats;
create function tacho.statements(
	showtext boolean default true, texts_since timestamptz default null
)
returns table (
	userid oid, dbid oid, toplevel boolean, queryid bigint, query text, plans bigint,
	total_plan_time double precision, min_plan_time double precision, max_plan_time double precision,
	mean_plan_time double precision, stddev_plan_time double precision, calls bigint,
	total_exec_time double precision, min_exec_time double precision, max_exec_time double precision,
	mean_exec_time double precision, stddev_exec_time double precision, rows bigint, shared_blks_hit bigint,
	shared_blks_read bigint, shared_blks_dirtied bigint, shared_blks_written bigint, local_blks_hit bigint,
	local_blks_read bigint, local_blks_dirtied bigint, local_blks_written bigint, temp_blks_read bigint,
	temp_blks_written bigint, shared_blk_read_time double precision, shared_blk_write_time double precision,
	local_blk_read_time double precision, local_blk_write_time double precision,
	temp_blk_read_time double precision, temp_blk_write_time double precision, wal_records bigint, wal_fpi bigint,
	wal_bytes bigint, wal_buffers_full bigint, jit_functions bigint, jit_generation_time double precision,
	jit_inlining_count bigint, jit_inlining_time double precision, jit_optimization_count bigint,
	jit_optimization_time double precision, jit_emission_count bigint, jit_emission_time double precision,
	jit_deform_count bigint, jit_deform_time double precision, parallel_workers_to_launch bigint,
	parallel_workers_launched bigint, generic_plan_calls bigint, custom_plan_calls bigint,
	user_time double precision, system_time double precision, run_queue_time double precision, read_bytes bigint,
	written_bytes bigint, minor_faults bigint, major_faults bigint, voluntary_switches bigint,
	involuntary_switches bigint, n_sampled bigint, errors bigint, cancellations bigint,
	p50_exec_time double precision, p95_exec_time double precision, p99_exec_time double precision,
	histogram bigint[], last_sqlstate text, last_error_at timestamptz, stats_since timestamptz,
	minmax_stats_since timestamptz, text_since timestamptz, restored boolean
)
language c volatile parallel safe
cost 100 rows 1000
as 'MODULE_PATHNAME', 'tacho_statements_rows';
create view tacho.statements as
	select *
		from tacho.statements(true);
grant select on tacho.statements to public;
create function tacho.statements_info(
	out entries bigint, out max bigint, out reserved bigint, out evicted bigint, out skipped bigint,
	out text_bytes bigint, out text_bytes_max bigint, out texts_missing bigint, out normalizations bigint,
	out promotions bigint, out last_eviction timestamptz, out stats_reset timestamptz
)
returns record
language c volatile strict parallel safe
as 'MODULE_PATHNAME', 'tacho_statements_info';
create view tacho.statements_info as
	select *
		from tacho.statements_info();
grant select on tacho.statements_info to public;
create function tacho.statements_reset(
	userid oid default 0, dbid oid default 0, queryid bigint default 0, minmax_only boolean default false
)
returns timestamptz
language c volatile strict parallel safe
as 'MODULE_PATHNAME', 'tacho_statements_reset';
revoke all on function tacho.statements_reset from public;
create function tacho.replace_pg_stat_statements(
	old_library text, new_library text
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
		execute replace(pg_get_functiondef(v_function), quote_literal(old_library), quote_literal(new_library));
		v_replaced := v_replaced + 1;
	end loop;
	return v_replaced;
end
$$;
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
		raise exception 'tacho does not take the place of pg_stat_statements in this server'
			using errcode = 'object_not_in_prerequisite_state',
				hint = 'Set tacho.pg_stat_statements = on and restart the server.';
	end if;
	v_replaced := tacho.replace_pg_stat_statements('$libdir/pg_stat_statements', '$libdir/tacho');
	create extension if not exists pg_stat_statements schema public;
	return v_replaced;
end
$$;
revoke all on function tacho.install_pg_stat_statements from public;
create function tacho.uninstall_pg_stat_statements()
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
	select tacho.replace_pg_stat_statements('$libdir/tacho', '$libdir/pg_stat_statements');
$$;
revoke all on function tacho.uninstall_pg_stat_statements from public;
