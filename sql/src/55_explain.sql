/*
 * 55_explain.sql - the plan of an answer: known to be unknown
 */
create type tacho.explained as (
	scan bigint,
	plan text,
	period_start timestamptz,
	period_end timestamptz,
	first_tick bigint,
	last_tick bigint,
	files bigint,
	parts bigint,
	bytes bigint,
	why text
);
comment on type tacho.explained is 'the columns of explain()';

create function tacho._explain()
returns setof tacho.explained
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
	raise notice 'the SQL edition has no files whose plan could be explained'
		using hint = 'The extension has; tables are read here, as auto_explain with log_nested_statements shows.';
end
$$;
comment on function tacho._explain is 'says so';

call tacho._reader($decl$explain(
	function text,
	dimension text default null,
	since timestamptz default null,
	until timestamptz default null,
	n integer default null,
	bucket interval default null,
	order_by text default null,
	by text default null,
	since_1 timestamptz default null,
	until_1 timestamptz default null,
	since_2 timestamptz default null,
	until_2 timestamptz default null,
	FILTERS
	scope text default null,
	tz text default null,
	node text default null,
	by_leader boolean default null,
	at timestamptz default null,
	before_since timestamptz default null,
	before_until timestamptz default null,
	metric text default null,
	object text default null,
	toplevel text default null,
	width integer default null
)
returns setof tacho.explained rows 1$decl$,
'select * from tacho._explain()',
'How an answer of the extension would be read from its files. The SQL edition has no files: no rows, and a notice that says so.');
