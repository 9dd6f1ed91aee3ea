create function tacho.indexes_history(
	since timestamptz default null,
	until timestamptz default null,
	bucket interval default null,
	n integer default 10,
	order_by text default 'unused',
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
	kind text,
	table_name text,
	table_oid bigint,
	known_from timestamptz,
	known_until timestamptz,
	scans bigint,
	tuples_returned bigint,
	tuples_fetched bigint,
	last_scan timestamptz,
	bytes bigint,
	growth_bytes bigint,
	entries bigint
)
language c volatile parallel restricted
cost 10000 rows 10
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho.indexes_history is
'Size and use of indexes in a window (the last hour by default), or in each bucket of it: a row for each of the first n by order_by (unused, which is fewest scans first, then the largest; scans, tuples_returned, tuples_fetched, bytes, growth_bytes). With tacho.catalog_interval the history has all indexes of tables that were among the 100 that did most in some interval. scans is what was counted from known_from to known_until; known_until is null if no reading of the catalog was complete since known_from. bytes is the size of the main fork at the end of the period. An index that was dropped before the end has no row. kind says whether an index is also a constraint: unique index, primary key. A standby counts its own scans: ask each server before you drop an index. last_scan needs PostgreSQL 16. Filter: database. Example: select key, table_name, bytes, known_from, known_until from tacho.indexes_history(since => now() - interval ''1 month'', n => null) where scans = 0 and kind = ''index'';';
