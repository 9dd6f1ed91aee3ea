/*
 * 66_schedule.sql - start, stop, and the loop
 *
 * run_sampler() is one long call. It takes a tick in every slot at a random moment, each
 * in its own transaction. So it needs one connection, plans are kept, and the sampler
 * goes on when all other connections are taken. pg_cron starts it again when it has
 * ended; any version will do, because no schedule in seconds is needed.
 *
 * Settings of its role or database do not stop it. Its transactions write, at level read
 * committed, and no timeout of theirs ends them. Only statement_timeout is counted from
 * the begin of the call and cannot be changed in it. The sampler ends before that
 * timeout and counts such ends; start() says what to do.
 */
create function tacho._settle()
returns void
language sql volatile
begin atomic
	select
		set_config('search_path', 'pg_catalog, pg_temp', true),
		-- how others know it, see 25_sampler.sql
		set_config('application_name', 'tacho sampler', true),
		case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '0', true) end; -- 17
end;
comment on function tacho._settle is 'settings of a transaction of the sampler';

create procedure tacho.run_sampler(duration interval default null)
language plpgsql
as $$
declare
	c_spare constant interval := '500 milliseconds';
	v_end constant timestamptz := pg_catalog.clock_timestamp() operator(pg_catalog.+) duration;
	v_timeout constant timestamptz := (
		select pg_catalog.statement_timestamp() operator(pg_catalog.+)
			pg_catalog.make_interval(secs => pg_catalog.float8(s.setting) operator(pg_catalog./) 1000)
		from pg_catalog.pg_settings s
		where s.name operator(pg_catalog.=) 'statement_timeout' and s.setting operator(pg_catalog.<>) '0');
	v_minute bigint;
	v_interval_ms bigint;
	v_result text;
	v_wait double precision;
begin
	if pg_catalog.pg_is_in_recovery() then
		raise notice 'the sampler ends: standby';
		return;
	end if;
	loop
		commit;
		set transaction isolation level read committed, read write; -- before any query
		if pg_catalog.to_regprocedure('tacho.take_sample()') is null then
			raise notice 'the sampler ends: tacho was removed';
			return;
		end if;
		perform tacho._settle();
		v_result := tacho.take_sample();
		commit;
		set transaction isolation level read committed, read write;
		perform tacho._settle();
		if v_result in ('off', 'standby') then
			raise notice 'the sampler ends: %', v_result;
			return;
		elsif v_result = 'canceled' then
			raise exception 'canceling the sampler due to user request'
				using errcode = 'query_canceled';
		end if;
		if v_minute is distinct from tacho._ms(clock_timestamp()) / 60000 then
			v_minute := tacho._ms(clock_timestamp()) / 60000;
			perform tacho.maintain();
			commit;
			set transaction isolation level read committed, read write;
			perform tacho._settle();
		end if;
		exit when clock_timestamp() >= v_end;
		select (extract(epoch from sample_interval) * 1000)::bigint into v_interval_ms from tacho.setting;
		v_wait := (v_interval_ms - tacho._ms(clock_timestamp()) % v_interval_ms + random() * 0.8 * v_interval_ms) / 1000;
		if clock_timestamp() + v_wait * interval '1 second' + c_spare >= v_timeout then
			perform tacho._count('runs of the sampler that statement_timeout ended');
			raise notice 'the sampler ends: statement_timeout is near'
				using hint = 'Set statement_timeout = 0 for the role that calls it.';
			return;
		end if;
		commit;
		perform tacho._settle(), pg_catalog.pg_sleep(v_wait);
	end loop;
end
$$;
comment on procedure tacho.run_sampler is
'Takes a tick in every slot and does the maintenance, for the time given or for ever; ends when recording is switched off. Without pg_cron: while true; do psql -c "call tacho.run_sampler()"; sleep 1; done';

create function tacho._cron()
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select exists (select from pg_extension where extname = 'pg_cron')
		and coalesce(has_function_privilege(to_regprocedure('cron.schedule(text, text, text)'), 'execute'), false)
		and coalesce(has_schema_privilege('cron', 'usage'), false);
end;
comment on function tacho._cron is 'true when pg_cron is in this database and may be used';

create function tacho._cron_state()
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_jobs text;
begin
	if not tacho._cron() then
		return 'not available';
	end if;
	execute $c$
		select string_agg(format('job %s, %s', jobid, case when active then 'active' else 'not active' end), '; ' order by jobid)
		from cron.job
		where jobname = 'tacho_sampler' and database = current_database()$c$
	into v_jobs;
	return coalesce(v_jobs, 'available, no job: select * from tacho.start()');
end
$$;
comment on function tacho._cron_state is 'whether pg_cron runs the sampler, as far as this role may know';

create function tacho.start(every interval default null)
returns table (
	step text,
	result text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_job bigint;
begin
	if pg_is_in_recovery() then
		return query select 'start', 'standby: nothing is recorded here; the history of the primary can be read';
		return;
	end if;
	if every is not null then
		perform tacho.configure('sample_interval', every::text);
	end if;
	if not (select enabled from tacho.setting) then
		update tacho.setting set enabled = true;
		perform tacho._mark('start', format('PostgreSQL %s, started %s', current_setting('server_version'),
			tacho._time_text(tacho._us(pg_postmaster_start_time()))));
	end if;
	return query select 'recording', format('on, every %s', (select sample_interval from tacho.setting));
	if not pg_has_role('pg_read_all_stats', 'usage') then
		return query select 'permission', 'missing: grant pg_monitor to ' || quote_ident(current_user) || '; until then only its own sessions are seen';
	end if;
	if current_setting('track_activities')::boolean is false then
		return query select 'track_activities', 'off: sessions show nothing';
	end if;
	if current_setting('statement_timeout') <> '0' then
		return query select 'statement_timeout', format('%s: it ends each run of the sampler, and ticks are missing until the next one; say: alter role %I in database %I set statement_timeout = 0',
			current_setting('statement_timeout'), current_user, current_database());
	end if;
	if tacho._cron() then
		execute 'select cron.schedule($1, $2, $3)'
		into v_job
		using 'tacho_sampler', '* * * * *', $c$call tacho.run_sampler('10 minutes')$c$;
		return query select 'pg_cron', format('job %s runs the sampler; it begins within a minute', v_job);
	else
		return query select 'pg_cron', 'not available in this database; run: while true; do psql -c "call tacho.run_sampler()"; sleep 1; done';
	end if;
	if tacho._pgss() is null then
		return query select 'pg_stat_statements', 'not available in this database: no query texts, no statement history';
	end if;
end
$$;
comment on function tacho.start is
'Switches recording on, and lets pg_cron run the sampler when it is there; may be called again. Example: select * from tacho.start(every => ''1 second'');';

create function tacho.stop()
returns table (
	step text,
	result text
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	if pg_is_in_recovery() then
		return query select 'stop', 'standby: nothing is recorded here';
		return;
	end if;
	if (select enabled from tacho.setting) then
		update tacho.setting set enabled = false;
		perform tacho._mark('stop', 'stop() was called');
	end if;
	return query select 'recording', 'off';
	if tacho._cron() then
		execute $c$select cron.unschedule(jobid) from cron.job where jobname = 'tacho_sampler' and username = current_user$c$;
		return query select 'pg_cron', 'job removed';
	end if;
end
$$;
comment on function tacho.stop is 'Switches recording off; a running sampler ends within a tick. The history stays.';
