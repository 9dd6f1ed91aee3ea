# A recorded plan has what the planner knew: settings that are not the default, and the
# sizes of tables. tacho.plan_changes() says what of it differs between two plans.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use TachoStatements qw(pgbench_script run_pgbench);
use TachoTest qw(tacho_cluster wait_until_in_history);
use Test::More;

my $node = tacho_cluster('planner_inputs', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.statements_interval = 500ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
autovacuum = off
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(q{
	CREATE TABLE t (a int, b int, c text);
	INSERT INTO t SELECT n, n % 10, 'x' FROM generate_series(1, 1000) n;
	CREATE INDEX t_a ON t (a);
	CREATE TABLE u (a int);
	VACUUM ANALYZE t});

# A column of the newest plan of the statement with this text, once it is recorded.
sub plan_of
{
	my ($text, $column, $which) = @_;

	$which //= 'node_number = 1';
	$node->poll_query_until('postgres', qq{
		SELECT count(*) > 0 FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid),
			tacho.plan(plan_id::text, query_id => queryid::text) WHERE query LIKE '$text%'}) or die "no plan of $text";
	return sql(qq{
		SELECT $column FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid),
			tacho.plan(plan_id::text, query_id => queryid::text) WHERE query LIKE '$text%' AND $which});
}

# Each setting that EXPLAIN prints gets another value than the default: the next one, another
# name, twice the number, or the middle of its range.
my $set = sql(q{
	SELECT string_agg(format('SET %I = %L', name, CASE vartype
			WHEN 'bool' THEN CASE boot_val WHEN 'on' THEN 'off' ELSE 'on' END
			WHEN 'enum' THEN (SELECT v FROM unnest(enumvals) v WHERE v <> boot_val ORDER BY v LIMIT 1)
			WHEN 'integer' THEN (CASE WHEN boot_val::int < max_val::int THEN boot_val::int + 1 ELSE boot_val::int - 1 END)::text
			ELSE CASE WHEN boot_val::float8 > 0 AND boot_val::float8 * 2 <= max_val::float8 THEN boot_val::float8 * 2
				ELSE (min_val::float8 + max_val::float8) / 2 END::text END), '; ')
	FROM pg_settings WHERE pg_settings_get_flags(name) @> '{EXPLAIN}' AND vartype <> 'string' AND context IN ('user', 'superuser')});
my $names = () = $set =~ /SET /g;
cmp_ok($names, '>', 40, 'there are settings of the planner to compare');
my $query = 'SELECT c, count(*) FROM t GROUP BY c';
my ($explained) = sql("$set; EXPLAIN (SETTINGS) $query") =~ /^Settings: (.*)$/m;
sql("$set; $query");
my $expected = join "\n", sort map { s/'//gr } split /, (?=\w+ = ')/, $explained;
is(join("\n", sort split /\n/, plan_of('SELECT c, count', 'settings')), $expected, 'a recorded plan has the settings that EXPLAIN (SETTINGS) prints');
is(scalar(split /\n/, $expected), $names, 'a recorded plan has each setting that was changed');
is(plan_of('SELECT c, count', "(plan_json::json->0->'Settings'->>'work_mem')"), '4097kB', 'the JSON of a plan has its settings');

sql("SET work_mem = '64MB'; SET effective_cache_size = '3TB'; SET random_page_cost = 1.25; SELECT 1 AS sizes");
like(plan_of('SELECT $1 AS sizes', "replace(settings, E'\\n', ', ')"), qr/^effective_cache_size = 3TB, random_page_cost = 1.25, work_mem = 64MB$/, 'a size has the unit of SHOW');
sql('SELECT 1, 2');
is(plan_of('SELECT $1, $2', "settings IS NULL AND table_rows IS NULL"), 't', 'nothing is recorded of defaults, nor of a plan without a table');
sql('SELECT t.b FROM t CROSS JOIN u');
is(plan_of('SELECT t.b', "concat(table_rows, ' ', table_pages)", "relation = 't'"),
	sql("SELECT concat(reltuples, ' ', relpages) FROM pg_class WHERE oid = 't'::regclass"), 'a scan has the size that pg_class has for its table');
is(plan_of('SELECT t.b', 'table_rows IS NULL', "relation = 'u'"), 't', 'a table without VACUUM or ANALYZE has no size');

# the last ANALYZE of each table, by hand or by autovacuum
is(plan_of('SELECT t.b', 'analyzed_at', "relation = 't'"), sql("SELECT last_analyze FROM pg_stat_all_tables WHERE relid = 't'::regclass"),
	'a scan has the time at which its table was analyzed last');
is(plan_of('SELECT t.b', 'analyzed_at IS NULL', "relation = 'u'"), 't', 'a table without ANALYZE has no time');
is( plan_of('SELECT t.b', "plan_json ~ ('\"Last Analyze\":\"' || to_char((SELECT last_analyze FROM pg_stat_all_tables WHERE relid = 't'::regclass) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || '[+]00\"')"),
	't', 'the JSON of a plan has the time in UTC');
