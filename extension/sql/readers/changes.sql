create function tacho._changes(
	since timestamptz default null,
	until timestamptz default null,
	at timestamptz default null,
	before_since timestamptz default null,
	before_until timestamptz default null,
	n integer default 5,
	tz text default null,
	node text default null
)
returns table (
	rank bigint,
	kind text,
	rule text,
	dimension text,
	key text,
	query_text text,
	started timestamptz,
	ended timestamptz,
	before numeric,
	after numeric,
	difference numeric,
	pct numeric,
	unit text,
	explains text,
	database text,
	username text,
	application text,
	client_addr text,
	explanation text,
	next text,
	period_start timestamptz,
	period_end timestamptz,
	before_start timestamptz,
	before_end timestamptz,
	coverage_pct numeric,
	before_coverage_pct numeric
)
language c volatile parallel restricted
cost 10000 rows 40
set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'tacho_reader';

comment on function tacho._changes is
'The rows of tacho.changes(), with full timestamps. Example: select rank, rule, explanation from tacho._changes();';


create function tacho.changes(
	since timestamptz default null,
	until timestamptz default null,
	at text default null,
	before_since timestamptz default null,
	before_until timestamptz default null,
	n integer default 5,
	tz text default null,
	node text default null
)
returns table (
	/* COLUMNS OF _changes */
)
language sql volatile parallel restricted
cost 10000 rows 40
set search_path = pg_catalog, pg_temp
begin atomic
	select c.*
	from tacho._changes(
		since => changes.since,
		until => changes.until,
		at => tacho._moment(changes.at, changes.tz),
		before_since => changes.before_since,
		before_until => changes.before_until,
		n => changes.n,
		tz => changes.tz,
		node => changes.node
	) c;
end;

comment on function tacho.changes is
'The difference from a normal time, and its causes. The causes come first, each with the queries (explains) that can follow from it by the rules of docs/changes.md. Then comes the difference in load by queries, waits, blockers, applications, users, clients, databases and each key of tags. With "at" the window is half an hour around a moment; "03:12" is the last such time in tz (default: zone of the session). Without before_since and before_until the window is compared with the same length before the load left its usual range. In each dimension before, after, difference and pct (of the whole difference) add up exactly, with (other) for all but the n largest keys. A note says that nothing recorded explains an effect, and names the data that was not recorded. Example: select rank, kind, rule, started, explanation from tacho.changes(at => ''03:12'');';
