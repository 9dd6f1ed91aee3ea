# tacho.plan() has the rows that each node of a slow plan gave in one execution, as
# EXPLAIN (ANALYZE) prints them. Rows of a node that was stopped early are a lower bound.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $node = tacho_cluster('plan_actuals', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.statements_track = all
max_parallel_workers_per_gather = 0
autovacuum = off
jit = off
});
my $major = $node->pg_version->major;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(<<'END');
CREATE TABLE t (id int PRIMARY KEY, g int, x int) WITH (fillfactor = 50);
CREATE INDEX t_g ON t (g);
CREATE TABLE u (id int PRIMARY KEY, t_id int);
CREATE TABLE none (id int);
CREATE TABLE wide (a int, b int, x int) WITH (fillfactor = 10);
CREATE INDEX wide_a ON wide (a);
CREATE INDEX wide_b ON wide (b);
CREATE TABLE pace (s int);
CREATE TABLE parts (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (1000);
INSERT INTO t SELECT n, n % 10, 0 FROM generate_series(1, 10000) n;
INSERT INTO u SELECT n, n * 10 FROM generate_series(1, 100) n;
INSERT INTO wide SELECT n % 125, n / 100, 0 FROM generate_series(0, 9999) n ORDER BY md5(n::text);
INSERT INTO parts SELECT n, n % 3 FROM generate_series(1, 500) n;
INSERT INTO pace VALUES (0);
VACUUM ANALYZE;
DELETE FROM wide WHERE a = 5;
VACUUM wide;
CREATE FUNCTION first_rows() RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT 1 AS in_loop, id, (SELECT pg_sleep(0.01)) FROM t WHERE g < 5 ORDER BY x, id LOOP
    RETURN r.id;
  END LOOP;
END $$;
END

# The ids of the plan of the statement with this text, as arguments of tacho.plan().
sub ids
{
	my ($text, $plan) = @_;

	return sql("SELECT format('%L, query_id => %L', plan_id, queryid) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)"
		  . " WHERE query LIKE '%$text%' AND query !~ 'EXPLAIN|tacho|first_rows' ORDER BY since DESC LIMIT 1");
}

# A question to the plan of the statement with this text, once its rows are recorded.
sub measured
{
	my ($text, $columns) = @_;
	my $ids = '';

	for (1 .. 300)
	{
		$ids = ids($text);
		last if $ids ne '' && sql("SELECT count(*) FROM tacho.plan($ids) WHERE measured_at IS NOT NULL") > 0;
		select undef, undef, undef, 0.1;
	}
	return sql("SELECT $columns FROM tacho.plan($ids)") if $ids ne '';
	return 'no plan';
}

my $counts = q{string_agg(node_type || ' ' || coalesce(round(actual_rows, 2)::text, '-') || ' ' || actual_loops, E'\n' ORDER BY node_number) FILTER (WHERE node_type !~ '^Bitmap(And|Or)')};
my $stopped = q{coalesce(string_agg(node_type, ', ' ORDER BY node_number) FILTER (WHERE is_lower_bound), '')};

# The counts in the output of EXPLAIN, in the form of $counts.
sub explained
{
	my ($query, $settings) = @_;
	my @lines = split /\n/, sql("$settings; EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF, BUFFERS OFF) $query");
	my @nodes;

	for (@lines)
	{
		my ($title, $rest) = /^\s*(?:->\s+)?(\S.*?) \((actual .*|never executed)\)$/ or next;
		$title =~ s/ (?:on|using) .*//;
		next if $title =~ /^Bitmap(And|Or)/;
		my ($rows, $loops) = $rest =~ /rows=(\S+) loops=(\d+)/;
		push @nodes, $title . ' ' . (defined $rows ? sprintf('%.2f', $rows) : '-') . ' ' . ($loops // 0);
	}
	return join "\n", @nodes;
}

# 15 to 17 print whole rows.
sub whole { return $major >= 18 ? $_[0] : join "\n", map { s/ (\d+\.\d+) / sprintf(' %.0f.00 ', $1)/er } split /\n/, $_[0] }

my $number = 0;
my $slow = '(SELECT pg_sleep(0.01))';

# Executes a query twice and compares the counted rows with EXPLAIN. `$bounds` names the
# nodes whose rows are lower bounds.
sub is_counted
{
	my ($name, $query, $bounds, $settings) = @_;
	my $mark = 'the_' . ++$number;

	$settings //= 'SET jit = off';
	$query =~ s/^SELECT /SELECT $number AS $mark, $slow AS s, /;
	$query =~ s/MARK/$mark/g;
	my $expected = explained($query, $settings);
	sql("$settings; $query; $query");
	is(whole(measured($mark, $counts)), $expected, "$name has the rows of EXPLAIN");
	is(measured($mark, $stopped), $bounds, "lower bounds of $name");
	return;
}

my $loops = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';
my $hash = 'SET enable_nestloop = off; SET enable_mergejoin = off; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';
my $merge = 'SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';
my $table = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';

is_counted('a table', 'SELECT * FROM t WHERE g = 3 AND x = 0', '', $table);
is_counted('an index', 'SELECT * FROM t WHERE id < 50', '', 'SET enable_seqscan = off; SET enable_bitmapscan = off');
is_counted('a bitmap', 'SELECT x FROM t WHERE g = 3 OR id < 50', '', 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off');
is_counted('a nested loop', 'SELECT count(u.id) FROM u JOIN t ON t.g = u.id WHERE u.id < 20', '', "$loops; SET enable_seqscan = off");
is_counted('a unique inner side', 'SELECT count(u.id) FROM u JOIN t ON t.id = u.t_id', 'Index Scan', "$loops; SET enable_sort = off");
is_counted('a hash join', 'SELECT count(u.id) FROM t JOIN u ON t.id = u.t_id', '', $hash);
is_counted('an empty hash table', 'SELECT count(none.id) FROM t JOIN none ON t.id = none.id', 'Seq Scan', "$hash; SET enable_sort = off");
is_counted('a merge join', 'SELECT count(t.id) FROM t JOIN u ON t.id = u.t_id', 'Sort, Sort', $merge);
is_counted('groups', 'SELECT g, count(*) FROM t GROUP BY g', '', 'SET enable_sort = off');
is_counted('a limit', 'SELECT * FROM t LIMIT 10', 'Seq Scan');
is_counted('a limit that is not reached', 'SELECT * FROM t WHERE g = 3 LIMIT 5000', '', $table);
is_counted('a sort below a limit', 'SELECT * FROM t ORDER BY x, id LIMIT 10', 'Sort');
is_counted('a semi join', 'SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.g = u.id AND t.x = 0)', 'Index Scan', "$loops; SET enable_seqscan = off; SET enable_hashagg = off; SET enable_sort = off");
is_counted('a subplan', 'SELECT (SELECT sum(x) FROM t WHERE t.g = u.id) FROM u WHERE id < 15', '');
is_counted('a subplan with EXISTS', 'SELECT (SELECT EXISTS (SELECT FROM t WHERE g = 3))', 'Seq Scan', $table);
is_counted('a CTE', 'SELECT * FROM (WITH c AS MATERIALIZED (SELECT * FROM t) SELECT * FROM c LIMIT 7) c', 'Seq Scan, CTE Scan');
is_counted('a CTE that is read to its end', 'SELECT * FROM (WITH c AS MATERIALIZED (SELECT * FROM t) SELECT count(*) FROM c) c', '', $table);
is_counted('a CTE that only its last execution reads to its end', 'SELECT (SELECT count(*) FROM (WITH c AS MATERIALIZED (SELECT id FROM t WHERE g = u.id) SELECT * FROM c LIMIT CASE WHEN u.id < 12 THEN 3 END) c) FROM u WHERE id < 13', 'Seq Scan, CTE Scan', $table);
is_counted('a hash table that is empty at times', 'SELECT (SELECT count(t.x) FROM t JOIN parts p ON t.id = p.id WHERE p.k = u.id) FROM u WHERE id < 5', 'Seq Scan', $hash);
is_counted('a hash table that is made once', 'SELECT (SELECT count(p.k) FROM t JOIN parts p ON t.id = p.id WHERE t.g = u.id) FROM u WHERE id < 5', '', $hash);
is_counted('a limit above a hash join', 'SELECT t.id FROM t JOIN u ON t.id = u.t_id LIMIT 7', 'Hash Join, Seq Scan', $hash);
is_counted('partitions', 'SELECT * FROM parts WHERE k = 1', '');
is_counted('one partition', 'SELECT * FROM parts WHERE id < 90', '');
is_counted('a union', 'SELECT id FROM t UNION ALL SELECT 1, NULL, id FROM u', '');
is_counted('a window', 'SELECT rank() OVER (PARTITION BY g ORDER BY id) FROM t', '', $table);
is_counted('an update', "UPDATE t SET x = x WHERE g = 7 AND ($slow IS NOT NULL) AND 'MARK' <> '' RETURNING 1 AS MARK", '', $table);

# workers give their counts to the leader
is_counted('workers', 'SELECT count(*) FROM t WHERE x = 0', '',
	'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2');

# how many of them make the hash table is not the same in each execution
my $join = "$hash; SET enable_parallel_hash = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; SELECT $slow, count(*) AS the_join FROM t JOIN u ON t.id = u.t_id";
sql($join) for 1 .. 2;
is(measured('the_join', 'count(*) FILTER (WHERE is_lower_bound)'), 0, 'hash tables of several workers are no lower bounds');

# a statement in a function, whose loop ends at the first row
is(sql('SELECT first_rows() + first_rows()'), 2, 'a function reads the first rows');
is(measured('in_loop', $stopped), 'Sort', 'a loop that was left has a lower bound');
is(measured('in_loop', 'actual_rows, actual_loops') =~ s/\n.*\n/ /sr, '10.0000|1 5000.0000|1', 'the sort was read in part, the table below it was read to its end');

# a cached plan
sql("SET plan_cache_mode = force_generic_plan; PREPARE cached (int) AS SELECT $slow, id AS the_cached FROM t WHERE id <= \$1; EXECUTE cached(3); EXECUTE cached(5)");
is(measured('the_cached', 'actual_rows, actual_loops') =~ s/\n.*//sr, '5.0000|1', 'a cached plan is counted');

# beside auto_explain, which has timers
SKIP:
{
	skip 'auto_explain is not installed', 4 unless -e $node->config_data('--pkglibdir') . '/auto_explain.so';
	my $log = 'SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET client_min_messages = log';
	my ($failed, undef, $told) = $node->psql('postgres', "LOAD 'auto_explain'; $log; SELECT $slow, count(*) AS explained_too FROM t WHERE g = 4; SELECT $slow, count(*) AS explained_too FROM t WHERE g = 4");
	is(() = $told =~ /actual time=\S+ rows=1000\S* loops=1/g, 2, 'auto_explain has its times');
	like(measured('explained_too', $counts), qr/ 1000\.00 1(\n|$)/, 'tacho uses the counts of auto_explain');
	$log =~ s/log_analyze = on/log_analyze = off/;
	($failed, undef, $told) = $node->psql('postgres', "LOAD 'auto_explain'; $log; SELECT $slow, count(x) AS plain_too FROM t WHERE g = 4; SELECT $slow, count(x) AS plain_too FROM t WHERE g = 4");
	unlike($told, qr/actual|never/, 'auto_explain without analyze prints no rows');
	like(measured('plain_too', $counts), qr/ 1000\.00 1(\n|$)/, 'the rows are counted');
}

# a query that waits for this lock is cancelled
my $holder = tacho_session($node);
sub is_cancelled
{
	my ($settings, $mark, $query) = @_;

	sql("$settings; $query");
	$holder->run('SELECT pg_advisory_lock(7)');
	my $waiter = tacho_session($node);
	$waiter->run($settings);
	$waiter->send($query);
	$node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%$mark%' AND pid <> pg_backend_pid()}) or die 'nobody waits';
	sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
	my $rows = measured($mark, 'node_type, actual_rows, actual_loops, is_lower_bound');
	$holder->run('SELECT pg_advisory_unlock(7)');
	$waiter->finish;
	return $rows;
}
is(is_cancelled($table, 'the_wait', 'SELECT count(*) AS the_wait FROM u WHERE CASE id WHEN 4 THEN pg_advisory_xact_lock_shared(7) IS NOT NULL ELSE pg_sleep(0.001) IS NOT NULL END AND id < 11'),
	"Aggregate|0.0000|1|t\nSeq Scan|3.0000|1|t", 'a cancelled query has lower bounds');
my $bitmap = 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off';
my $waits = '(SELECT CASE WHEN pg_sleep(0.01) IS NOT NULL AND pg_advisory_xact_lock_shared(7) IS NOT NULL THEN 3 END)';
is(is_cancelled($bitmap, 'the_bitmap', "SELECT count(x) AS the_bitmap FROM t WHERE g = $waits"),
	"Aggregate|0.0000|1|t\nResult|0.0000|1|t\nBitmap Heap Scan|0.0000|1|t\nBitmap Index Scan|0.0000|1|t", 'a bitmap that is being made was executed');
is(is_cancelled($bitmap, 'the_second', "SELECT count(x) AS the_second FROM t WHERE id < 50 OR g = $waits"),
	"Aggregate|0.0000|1|t\nResult|0.0000|1|t\nBitmap Heap Scan|0.0000|1|t\nBitmapOr|||\nBitmap Index Scan|49.0000|1|t\nBitmap Index Scan|0.0000|1|t", 'the bitmap before it was made');
is(is_cancelled($bitmap, 'the_first', "SELECT count(x) AS the_first FROM t WHERE g = $waits OR id < 50"),
	"Aggregate|0.0000|1|t\nResult|0.0000|1|t\nBitmap Heap Scan|0.0000|1|t\nBitmapOr|||\nBitmap Index Scan|0.0000|1|t\nBitmap Index Scan||0|t", 'the bitmap after it was not begun');
is(is_cancelled($bitmap, 'the_and', "SELECT count(x) AS the_and FROM wide WHERE a = 3 AND b = $waits"),
	"Aggregate|0.0000|1|t\nResult|0.0000|1|t\nBitmap Heap Scan|0.0000|1|t\nBitmapAnd|||\nBitmap Index Scan|80.0000|1|t\nBitmap Index Scan|0.0000|1|t", 'the second bitmap of AND is being made');
is(is_cancelled($bitmap, 'the_none', "SELECT count(x) AS the_none FROM wide WHERE a = 5 AND b = 4 OR b = $waits"),
	"Aggregate|0.0000|1|t\nResult|0.0000|1|t\nBitmap Heap Scan|0.0000|1|t\nBitmapOr|||\nBitmapAnd|||\nBitmap Index Scan|0.0000|1|t\nBitmap Index Scan||0|t\nBitmap Index Scan|0.0000|1|t", 'AND ends at an empty bitmap');

# an error in the sixth row
my $fails = "SELECT $slow, 1 / (id - (SELECT s FROM pace)) AS the_error FROM u WHERE id < 11";
sql("$table; $fails; UPDATE pace SET s = 6");
my ($failed) = $node->psql('postgres', "$table; $fails");
is($failed, 3, 'the query fails');
is(measured('the_error', "node_type, actual_rows, actual_loops, is_lower_bound") =~ s/\n.*//sr, 'Seq Scan|5.0000|1|t', 'a query that fails has lower bounds');

# the next execution of a plan is not counted again
sql("INSERT INTO t SELECT n, 3, 0 FROM generate_series(10001, 10100) n; $table; SELECT 1 AS the_1, $slow AS s, * FROM t WHERE g = 3 AND x = 0");
is_counted('a later query', 'SELECT * FROM t WHERE g = 3 AND x < 1', '', $table);
is(measured('the_1,', 'actual_rows') =~ s/\n.*//sr, '1000.0000', 'a plan is not counted twice in ten minutes');

# a cursor below a top-level DECLARE is not counted, so it takes no turn
my $cursor = "SELECT $slow, count(*) AS the_cursor FROM u WHERE id < 21";
sql("SET tacho.statements_track = top; $table; $cursor; BEGIN; DECLARE c CURSOR FOR $cursor; FETCH ALL FROM c; COMMIT; $cursor");
like(measured('the_cursor', $counts), qr/^Aggregate 1\.00 1\n/, 'the execution after an uncounted one is counted');

# another plan of a slow query is counted at its first execution
my $other = "SELECT $slow, count(x) AS the_other FROM t WHERE id < 40";
sql("$table; $other");
sql("SET enable_seqscan = off; SET enable_bitmapscan = off; $other");
is(measured('the_other', $counts) =~ s/^(Agg\S+ \S+ \S+).*\n/$1 /sr, 'Aggregate 1.00 1 Index Scan 39.00 1', 'a new plan is counted at once');

# off
sql("SET tacho.plan_actuals = off; SELECT $slow, count(*) AS the_off FROM u; SELECT $slow, count(*) AS the_off FROM u");
is_counted('the last query', 'SELECT count(*) FROM u WHERE id < 3', '', $table);
is(sql('SELECT count(*), count(actual_loops) FROM tacho.plan(' . ids('the_off') . ')'), '3|0', 'nothing is counted with the setting off');

# text and JSON
my ($plan_id, $query_id) = ids('the_10,') =~ /'(-?\d+)'/g;
my ($shown) = run_command([ $ENV{TACHO_PROGRAM}, 'plan', $plan_id, "--query-id=$query_id", '--tape', $node->data_dir . '/tacho' ]);
like($shown, qr/^\s*Limit  \(cost=\S+ rows=10 width=\d+\) \(actual rows=10\.00 loops=1\)$/m, 'the command line has the rows');
like($shown, qr/->  Seq Scan on t  \(cost=\S+ rows=\d+ width=\d+\) \(actual rows=10\.00 loops=1\)\n\s+Actual Rows: at least, it was stopped early$/m, 'the command line says which rows are lower bounds');
is(sql("SELECT concat_ws(' ', p->>'Actual Rows', p->>'Actual Loops', p->>'Stopped Early') FROM tacho.plan('$plan_id', query_id => '$query_id'), json_array_elements(plan_json::json->0->'Plan'->'Plans') p WHERE p->>'Node Type' = 'Seq Scan'"),
	'10.0 1 true', 'the JSON has them');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|reference leak|was not closed|not owned/, 'no process of the server died, no reference is left');
done_testing();