my ($plan_id, $query_id) = split /[|]/, sql(q{SELECT plan_id, queryid FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE 'SELECT t.b%'});
my ($shown) = run_command([ $ENV{TACHO_PROGRAM}, 'plan', $plan_id, '--query-id', $query_id, '--tape', $node->data_dir . '/tacho', '--tz', 'UTC' ]);
is( join(' ', $shown =~ /Last Analyze: (.*) UTC$/mg), sql(q{SELECT to_char(last_analyze AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM pg_stat_all_tables WHERE relid = 't'::regclass}),
	'the command line prints the time below the scan');
sql('CREATE TEMPORARY TABLE w AS SELECT 1 AS a; ANALYZE w; SELECT w.a FROM w');
is(plan_of('SELECT w.a', 'analyzed_at IS NULL', "relation = 'w'"), 't', 'a temporary table has no time');
sql('ANALYZE pg_database; SELECT datname FROM pg_database');
is(plan_of('SELECT datname FROM pg_database', 'analyzed_at', "relation = 'pg_database'"),
	sql("SELECT last_analyze FROM pg_stat_all_tables WHERE relid = 'pg_database'::regclass"), 'a catalog that all databases share has its time');
$node->append_conf('postgresql.conf', "autovacuum_naptime = 1s\nautovacuum_analyze_threshold = 1\nautovacuum_analyze_scale_factor = 0");

# Lets autovacuum work until it has analyzed a table.
sub analyze
{
	my ($table) = @_;

	$node->append_conf('postgresql.conf', 'autovacuum = on');
	$node->reload;
	$node->poll_query_until('postgres', "SELECT last_autoanalyze IS NOT NULL FROM pg_stat_all_tables WHERE relid = '$table'::regclass") or die 'no autovacuum';
	$node->append_conf('postgresql.conf', 'autovacuum = off');
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type ~ 'autovacuum'}) or die 'autovacuum goes on';
	return;
}
sql('CREATE TABLE x (a int); INSERT INTO x SELECT generate_series(1, 100)');
analyze('x');
sql('SELECT x.a FROM x');
is(plan_of('SELECT x.a', 'analyzed_at', "relation = 'x'"), sql("SELECT last_autoanalyze FROM pg_stat_all_tables WHERE relid = 'x'::regclass"),
	'an ANALYZE by autovacuum counts');
sql('ANALYZE x');
is(plan_of('SELECT x.a', "analyzed_at < (SELECT last_analyze FROM pg_stat_all_tables WHERE relid = 'x'::regclass)", "relation = 'x'"), 't', 'a recorded plan keeps its time');

# a setting of the sessions, then a table that has grown
my $lookup = pgbench_script($node, 'lookup', "\\set a random(1, 1000)\nSELECT c FROM t WHERE a = :a;\n");
{
	local $ENV{PGOPTIONS} = '-c enable_seqscan=off -c enable_bitmapscan=off';
	run_pgbench($node, $lookup, '-c', 2, '-t', 20);
}
wait_until_in_history($node);
sql("INSERT INTO t SELECT n, n % 10, 'x' FROM generate_series(1, 2000) n; VACUUM ANALYZE t");
{
	local $ENV{PGOPTIONS} = '-c enable_indexscan=off -c enable_bitmapscan=off';
	run_pgbench($node, $lookup, '-c', 2, '-t', 20);
}
wait_until_in_history($node);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM tacho.plan_changes() WHERE query_text LIKE 'SELECT c FROM t%' AND inputs IS NOT NULL})
  or die 'no change of plans';
is( sql(q{SELECT replace(inputs, '; ', E'\n') FROM tacho.plan_changes() WHERE query_text LIKE 'SELECT c FROM t%'}),
	join("\n", 'setting enable_indexscan: default -> off', 'setting enable_seqscan: off -> default', 'table public.t: 1000 -> 3000 rows'),
	'plan_changes() says what the planner knew differently');
is( sql(q{SELECT old_hint, old_hint_lacks IS NULL, back_at IS NULL FROM tacho.plan_changes() WHERE query_text LIKE 'SELECT c FROM t%'}),
	'/*+ IndexScan(t t_a) Set(max_parallel_workers_per_gather 0) */|t|t', 'plan_changes() has the way back to the old plan');

# autovacuum finds other values in as many rows
sql(q{CREATE TABLE y (a int, b text); INSERT INTO y SELECT n, 'x' FROM generate_series(1, 2000) n; CREATE INDEX y_a ON y (a); VACUUM ANALYZE y});
my $seven = pgbench_script($node, 'seven', "SELECT b FROM y WHERE a = 7;\n");
run_pgbench($node, $seven, '-c', 2, '-t', 20);
wait_until_in_history($node);
sql('UPDATE y SET a = 7');
analyze('y');
run_pgbench($node, $seven, '-c', 2, '-t', 20);
wait_until_in_history($node);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM tacho.plan_changes() WHERE query_text LIKE 'SELECT b FROM y%' AND inputs IS NOT NULL})
  or die 'no change of plans after an ANALYZE';
is(sql(q{SELECT inputs FROM tacho.plan_changes() WHERE query_text LIKE 'SELECT b FROM y%'}), 'table public.y: analyzed', 'an ANALYZE by autovacuum is an input of the planner');
sql('CREATE ROLE reader; GRANT USAGE ON SCHEMA tacho TO reader; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO reader');
is(sql('SET ROLE reader; SELECT count(inputs), count(old_hint) FROM tacho.plan_changes()'), '0|0', 'a role that may not read texts sees no inputs of the planner, and no hint');
$node->stop;
done_testing();
