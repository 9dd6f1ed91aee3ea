/*
 * 42_filters.sql - the samples that count: scope, filters, their texts
 *
 * `a,b` is a or b; `!a` is everything but a, null included; `!a,!b` is neither. A list
 * that mixes wanted and unwanted values is an error. `(null)` is a missing value. A value
 * that contains a comma or a quote, or begins with `!` or `(`, stands in double quotes.
 * Each quote in it is doubled.
 */
create function tacho._find_dimension(name text)
returns tacho.dimension
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_found tacho.dimension;
begin
	select * into v_found from tacho.dimension d where d.name = _find_dimension.name;
	if not found then
		raise exception 'dimension "%" does not exist', name
			using errcode = 'undefined_object',
				hint = format('Available are %s.', (select string_agg(d.name, ', ' order by d.position) from tacho.dimension d));
	end if;
	return v_found;
end
$$;
comment on function tacho._find_dimension is 'a dimension by name';

-- The items of a filter as {"any": […], "none": […]}.
create function tacho._parse_filter(name text, body text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_blank constant text := E' \t\n\r\f\v';
	v_rest text := body;
	v_item text;
	v_negated boolean;
	v_any jsonb := '[]';
	v_none jsonb := '[]';
	v_value jsonb;
begin
	loop
		v_rest := ltrim(v_rest, v_blank);
		v_negated := starts_with(v_rest, '!');
		if v_negated then
			v_rest := ltrim(substr(v_rest, 2), v_blank);
		end if;
		if starts_with(v_rest, '"') then
			v_item := substring(v_rest from '^"((?:[^"]|"")*)"');
			if v_item is null then
				raise exception 'filter "%" has an unterminated quoted value', name
					using errcode = 'invalid_parameter_value';
			end if;
			v_rest := ltrim(substr(v_rest, length(v_item) + 3), v_blank);
			v_value := to_jsonb(replace(v_item, '""', '"'));
			if v_rest <> '' and not starts_with(v_rest, ',') then
				raise exception 'filter "%" has text after a quoted value', name
					using errcode = 'invalid_parameter_value',
						hint = 'Separate values by commas.';
			end if;
			v_rest := case when v_rest <> '' then substr(v_rest, 2) end;
		else
			v_item := btrim(split_part(v_rest, ',', 1), v_blank);
			v_rest := case when strpos(v_rest, ',') > 0 then substr(v_rest, strpos(v_rest, ',') + 1) end;
			if v_item = '' then
				raise exception 'filter "%" has an empty value', name
					using errcode = 'invalid_parameter_value',
						hint = 'Write (null) for rows without a value, "" for an empty string, and no filter for all rows.';
			end if;
			v_value := case when v_item = '(null)' then 'null'::jsonb else to_jsonb(v_item) end;
		end if;
		if v_negated then
			v_none := v_none || v_value;
		else
			v_any := v_any || v_value;
		end if;
		exit when v_rest is null;
	end loop;
	if v_any <> '[]' and v_none <> '[]' then
		raise exception 'filter "%" mixes included and excluded values', name
			using errcode = 'invalid_parameter_value',
				hint = 'Write !a,!b to exclude both, or a,b to include either.';
	end if;
	return jsonb_build_object('dimension', name, 'any', v_any, 'none', v_none);
end
$$;
comment on function tacho._parse_filter is 'parses the text of a filter';

-- Numbers must be numbers, labels must exist.
create function tacho._check_value(d tacho.dimension, value jsonb)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_text constant text := value #>> '{}';
begin
	if v_text is null or (d.name = 'query_id' and v_text = '(no query id)') then
		return 'null';
	end if;
	if d.is_number and v_text <> '(cycle)' then
		if v_text ~ '^[+-]?[0-9]+$' and v_text::numeric between -9223372036854775808 and 9223372036854775807 then
			return case when v_text::numeric = 0 then 'null'::jsonb else to_jsonb(v_text::bigint::text) end;
		end if;
		raise exception 'invalid value "%" for filter "%"', v_text, d.name
			using errcode = 'invalid_parameter_value',
				hint = 'Use a whole number, a list of whole numbers, or (null).';
	end if;
	if v_text <> all (d.labels) then
		raise exception 'invalid value "%" for filter "%"', v_text, d.name
			using errcode = 'invalid_parameter_value',
				hint = format('Available are %s.', array_to_string(d.labels, ', '));
	end if;
	return value;
end
$$;
comment on function tacho._check_value is 'a value of a filter as keys are written';

create function tacho._scope_has(scope text, dimension text, value text)
returns boolean
language sql immutable parallel safe
return case
	when scope = 'all' then true
	when dimension = 'category' then coalesce(value = 'foreground', false)
	when dimension = 'state' and scope = 'load' then coalesce(value in ('active', 'fastpath function call'), false)
	when dimension = 'state' then coalesce(value <> 'idle', false)
	when dimension = 'wait_event' and scope = 'load' then coalesce(value not in ('Client:ClientRead', 'ClientRead'), true)
	else true
end;
comment on function tacho._scope_has is 'true when samples with a value of a dimension may count in a scope';

create function tacho._check_scope(scope text, filter jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_dimension constant text := filter ->> 'dimension';
	v_value text;
begin
	for v_value in select value from jsonb_array_elements_text(filter -> 'any') loop
		continue when tacho._scope_has(scope, v_dimension, v_value);
		raise exception 'filter "%" is outside the scope', v_dimension
			using errcode = 'invalid_parameter_value',
				detail = format('Scope "%s" has no samples with %s %s.', scope, v_dimension,
					coalesce('"' || v_value || '"', '(null)')),
				hint = format('Use scope "%s".',
					case when tacho._scope_has('foreground', v_dimension, v_value) then 'foreground' else 'all' end);
	end loop;
end
$$;
comment on function tacho._check_scope is 'refuses a filter that asks for what the scope leaves out';

-- ClientRead becomes Client:ClientRead when only one class has it.
create function tacho._qualify_wait(q tacho.question, value jsonb)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_bare constant text := value #>> '{}';
	v_found text[];
begin
	if v_bare is null or strpos(v_bare, ':') > 0 or v_bare = 'CPU*' then
		return value;
	end if;
	execute format($sql$
		select array_agg(distinct k order by k)
		from (
			select (%s) collate "C" as k from tacho.activity
			where wait_event = $1 and slot in (select slot from tacho._slots(%s, %s))
			union all
			select w.value collate "C" from tacho.word w where w.value like '%%:' || $2
			union all
			select 'CPU:' || $1 where $1 in ('running', 'runnable', 'uninstrumented')
		) x
		where split_part(k, ':', 2) = $1
	$sql$, (select expression from tacho.dimension where name = 'wait_event'), q.since_us / 1000, q.until_us / 1000)
	into v_found
	using v_bare, regexp_replace(v_bare, '([%_\\])', '\\\1', 'g');
	if cardinality(v_found) > 1 then
		raise exception 'wait event "%" is ambiguous', v_bare
			using errcode = 'invalid_parameter_value',
				detail = format('Candidates are %s.', array_to_string(v_found, ', ')),
				hint = 'Write class and name as Type:Event.';
	end if;
	return to_jsonb(coalesce(v_found[1], v_bare));
end
$$;
comment on function tacho._qualify_wait is 'completes the bare name of a wait event by what is recorded in the window';

create function tacho._map_filter(d tacho.dimension, filter jsonb, part text)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
begin atomic
	select coalesce(jsonb_agg(tacho._check_value(d, e.value) order by e.ordinality), '[]')
	from jsonb_array_elements(filter -> part) with ordinality e;
end;
comment on function tacho._map_filter is 'checks the values of a part of a filter';

create function tacho._select(q tacho.question, node text)
returns tacho.question
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_dimension tacho.dimension;
	v_filter jsonb;
	v_filters jsonb := '[]';
begin
	if q.scope not in ('load', 'foreground', 'all') then
		raise exception 'invalid scope "%"', q.scope
			using errcode = 'invalid_parameter_value',
				hint = 'Available scopes are load, foreground, all.';
	end if;
	for v_dimension in
		select d.* from tacho.dimension d where q.filters ->> d.name is not null order by d.position
	loop
		v_filter := tacho._parse_filter(v_dimension.name, q.filters ->> v_dimension.name);
		v_filter := v_filter || jsonb_build_object(
			'any', tacho._map_filter(v_dimension, v_filter, 'any'),
			'none', tacho._map_filter(v_dimension, v_filter, 'none'));
		perform tacho._check_scope(q.scope, v_filter);
		v_filters := v_filters || jsonb_build_array(v_filter);
	end loop;
	perform tacho._check_node(node);
	q.filters := coalesce((
		select jsonb_agg(
			case when f.value ->> 'dimension' <> 'wait_event' then f.value
			else f.value || jsonb_build_object(
				'any', (select coalesce(jsonb_agg(tacho._qualify_wait(q, e.value) order by e.ordinality), '[]')
					from jsonb_array_elements(f.value -> 'any') with ordinality e),
				'none', (select coalesce(jsonb_agg(tacho._qualify_wait(q, e.value) order by e.ordinality), '[]')
					from jsonb_array_elements(f.value -> 'none') with ordinality e))
			end order by f.ordinality)
		from jsonb_array_elements(v_filters) with ordinality f), '[]');
	return q;
end
$$;
comment on function tacho._select is 'checks scope, filters and node of a question';

create function tacho._one_of_sql(expression text, items jsonb)
returns text
language sql immutable parallel safe
return format('case when (%1$s) is null then %3$L else (%1$s) collate "C" = any (%2$L::text[]) end',
	expression,
	array(select v from jsonb_array_elements_text(items) v where v is not null)::text,
	items @> '[null]');
comment on function tacho._one_of_sql is 'SQL: the key is one of these';

create function tacho._accept_sql(expression text, filter jsonb)
returns text
language sql immutable parallel safe
return format('(%s and not %s)',
	case when filter -> 'any' = '[]' then 'true' else tacho._one_of_sql(expression, filter -> 'any') end,
	tacho._one_of_sql(expression, filter -> 'none'));
comment on function tacho._accept_sql is 'SQL: a filter accepts the key';

create function tacho._side_sql(q tacho.question, side text, marked boolean)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_sql text;
begin
	select string_agg(tacho._accept_sql(d.expression, f), ' and ')
	into v_sql
	from jsonb_array_elements(q.filters) f
	join tacho.dimension d on d.name = f ->> 'dimension'
	where d.side = _side_sql.side;
	v_sql := coalesce(v_sql, 'true');
	if side = 'activity' then
		v_sql := v_sql || case when marked then '' else ' and marked & 1 = 0' end || case q.scope
			when 'load' then $a$ and state in ('active', 'fastpath function call') and (wait_event_type, wait_event) <> ('Client', 'ClientRead')$a$
			when 'foreground' then $a$ and state not in ('idle', '')$a$
			else '' end;
	elsif side = 'session' then
		v_sql := v_sql || case when q.by_leader then ' and leader = 0' else '' end
			|| case when q.scope <> 'all' then $a$ and category is not distinct from 'foreground'$a$ else '' end;
	end if;
	return v_sql;
end
$$;
comment on function tacho._side_sql is 'SQL: a row of a dictionary passes scope and filters';
