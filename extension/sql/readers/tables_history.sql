create function tacho.tables_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	n integer default 10,
	order_by text default 'work',
	database text default null,
	tz text default null,
	node text default null
)
returns table (
	period_start timestamptz,
	period_end timestamptz,
	key text,
	database text,
	database_oid bigint,
	oid bigint,
	coverage_pct numeric,
	intervals bigint,
	work bigint,
	scans bigint,
	tuples_returned bigint,
	tuples_fetched bigint,
	tuples_inserted bigint,
	tuples_updated bigint,
	tuples_deleted bigint,
	tuples_hot_updated bigint,
	tuples_newpage_updated bigint,
	blks_read bigint,
	blks_hit bigint,
	vacuum_count bigint,
	autovacuum_count bigint,
	analyze_count bigint,
	autoanalyze_count bigint,
	live_tuples bigint,
	dead_tuples bigint,
	mod_since_analyze bigint,
	ins_since_vacuum bigint,
	last_vacuum timestamptz,
	last_autovacuum timestamptz,
	last_analyze timestamptz,
	last_autoanalyze timestamptz,
	last_scan timestamptz,
	kind text,
	bytes bigint,
	growth_bytes bigint
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.tables_history is
'Activity of tables and indexes of all databases in a window (the last hour by default), or in each bucket of it: a row for each of the n largest by order_by, and (other) for the rest. order_by is work (rows read and written, and blocks read), a counter such as tuples_updated, bytes, or growth_bytes. Every tacho.tables_interval the sampler records the counters of pg_stat_all_tables and pg_stat_all_indexes, without a connection to a database: a row for each of the 100 tables and indexes that did most, and the sum of the others, which is in (other). A table without a row was not among these 100; intervals is the number of records in which it was. A record belongs to the bucket with its middle. key is the name if the history has one, else the OIDs of database and table or index. Names come from recorded plans, and from readings of the catalog (tacho.catalog_interval). kind, bytes (size of the main fork at the end) and growth_bytes come from these readings only. An order by them ranks the tables that did something in the window. last_scan and tuples_newpage_updated need PostgreSQL 16. Filter: database. Example: select key, tuples_returned, dead_tuples, last_autovacuum from tacho.tables_history(since => now() - interval ''1 day'', order_by => ''blks_read'');';
