/*
 * 10_settings.sql - settings, counters, times
 *
 * Times go through timestamp. An expression that depends on the session's time zone is
 * not immutable, so the server would call it for each row instead of inlining it.
 */
create function tacho._ms(at timestamptz)
returns bigint
language sql immutable parallel safe
return floor(extract(epoch from at at time zone 'UTC') * 1000)::bigint;
comment on function tacho._ms is 'ms since 1970 UTC, rounded down';

create function tacho._us(at timestamptz)
returns bigint
language sql immutable parallel safe
return (extract(epoch from at at time zone 'UTC') * 1000000)::bigint;
comment on function tacho._us is 'microseconds since 1970 UTC';

create function tacho._time(us bigint)
returns timestamptz
language sql immutable parallel safe
return (timestamp 'epoch' + us / 1000000 * interval '1 second' + us % 1000000 * interval '1 microsecond') at time zone 'UTC';
comment on function tacho._time is 'the time of microseconds since 1970 UTC';

create function tacho._count(name text, amount bigint default 1)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
	insert into tacho.counter as c (name, value)
	select _count.name, _count.amount
	where _count.amount <> 0
	on conflict on constraint counter_pkey do update set value = c.value + excluded.value;
$$;
comment on function tacho._count is 'adds to a counter';

create function tacho._mark(
	kind text,
	detail text default null,
	period_start timestamptz default null,
	period_end timestamptz default null
)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
begin atomic
	insert into tacho.marker (marker_time, kind, period_start, period_end, detail)
	values (date_trunc('milliseconds', clock_timestamp()), kind, period_start, period_end, detail);
end;
comment on function tacho._mark is 'adds a marker';

create function tacho._check_setting(s tacho.setting)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
	if s.sample_interval < '10 milliseconds' or s.sample_interval > '1 minute' then
		raise exception 'sample_interval must be between 10 milliseconds and 1 minute'
			using errcode = 'invalid_parameter_value';
	end if;
	if s.period < '10 minutes' or s.period > '31 days' then
		raise exception 'period must be between 10 minutes and 31 days'
			using errcode = 'invalid_parameter_value';
	end if;
	if s.hour_retention < '1 day' or s.statement_retention < '1 hour' then
		raise exception 'hour_retention must be at least 1 day and statement_retention at least 1 hour'
			using errcode = 'invalid_parameter_value';
	end if;
	-- a wait without room has an id above the limit
	if s.dictionary_limit < 1000 or s.dictionary_limit > 1000000000 or s.text_limit < 0 or s.vcpus <= 0 then
		raise exception 'dictionary_limit must be between 1000 and 1000000000, text_limit at least 0, vcpus positive'
			using errcode = 'invalid_parameter_value';
	end if;
end
$$;
comment on function tacho._check_setting is 'complains about settings that make no sense';

create function tacho.configure(name text, value text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
	v_names constant text[] := array['sample_interval', 'period', 'hour_retention', 'record_starts',
		'dictionary_limit', 'text_limit', 'utility_literals', 'statements', 'statement_retention', 'vcpus'];
	v_old tacho.setting;
	v_new tacho.setting;
begin
	if name is null or name <> all (v_names) then
		raise exception 'setting "%" does not exist', name
			using errcode = 'undefined_object',
				hint = format('Available are %s.', array_to_string(v_names, ', '));
	end if;
	select * into strict v_old from tacho.setting for update;
	begin
		execute format('update tacho.setting set %I = %L returning *', name, value) into v_new;
	exception when data_exception or not_null_violation then
		raise exception 'invalid value "%" for setting "%"', value, name
			using errcode = 'invalid_parameter_value';
	end;
	perform tacho._check_setting(v_new);
	if v_new.sample_interval <> v_old.sample_interval then
		perform tacho._mark('interval changed', format('%s to %s', v_old.sample_interval, v_new.sample_interval));
	elsif v_new is distinct from v_old then
		insert into tacho.marker (marker_time, kind, object_class, object_name, old_value, new_value)
		values (date_trunc('milliseconds', clock_timestamp()), 'settings changed', 'setting', name,
			to_jsonb(v_old) ->> name, to_jsonb(v_new) ->> name);
	end if;
end
$$;
comment on function tacho.configure is
'Changes a setting of table tacho.setting. Example: select tacho.configure(''sample_interval'', ''5 seconds'');';
