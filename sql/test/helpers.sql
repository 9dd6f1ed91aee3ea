/*
 * helpers.sql - what tests say
 */
set timezone = 'UTC';
create schema test;

create function test.equal(got text, expected text, what text)
returns void
language plpgsql
as $$
begin
	if got is distinct from expected then
		raise exception E'%\n     got: %\nexpected: %', what, coalesce(got, 'NULL'), coalesce(expected, 'NULL');
	end if;
end
$$;

-- The SQLSTATE and message of a statement that must fail.
create function test.error(statement text)
returns text
language plpgsql
as $$
declare
	v_state text;
	v_message text;
begin
	execute statement;
	return 'no error';
exception when others then
	get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
	return v_state || ': ' || v_message;
end
$$;

-- The rows of a query, one string.
create function test.rows(query text)
returns text
language plpgsql
as $$
declare
	v_rows text;
begin
	execute format('select string_agg(x::text, '' '') from (%s) x', query) into v_rows;
	return v_rows;
end
$$;
