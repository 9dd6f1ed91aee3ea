create function tacho.explain(
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
	/* FILTERS */
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
returns table (
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
)
language c volatile parallel restricted
cost 10000 rows 4
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.explain is
'How a function would read the history for an answer, and why: for each window (scan) a row for consecutive parts that are read in the same way. A row with the plan "columns" has the columns that are read without adding up samples; why names their tables. Reads that depend on the data found are not in the plan. explain takes the arguments of that function by name, with the same defaults; an argument that is null is left out. It reads only the indexes of files. Dimensions and filters: {DIMENSIONS}. Example: select plan, period_start, period_end, files, bytes, why from tacho.explain(''top'', ''query_id'', since => now() - interval ''1 day'');';
