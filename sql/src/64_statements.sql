/*
 * 64_statements.sql - texts and statistics from pg_stat_statements
 *
 * The view is read only through the schema its extension is really in; it is
 * never reset. An entry is a statement between two resets: its key includes
 * stats_since where the view has it (17 and later), and where a counter is
 * lower than before the whole counter is the difference.
 */
create function tacho._pgss()
returns text
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select format('%I.pg_stat_statements', n.nspname)
	from pg_extension e
	join pg_namespace n on n.oid = e.extnamespace
	where e.extname = 'pg_stat_statements'
		and has_schema_privilege(n.oid, 'usage');
end;
comment on function tacho._pgss is 'pg_stat_statements with its schema, null when it is not there';

create table tacho.statement (
	id integer generated always as identity primary key,
	query_id bigint not null,
	database text,
	username text,
	toplevel boolean not null,
	stats_since timestamptz,
	user_oid oid not null,
	database_oid oid not null
);
comment on table tacho.statement is 'entries of pg_stat_statements';
create unique index on tacho.statement (query_id, user_oid, database_oid, toplevel, stats_since) nulls not distinct;

create table tacho.statement_counters (
	statement integer not null,
	minute_ms bigint not null,
	elapsed_ms bigint not null,
	calls bigint not null,
	rows bigint not null,
	total_exec_us bigint not null,
	total_plan_us bigint not null,
	io_us bigint not null,
	shared_blks_hit bigint not null,
	shared_blks_read bigint not null,
	shared_blks_dirtied bigint not null,
	shared_blks_written bigint not null,
	temp_blks_read bigint not null,
	temp_blks_written bigint not null,
	wal_bytes bigint not null
);
comment on table tacho.statement_counters is 'differences of the counters of statements by minute; only statements that ran';
create index on tacho.statement_counters using brin (minute_ms);

-- the counters as they were last seen
create table tacho.statement_last (
	statement integer primary key,
	seen_ms bigint not null,
	counters bigint[] not null
);
comment on table tacho.statement_last is 'the counters of statements when they were last seen';

create function tacho._find_texts()
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_pgss constant text := tacho._pgss();
	v_wanted bigint[];
	v_count integer;
begin
	if v_pgss is null or (select count(*) >= (select text_limit from tacho.setting) from tacho.text) then
		return 0;
	end if;
	v_wanted := array(
		select distinct a.query_id
		from tacho.activity a
		join tacho.ring r on r.slot = a.slot and r.is_current
		where a.query_id <> 0
			and not exists (select from tacho.text t where t.query_id = a.query_id));
	if v_wanted = '{}' then
		return 0;
	end if;
	execute format($sql$
		insert into tacho.text (query_id, database, username, body)
		select distinct on (s.queryid, d.datname) s.queryid, d.datname, u.rolname, left(s.query, 10000)
		from %s s
		left join pg_database d on d.oid = s.dbid
		left join pg_roles u on u.oid = s.userid
		where s.queryid = any ($1)
			and s.query is not null
			and s.query <> '<insufficient privilege>'
		on conflict do nothing$sql$, v_pgss)
	using v_wanted;
	get diagnostics v_count = row_count;
	return v_count;
end
$$;
comment on function tacho._find_texts is 'texts of query ids that have none yet';

