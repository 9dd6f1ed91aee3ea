/*
 * 64_statements.sql - texts and statistics from pg_stat_statements
 *
 * The view is read only through the schema that its extension is really in; it is never
 * reset. Once a minute each entry adds to its minute the growth of its counters since the
 * pass before.
 *
 * After a reset or an eviction an entry begins again at zero, and adds all its counters.
 * If the view has stats_since (17 and later), this time is part of the key, so the entry
 * is another one. Up to 16, one of four signs shows that an entry has begun again:
 * - the statistics were reset since the pass before
 * - the pass before did not have the entry
 * - one of its counters is lower
 * - its extremes are narrower: in one life the shortest execution only gets shorter, the
 *   longest only longer
 *
 * An entry that begins again between two passes and exceeds all its old counters goes
 * unnoticed.
 *
 * Three kinds of counters are only a base for later passes, because they may be months
 * old. The first are all counters after a pause of more than an hour. The second are the
 * counters of another role's entry that the sampler could not see during the last hour.
 * The third are the counters of another server: after a failover, the time of the reset
 * is another one, but earlier than the pass before.
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
comment on table tacho.statement is 'entries of pg_stat_statements; a database or role with a new name is a new row';
create unique index on tacho.statement (query_id, user_oid, database_oid, toplevel, stats_since, database, username) nulls not distinct;

create table tacho.statement_counters (
	statement integer not null,
	pass_ms bigint not null,
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
comment on table tacho.statement_counters is 'differences of the counters of statements in the elapsed_ms before a pass; only statements that ran';
create index on tacho.statement_counters using brin (pass_ms);

-- One row per entry that the last pass read, or that has been hidden since.
create table tacho.statement_last (
	statement integer primary key,
	counters bigint[] not null,
	extremes double precision[]
);
comment on table tacho.statement_last is 'the counters of statements when they were last seen, and their shortest and longest execution';

create function tacho._store_found(query_ids bigint[], databases text[], usernames text[], bodies text[])
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_count integer;
begin
	insert into tacho.text (query_id, database, username, body)
	select t.query_id, tacho._shown(t.database), tacho._shown(t.username), t.body
	from unnest(query_ids, databases, usernames, bodies) t (query_id, database, username, body)
	on conflict do nothing;
	get diagnostics v_count = row_count;
	return v_count;
end
$$;
comment on function tacho._store_found is 'keeps texts of query ids';

-- Sessions have the current or last message as a whole, possibly cut.
create function tacho._find_texts_of_sessions(wanted bigint[])
returns integer
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	select tacho._store_found(array_agg(x.query_id), array_agg(x.datname), array_agg(x.usename), array_agg(tacho._masked(x.body) || case when x.is_cut then '...' else '' end))
	from (
		select distinct on (a.query_id, a.datname)
			a.query_id, a.datname::text as datname, a.usename::text as usename,
			tacho._shown(a.query, pg_encoding_to_char(d.encoding)) as body,
			-- the server cuts before a character that does not fit
			octet_length(a.query) >= pg_size_bytes(current_setting('track_activity_query_size')) - 4 as is_cut
		from pg_stat_activity a
		left join pg_database d on d.oid = a.datid
		where a.query_id = any (wanted)
			and a.query not in ('', '<insufficient privilege>')
	) x;
end;
comment on function tacho._find_texts_of_sessions is 'texts of query ids that sessions run, without any literal';

create function tacho._find_texts_of_statements(wanted bigint[], pgss text)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_longest constant integer := 10000;
	v_count integer;
begin
	execute format($sql$
		select tacho._store_found(array_agg(x.query_id), array_agg(x.datname), array_agg(x.rolname), array_agg(x.body))
		from (
			select distinct on (s.queryid, d.datname)
				s.queryid as query_id, d.datname::text as datname, u.rolname::text as rolname,
				case when (select utility_literals from tacho.setting) then left(s.query, $2)
					else tacho._without_constants(left(s.query, $2)) end
					|| case when length(s.query) > $2 then '...' else '' end as body
			from %s s
			left join pg_database d on d.oid = s.dbid
			left join pg_roles u on u.oid = s.userid
			where s.queryid = any ($1)
				and s.query is not null
				and s.query <> '<insufficient privilege>'
		) x$sql$, pgss)
	into v_count
	using wanted, c_longest;
	return v_count;
end
$$;
comment on function tacho._find_texts_of_statements is 'texts of query ids from pg_stat_statements; one that is cut ends in ...';

-- The newest activities first. The next try for a query id without a text comes after 2
-- minutes, then 4, at most an hour.
create function tacho._wanted_texts(now_ms bigint)
returns bigint[]
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select array(
		select a.query_id
		from tacho.activity a
		join tacho.ring r on r.slot = a.slot and r.is_current
		where a.query_id <> 0
			and not exists (select from tacho.text t where t.query_id = a.query_id)
			and not exists (select from tacho.text_missing m where m.query_id = a.query_id and m.retry_ms between now_ms and now_ms + 3600000)
		group by a.query_id
		order by max(a.id) desc
		limit 1000);
end;
comment on function tacho._wanted_texts is 'query ids without a text that a pass looks up';

create function tacho._miss_texts(query_ids bigint[], now_ms bigint)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	insert into tacho.text_missing as m (query_id, tries, retry_ms)
	select w.query_id, 1, now_ms + 120000
	from unnest(query_ids) w (query_id)
	where not exists (select from tacho.text t where t.query_id = w.query_id)
	on conflict (query_id) do update
	set tries = m.tries + 1, retry_ms = now_ms + least(120000::bigint << least(m.tries, 5), 3600000);
end;
comment on function tacho._miss_texts is 'remembers query ids that have no text yet';

-- pg_stat_statements returns all texts or none: one text of another database that
-- cannot be shown in this database's encoding is an error that hides all. After a
-- reading there is a pause of twenty times its duration.
create function tacho._find_texts()
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_pause constant integer := 20;
	-- a watermark that is further ahead comes from a clock that was wrong
	c_longest_pause_ms constant integer := 3600000 - 1;
	v_now_ms constant bigint := tacho._ms(clock_timestamp());
	v_pgss constant text := tacho._pgss();
	v_wanted bigint[];
	v_room bigint;
	v_count integer := 0;
	v_of_sessions boolean := false;
begin
	if v_pgss is null or exists (select from tacho.watermark where name = 'texts' and ms between v_now_ms + 1 and v_now_ms + c_longest_pause_ms) then
		return 0;
	end if;
	v_wanted := tacho._wanted_texts(v_now_ms);
	if v_wanted = '{}' then
		return 0;
	end if;
	select s.text_limit - (select count(*) from tacho.text) into v_room from tacho.setting s;
	if v_room > 0 then
		v_wanted := v_wanted[:v_room];
		begin
			v_count := tacho._find_texts_of_statements(v_wanted, v_pgss);
		exception when character_not_in_repertoire or untranslatable_character or undefined_function then
			v_of_sessions := true;
			call tacho._fail('texts', format('texts come from sessions only, since pg_stat_statements has one that cannot be shown in the encoding of this database: %s', sqlerrm));
			v_count := tacho._find_texts_of_sessions(v_wanted);
		end;
	else
		perform tacho._count('texts without room', (
			select count(*) from unnest(v_wanted) w (query_id) where not exists (select from tacho.text_missing m where m.query_id = w.query_id)));
	end if;
	-- sessions show a text only while it is executed, so each pass looks for all
	if not v_of_sessions then
		perform tacho._miss_texts(v_wanted, v_now_ms);
		perform tacho._swap_watermark('texts', v_now_ms
			+ least((tacho._ms(clock_timestamp()) - v_now_ms) * (c_pause + 1), c_longest_pause_ms));
	end if;
	return v_count;
end
$$;
comment on function tacho._find_texts is 'texts of query ids that have none yet';

create function tacho._forget_texts(now_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	delete from tacho.text_missing where retry_ms < now_ms - 86400000;
	if (select count(*) from tacho.text) < (select text_limit * 0.9 from tacho.setting) then
		return;
	end if;
	delete from tacho.text t
	where t.query_id <> 0
		and not exists (select from tacho.activity a where a.query_id = t.query_id)
		and not exists (select from tacho.word w where w.value = t.query_id::text)
		and not exists (select from tacho.statement s where s.query_id = t.query_id);
	delete from tacho.text t
	where t.query_id = 0
		and not exists (select from tacho.activity a where a.text_id = t.id);
end
$$;
comment on function tacho._forget_texts is 'deletes texts that the history no longer names, if text_limit is near';

create function tacho._columns(relation text)
returns text[]
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select array_agg(a.attname::text)
	from pg_attribute a
	where a.attrelid = relation::regclass
		and a.attnum > 0
		and not a.attisdropped;
end;
comment on function tacho._columns is 'names of the columns of a relation';

create function tacho._pgss_sql(pgss text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_columns constant text[] := tacho._columns(pgss);
	v_io text;
begin
	select string_agg(c, ' + ')
	into v_io
	from unnest(array['blk_read_time', 'blk_write_time', 'shared_blk_read_time', 'shared_blk_write_time',
		'local_blk_read_time', 'local_blk_write_time', 'temp_blk_read_time', 'temp_blk_write_time']) c
	where c = any (v_columns);
	return format($sql$
		with d as materialized (
			select oid, tacho._shown(datname) as datname from pg_database
		), u as materialized (
			select oid, tacho._shown(rolname) as rolname from pg_roles
		)
		select
			s.queryid as query_id,
			d.datname as database,
			u.rolname as username,
			%1$s as toplevel,
			%2$s as stats_since,
			s.userid as user_oid,
			s.dbid as database_oid,
			array[s.calls, s.rows, (s.total_exec_time * 1000)::bigint, (s.total_plan_time * 1000)::bigint, ((%3$s) * 1000)::bigint,
				s.shared_blks_hit, s.shared_blks_read, s.shared_blks_dirtied, s.shared_blks_written,
				s.temp_blks_read, s.temp_blks_written, s.wal_bytes::bigint] as counters,
			array[s.min_exec_time, s.max_exec_time] as extremes
		from %4$s(false) s
		left join d on d.oid = s.dbid
		left join u on u.oid = s.userid
		where s.queryid is not null$sql$,
		case when 'toplevel' = any (v_columns) then 's.toplevel' else 'true' end,
		case when 'stats_since' = any (v_columns) then 's.stats_since' else 'null::timestamptz' end, v_io, pgss);
end
$$;
comment on function tacho._pgss_sql is 'SQL: the entries of pg_stat_statements with the counters of this release';

create function tacho._pgss_reset_ms(pgss text)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_reset timestamptz;
begin
	if to_regclass(pgss || '_info') is not null then -- 1.9 and later
		execute format('select stats_reset from %s_info', pgss) into v_reset;
	end if;
	return coalesce(tacho._ms(v_reset), 0);
end
$$;
comment on function tacho._pgss_reset_ms is 'when pg_stat_statements was reset as a whole, 0 = not known';

-- Both extremes are 0 until an entry is executed; it may be planned before.
create function tacho._is_one_life(before bigint[], before_extremes double precision[], counters bigint[], extremes double precision[])
returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(before_extremes = '{0, 0}' or extremes[1] <= before_extremes[1] and extremes[2] >= before_extremes[2], true)
		and not exists (select from unnest(before, counters) u (was, now) where u.now < u.was);
end;
comment on function tacho._is_one_life is 'false if the counters of an entry restarted at zero';

create function tacho._swap_watermark(name text, ms bigint)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_before bigint;
begin
	select w.ms into v_before from tacho.watermark w where w.name = _swap_watermark.name;
	insert into tacho.watermark as w (name, ms)
	values (_swap_watermark.name, _swap_watermark.ms)
	on conflict on constraint watermark_pkey do update set ms = excluded.ms;
	return v_before;
end
$$;
comment on function tacho._swap_watermark is 'sets a watermark and returns its old value, null when there was none';

create function tacho._record_statements(now_ms bigint)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	c_longest constant bigint := 3600000;
	v_pgss constant text := tacho._pgss();
	v_sees_all constant boolean := pg_has_role('pg_read_all_stats', 'usage');
	v_before_ms bigint;
	v_reset_ms bigint;
	v_is_other_reset boolean;
	v_was_reset boolean;
	v_all_ms bigint;
	v_knows_others boolean;
	v_count integer;
begin
	if v_pgss is null or not (select statements from tacho.setting) then
		return 0;
	end if;
	v_before_ms := tacho._swap_watermark('statements', now_ms);
	v_reset_ms := tacho._pgss_reset_ms(v_pgss);
	v_is_other_reset := coalesce(nullif(tacho._swap_watermark('statements reset', v_reset_ms), 0) <> nullif(v_reset_ms, 0), false);
	v_was_reset := v_is_other_reset and v_reset_ms >= v_before_ms;
	if v_is_other_reset and not v_was_reset then
		v_before_ms := 0;
		perform tacho._swap_watermark('statements of all', 0);
	end if;
	select ms into v_all_ms from tacho.watermark where name = 'statements of all';
	v_all_ms := case when v_was_reset then now_ms else coalesce(v_all_ms, v_before_ms) end;
	v_knows_others := now_ms - v_all_ms <= c_longest;
	if v_sees_all or v_was_reset then
		perform tacho._swap_watermark('statements of all', now_ms);
	end if;
	-- $1 is the time of this pass, $2 ms since the last one. $3 says whether its differences count,
	-- $4 whether all entries began again. $5 says whether entries of other roles were known, $6
	-- whether they are now. An old entry that no pass had seen is one of a server that has taken
	-- over. Entries begin when a statement is analysed, but are hidden until its first execution ends.
	-- So an entry counts if it had one call, or began less than an hour before the last pass that
	-- could see it: $7 for entries of this role, $8 for others. A dropped role or database keeps its name.
	execute format($sql$
		with last as materialized (
			select k.*, l.counters, l.extremes
			from tacho.statement_last l
			join tacho.statement k on k.id = l.statement
		), s as materialized (
			select n.query_id, coalesce(n.database, l.database) as database, coalesce(n.username, l.username) as username, n.toplevel,
				n.stats_since, n.user_oid, n.database_oid, n.counters, n.extremes, l.counters as before, l.extremes as before_extremes
			from (%1$s) n
			left join last l on (l.query_id, l.user_oid, l.database_oid, l.toplevel) = (n.query_id, n.user_oid, n.database_oid, n.toplevel)
				and l.stats_since is not distinct from n.stats_since
		), fresh as (
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
			select k.id, k.stats_since, s.user_oid = quote_ident(current_user)::regrole as is_own, s.counters, s.extremes,
				s.before, s.before_extremes
			from s
			join known k on (k.query_id, k.user_oid, k.database_oid, k.toplevel) = (s.query_id, s.user_oid, s.database_oid, s.toplevel)
				and (k.stats_since, k.database, k.username) is not distinct from (s.stats_since, s.database, s.username)
		), kept as (
			insert into tacho.statement_last as l (statement, counters, extremes)
			select id, counters, extremes
			from seen
			where (before, before_extremes) is distinct from (counters, extremes)
			on conflict (statement) do update set counters = excluded.counters, extremes = excluded.extremes
		), gone as (
			delete from tacho.statement_last l
			using tacho.statement s
			where s.id = l.statement
				and not exists (select from seen where seen.id = l.statement)
				and ($6 or not $5 or s.user_oid = quote_ident(current_user)::regrole)
		)
		insert into tacho.statement_counters (statement, pass_ms, elapsed_ms, calls, rows, total_exec_us, total_plan_us,
			io_us, shared_blks_hit, shared_blks_read, shared_blks_dirtied, shared_blks_written, temp_blks_read,
			temp_blks_written, wal_bytes)
		select d.id, $1, $2, d.v[1], d.v[2], d.v[3], d.v[4], d.v[5], d.v[6], d.v[7], d.v[8], d.v[9],
			d.v[10], d.v[11], d.v[12]
		from (
			select id, array(
				select c - case when is_one_life then before[i] else 0 end
				from unnest(counters) with ordinality u (c, i)
				order by i) as v
			from (
				select id, counters, before, before is not null and not $4
					and tacho._is_one_life(before, case when stats_since is null then before_extremes end, counters, extremes) as is_one_life
				from seen
				where $3
					and (before is not null or $4
						or (is_own or $5) and (counters[1] = 1
							or coalesce(stats_since >= case when is_own then $7 else $8 end - interval '1 hour', true)))
					and ($4 or (before, before_extremes) is distinct from (counters, extremes))
			) x
		) d
		where exists (select from unnest(d.v) c where c <> 0)$sql$, tacho._pgss_sql(v_pgss))
	using now_ms, now_ms - v_before_ms, v_before_ms > 0 and now_ms - v_before_ms between 1 and c_longest, v_was_reset,
		v_knows_others, v_sees_all, tacho._time(v_before_ms * 1000), tacho._time(v_all_ms * 1000);
	get diagnostics v_count = row_count;
	return v_count;
end
$$;
comment on function tacho._record_statements is 'adds the differences of the counters of pg_stat_statements; the first time only looks at them';

create function tacho._forget_statements(now_ms bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	delete from tacho.statement_counters
	where pass_ms < now_ms - (select extract(epoch from statement_retention) * 1000 from tacho.setting);
	delete from tacho.statement s
	where not exists (select from tacho.statement_last l where l.statement = s.id)
		and not exists (select from tacho.statement_counters c where c.statement = s.id);
end
$$;
comment on function tacho._forget_statements is 'deletes statement statistics older than statement_retention, and entries that are gone';

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
	c_longest constant bigint := 3600000; -- of _record_statements()
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
					greatest(%2$s, 0) as b,
					s.query_id, s.database, s.username,
					sum(c.calls)::bigint as calls, sum(c.rows)::bigint as rows, sum(c.total_exec_us) as exec_us,
					sum(c.total_plan_us) as plan_us, sum(c.io_us) as io_us, sum(c.shared_blks_hit)::bigint as hit,
					sum(c.shared_blks_read)::bigint as read, sum(c.temp_blks_written)::bigint as written, sum(c.wal_bytes)::bigint as wal
				from tacho.statement_counters c
				join tacho.statement s on s.id = c.statement
				where c.pass_ms * 1000 - c.elapsed_ms * 500 >= %3$s and c.pass_ms * 1000 - c.elapsed_ms * 500 < %4$s
					and c.pass_ms between (%3$s) / 1000 and (%4$s) / 1000 + %8$s
					and %5$s and %6$s and %7$s
				group by 1, 2, 3, 4
			) g
		) r
		where rank <= $2
		order by b, rank$sql$,
		case when q.edges_us is null then format('%s::bigint + %s::bigint * b', q.origin_us, q.width_us) else '$1[b + 1]' end,
		tacho._bucket_sql(q, 'c.pass_ms - (c.elapsed_ms + 1) / 2'), q.since_us, q.until_us,
		case when queries is null then 'true' else tacho._accept_sql('s.query_id::text', tacho._parse_filter('query_id', queries)) end,
		case when databases is null then 'true' else tacho._accept_sql('s.database', tacho._parse_filter('database', databases)) end,
		case when usernames is null then 'true' else tacho._accept_sql('s.username', tacho._parse_filter('username', usernames)) end,
		c_longest)
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
'Cost of each statement in a window, by the statistics of pg_stat_statements, the most expensive first. With bucket, the n most expensive of each bucket. Buckets begin at multiples of their width on the clock of the session''s time zone. The counters of a pass belong to the bucket with the middle of its interval. Example: select * from tacho.statements_history(since => now() - interval ''15 minutes'');');
