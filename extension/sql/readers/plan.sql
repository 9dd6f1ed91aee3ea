create function tacho.plan(
	plan_id text,
	diff text default null,
	query_id text default null,
	database text default null,
	username text default null,
	node text default null
)
returns table (
	node_number bigint,
	depth bigint,
	node_type text,
	relation text,
	schema text,
	alias text,
	index_name text,
	condition text,
	rows bigint,
	width bigint,
	startup_cost numeric,
	total_cost numeric,
	explain text,
	plan_id bigint,
	query_id bigint,
	database text,
	username text,
	recorded_at timestamptz,
	differs text,
	other text,
	plan_json text,
	settings text,
	table_rows bigint,
	table_pages bigint,
	hint text,
	hint_lacks text,
	actual_rows numeric,
	actual_loops bigint,
	is_lower_bound boolean,
	measured_at timestamptz,
	plan_type text,
	advice text,
	advice_lacks text,
	analyzed_at timestamptz
)
language c volatile parallel restricted
cost 10000 rows 20
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.plan is
'The nodes of a plan, in the order of EXPLAIN: one row for each node, with what it reads, its conditions and keys, and its estimated rows, width (bytes) and cost. explain has the lines that EXPLAIN prints for the node. plan_json, in the first row, has the whole plan as EXPLAIN (FORMAT JSON) for viewers of plans. settings, in the first row, has the settings of the planner that were not the default at that time, one a line. plan_type, in the first row, is custom if the plan was made for given values of the parameters, and generic if for any values. It is null if that is not known. table_rows and table_pages have the size of the table that its last VACUUM or ANALYZE found. analyzed_at is the time of the last ANALYZE of the table before the plan was recorded, by hand or by autovacuum. hint, in the first row, is a comment for the extension pg_hint_plan: in front of the query it brings the plan back. hint_lacks has what no hint says, one sentence a line. advice, in the first row, has commands for the extension pg_stash_advice of PostgreSQL 19, which bring the plan back without a change of the query. advice_lacks has what no advice says. actual_rows and actual_loops have what each node gave in one execution (setting tacho.plan_actuals), which was recorded at measured_at. With is_lower_bound the node may have ended before its last row, as below a LIMIT or when the query was cancelled. Values are not recorded: each constant is a question mark. A function, operator or type that is not PostgreSQL''s own is shown with its OID. A plan is recorded once a day for each database, role and query that executes it, and after each execution that was counted. The newest recorded one is shown, or one with actual rows of the day before it. With diff, the id of a second plan of the query, the rows of both plans follow each other. Column differs says how a node differs from the other plan. Column other has the part of that plan in its place. Filters: query_id, database, username. If no tree of the plan is recorded, a notice says why. Example: select explain from tacho.plan(''2305843009213693951'');';