create function tacho._pgss_sql(pgss text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_columns constant text[] := array(
		select a.attname::text from pg_attribute a
		where a.attrelid = pgss::regclass and a.attnum > 0 and not a.attisdropped);
	v_io text;
begin
	select string_agg(c, ' + ')
	into v_io
	from unnest(array['blk_read_time', 'blk_write_time', 'shared_blk_read_time', 'shared_blk_write_time',
		'local_blk_read_time', 'local_blk_write_time', 'temp_blk_read_time', 'temp_blk_write_time']) c
	where c = any (v_columns);
	return format($sql$
		select
			s.queryid as query_id,
			d.datname::text as database,
			u.rolname::text as username,
			s.toplevel,
			%1$s as stats_since,
			s.userid as user_oid,
			s.dbid as database_oid,
			array[s.calls, s.rows, (s.total_exec_time * 1000)::bigint, (s.total_plan_time * 1000)::bigint, ((%2$s) * 1000)::bigint,
				s.shared_blks_hit, s.shared_blks_read, s.shared_blks_dirtied, s.shared_blks_written,
				s.temp_blks_read, s.temp_blks_written, s.wal_bytes::bigint] as counters
		from %3$s(false) s
		left join pg_database d on d.oid = s.dbid
		left join pg_roles u on u.oid = s.userid
		where s.queryid is not null$sql$,
		case when 'stats_since' = any (v_columns) then 's.stats_since' else 'null::timestamptz' end, v_io, pgss);
end
$$;
comment on function tacho._pgss_sql is 'SQL: the entries of pg_stat_statements with the counters of this release';

create function tacho._record_statements(now_ms bigint)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_pgss constant text := tacho._pgss();
	v_before_ms bigint;
	v_count integer;
begin
	if v_pgss is null or not (select statements from tacho.setting) then
		return 0;
	end if;
	select ms into v_before_ms from tacho.watermark where name = 'statements';
	execute format($sql$
		with s as materialized (%1$s), fresh as (
			insert into tacho.statement (query_id, database, username, toplevel, stats_since, user_oid, database_oid)
			select query_id, database, username, toplevel, stats_since, user_oid, database_oid
			from s
			on conflict do nothing
			returning *
		), known as materialized (
			select * from tacho.statement
			union all
			select * from fresh
		), seen as materialized (
			select k.id, s.counters, l.counters as before
			from s
			join known k on (k.query_id, k.user_oid, k.database_oid, k.toplevel) = (s.query_id, s.user_oid, s.database_oid, s.toplevel)
				and k.stats_since is not distinct from s.stats_since
			left join tacho.statement_last l on l.statement = k.id
			where l.counters is distinct from s.counters
		), kept as (
			insert into tacho.statement_last as l (statement, seen_ms, counters)
			select id, $1, counters
			from seen
			on conflict (statement) do update set seen_ms = excluded.seen_ms, counters = excluded.counters
		)
		insert into tacho.statement_counters (statement, minute_ms, elapsed_ms, calls, rows, total_exec_us, total_plan_us,
			io_us, shared_blks_hit, shared_blks_read, shared_blks_dirtied, shared_blks_written, temp_blks_read,
			temp_blks_written, wal_bytes)
		select d.id, $1 / 60000 * 60000, $1 - $2, d.v[1], d.v[2], d.v[3], d.v[4], d.v[5], d.v[6], d.v[7], d.v[8], d.v[9],
			d.v[10], d.v[11], d.v[12]
		from (
			select id, array(
				select c - case when before[1] <= counters[1] then coalesce(before[i], 0) else 0 end
				from unnest(counters) with ordinality u (c, i)
				order by i) as v
			from seen
		) d
		where $2 > 0
			and d.v[1] > 0$sql$, tacho._pgss_sql(v_pgss))
	using now_ms, v_before_ms;
	get diagnostics v_count = row_count;
	update tacho.watermark set ms = now_ms where name = 'statements';
	return v_count;
end
$$;
comment on function tacho._record_statements is 'adds the differences of the counters of pg_stat_statements; the first time only looks at them';

create function tacho._forget_statements(now_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_before_ms constant bigint := now_ms - (select extract(epoch from statement_retention) * 1000 from tacho.setting);
begin
	delete from tacho.statement_counters where minute_ms < v_before_ms;
	delete from tacho.statement_last where seen_ms < v_before_ms;
	delete from tacho.statement s
	where not exists (select from tacho.statement_last l where l.statement = s.id)
		and not exists (select from tacho.statement_counters c where c.statement = s.id);
end
$$;
comment on function tacho._forget_statements is 'deletes statement statistics older than statement_retention';

create function tacho._statements_history(since timestamptz, until timestamptz, bucket interval, n bigint, queries text, databases text, usernames text)
returns table (
	bucket_start timestamptz,
	query_id bigint,
	database text,
	username text,
	query_text text,
	calls bigint,
	rows bigint,
	total_exec_ms numeric,
	mean_exec_ms numeric,
	total_plan_ms numeric,
	io_ms numeric,
	shared_blks_hit bigint,
	shared_blks_read bigint,
	temp_blks_written bigint,
	wal_bytes bigint
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
	q tacho.question := tacho._ask(since, until, null, null, null, false, null);
	v_n constant bigint := tacho._limit(n);
begin
	q := tacho._buckets(q, coalesce(bucket, greatest(q.until_us - q.since_us, 60000000) * interval '1 microsecond'), null, 100000);
	if bucket is null then
		q.origin_us := q.since_us;
		q.edges_us := null;
	end if;
	return query execute format($sql$
		select
			tacho._time(%1$s),
			query_id, database, username, tacho._query_text(query_id::text, database),
			calls, rows,
			tacho._round4(exec_us, 1000), tacho._round4(exec_us, 1000 * calls), tacho._round4(plan_us, 1000), tacho._round4(io_us, 1000),
			hit, read, written, wal
		from (
			select *, row_number() over (partition by b order by exec_us desc, query_id, database collate "C", username collate "C") as rank
			from (
				select
					%2$s as b,
					s.query_id, s.database, s.username,
					sum(c.calls)::bigint as calls, sum(c.rows)::bigint as rows, sum(c.total_exec_us) as exec_us,
					sum(c.total_plan_us) as plan_us, sum(c.io_us) as io_us, sum(c.shared_blks_hit)::bigint as hit,
					sum(c.shared_blks_read)::bigint as read, sum(c.temp_blks_written)::bigint as written, sum(c.wal_bytes)::bigint as wal
				from tacho.statement_counters c
				join tacho.statement s on s.id = c.statement
				where c.minute_ms * 1000 >= %3$s and c.minute_ms * 1000 < %4$s and %5$s and %6$s and %7$s
				group by 1, 2, 3, 4
			) g
		) r
		where rank <= $2
		order by b, rank$sql$,
		case when q.edges_us is null then format('%s::bigint + %s::bigint * b', q.origin_us, q.width_us) else '$1[b + 1]' end,
		tacho._bucket_sql(q, 'c.minute_ms'), q.since_us, q.until_us,
		case when queries is null then 'true' else tacho._accept_sql('s.query_id::text', tacho._parse_filter('query_id', queries)) end,
		case when databases is null then 'true' else tacho._accept_sql('s.database', tacho._parse_filter('database', databases)) end,
		case when usernames is null then 'true' else tacho._accept_sql('s.username', tacho._parse_filter('username', usernames)) end)
	using q.edges_us, v_n;
	if not found then
		perform tacho._say_empty(q);
	end if;
end
$$;
comment on function tacho._statements_history is 'statements_history() itself';

call tacho._reader($decl$statements_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	n integer default 20,
	query_id text default null,
	database text default null,
	username text default null
)
returns table (
	bucket_start timestamptz,
	query_id bigint,
	database text,
	username text,
	query_text text,
	calls bigint,
	rows bigint,
	total_exec_ms numeric,
	mean_exec_ms numeric,
	total_plan_ms numeric,
	io_ms numeric,
	shared_blks_hit bigint,
	shared_blks_read bigint,
	temp_blks_written bigint,
	wal_bytes bigint
) rows 20$decl$,
'select * from tacho._statements_history(statements_history.since, statements_history.until, statements_history.bucket, statements_history.n, statements_history.query_id, statements_history.database, statements_history.username)',
'What each statement cost in a window, by the statistics of pg_stat_statements, the most expensive first; with bucket, the n most expensive of each bucket. Buckets begin at multiples of their width on the clock of the session''s time zone. Example: select * from tacho.statements_history(since => now() - interval ''15 minutes'');');
