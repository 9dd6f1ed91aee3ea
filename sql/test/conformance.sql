/*
 * conformance.sql - runs the cases of a file
 */
-- Compares only the members of a document that are expected.
create function test.same(got json, expected json, key text, mode text)
returns boolean
language plpgsql
as $$
declare
	v_got constant text := got #>> '{}';
	v_expected constant text := expected #>> '{}';
begin
	return case
		when json_typeof(expected) = 'object' then json_typeof(got) = 'object' and not exists (
			select from json_each(expected) e
			where not test.same(got -> e.key, e.value, e.key, mode))
		when json_typeof(expected) = 'array' then json_typeof(got) = 'array'
			and json_array_length(got) = json_array_length(expected)
			and not exists (
				select from json_array_elements(expected) with ordinality e
				where not test.same(got -> (e.ordinality - 1)::integer, e.value, key, mode))
		when mode = 'hours' and key ~ '^source(_[12])?$' and v_expected = 'raw' then v_got in ('raw', 'hour', 'raw, hour')
		when mode = 'hours' and key ~ '^peak_sessions(_[12])?$' and v_got is null then true
		when v_expected ~ '^\d{4}-\d\d-\d\dT.*Z$' then v_got::timestamptz is not distinct from v_expected::timestamptz
		else v_got is not distinct from v_expected
	end;
end
$$;

create function test.call_sql(c json)
returns text
language sql
return format('select row_to_json(x) as line from tacho.%I(%s) x', c ->> 'function',
	(select string_agg(format('%I => %L', a.key, a.value), ', ') from json_each_text(c -> 'arguments') a));

create function test.conform(c json, mode text)
returns text
language plpgsql
as $$
declare
	v_got json;
	v_expected json;
	v_n integer := 0;
	v_field record;
	v_state text;
	v_message text;
	v_detail text;
	v_hint text;
begin
	perform set_config('timezone', coalesce(c ->> 'zone', 'UTC'), false);
	begin
		for v_got in execute test.call_sql(c) loop
			v_expected := c -> 'rows' -> v_n;
			v_n := v_n + 1;
			if v_expected is null then
				return format('unexpected row %s: %s', v_n, v_got);
			end if;
			for v_field in select * from json_each(v_expected) loop
				if not test.same(v_got -> v_field.key, v_field.value, v_field.key, mode) then
					return format('row %s, %s: got %s, expected %s', v_n, v_field.key,
						coalesce(v_got ->> v_field.key, 'null'), coalesce(v_field.value #>> '{}', 'null'));
				end if;
			end loop;
		end loop;
	exception when others then
		get stacked diagnostics v_state = returned_sqlstate, v_message = message_text,
			v_detail = pg_exception_detail, v_hint = pg_exception_hint;
		if c -> 'error' is null then
			return format('error %s: %s', v_state, v_message);
		end if;
		for v_field in select * from json_each_text(c -> 'error') loop
			if v_field.value is distinct from (case v_field.key when 'sqlstate' then v_state when 'message' then v_message
				when 'detail' then v_detail when 'hint' then v_hint end)
			then
				return format('%s: got %s / %s / %s / %s, expected %s', v_field.key, v_state, v_message, v_detail, v_hint, v_field.value);
			end if;
		end loop;
		return null;
	end;
	if c -> 'error' is not null then
		return 'no error';
	end if;
	if v_n <> json_array_length(c -> 'rows') then
		return format('%s rows, expected %s', v_n, json_array_length(c -> 'rows'));
	end if;
	return null;
end
$$;

-- a case that needs something is about data that the edition does not record
create function test.conformance(file json, mode text)
returns setof text
language sql
as $$
	select case
		when c ->> 'needs' is not null then format('%s: skipped, needs %s', c ->> 'name', c ->> 'needs')
		else coalesce('not ok ' || (c ->> 'name') || ': ' || test.conform(c, mode), 'ok') end
	from json_array_elements(file -> 'cases') c
$$;
