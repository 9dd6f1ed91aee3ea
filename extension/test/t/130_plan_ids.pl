# Pairs of plans: the id of a plan is the same when the steps are the same on the
# same relations, and another one when a step differs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP qw(decode_json);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plans');
plan skip_all => 'EXPLAIN has no id before 18' if $node->pg_version < 18;

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id int, grp int, n int, name text);
INSERT INTO t SELECT i, i % 100, i % 1000, 'name ' || i FROM generate_series(1, 20000) i;
CREATE UNIQUE INDEX t_id ON t (id);
CREATE INDEX t_grp_n ON t (grp, n);
CREATE TABLE u (id int PRIMARY KEY, t_id int, grp int);
INSERT INTO u SELECT i, i, i % 10 FROM generate_series(1, 5000) i;
CREATE TABLE small (id int);
INSERT INTO small SELECT generate_series(1, 20);
CREATE TABLE p (k int, v int) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE p%1$s PARTITION OF p FOR VALUES FROM (%2$s) TO (%3$s)', i, i * 1000, (i + 1) * 1000)
  FROM generate_series(0, 11) i \gexec
INSERT INTO p SELECT i, i % 7 FROM generate_series(0, 11999) i;
CREATE INDEX p_k ON p (k);
CREATE TABLE parent (a int, b int);
CREATE TABLE child1 () INHERITS (parent);
CREATE TABLE child2 () INHERITS (parent);
VACUUM ANALYZE;
END

# The id of the plan of the last statement of a script, in a session of its own.
# A rollback undoes the script.
sub plan_id
{
	my ($script) = @_;
	my ($before, $query) = $script =~ /^(.*;)?\s*([^;]+)$/s;
	my $out = $node->safe_psql('postgres',
		"BEGIN; SET LOCAL client_min_messages = error; " . ($before // '') . "\nEXPLAIN (VERBOSE, FORMAT JSON) $query; ROLLBACK");
	my ($json) = $out =~ /^(\[\s*\{.*\])\s*$/ms;

	return decode_json($json)->[0]{'Plan Identifier'} // die "no id: $out";
}

sub off { return join '', map { "SET LOCAL enable_$_ = off; " } @_; }

my $by_id = 'SELECT * FROM t WHERE id = 7';
my $by_group = 'SELECT * FROM t WHERE grp = 7 AND n = 7';
my $join = 'SELECT * FROM t JOIN u ON u.t_id = t.id';
my $groups = 'SELECT grp, count(*) FROM t GROUP BY grp';
my $parallel = 'SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; ';
my $partitions = 'SELECT * FROM p WHERE k';
my $more = join '', map { "CREATE TABLE p$_ PARTITION OF p FOR VALUES FROM (" . 1000 * $_ . ') TO (' . 1000 * ($_ + 1) . '); ' } 12 .. 40;
my $prepared = 'PREPARE q (int) AS SELECT * FROM t WHERE id = $1; SET LOCAL plan_cache_mode = ';

my @same = (
	[ 'another constant', $by_id, 'SELECT * FROM t WHERE id = 4711' ],
	[ 'a constant with a cast', $by_id, 'SELECT * FROM t WHERE id = 7::bigint' ],
	[ 'another limit', 'SELECT * FROM t LIMIT 3', 'SELECT * FROM t LIMIT 4' ],
	[ 'another list of constants', 'SELECT * FROM t WHERE id IN (1, 2)', 'SELECT * FROM t WHERE id IN (3, 4, 5, 6)' ],
	[ 'other costs', $by_id, "SET LOCAL cpu_tuple_cost = 0.02; $by_id" ],
	[ 'other estimates', $groups, "INSERT INTO t SELECT i, i % 90, 1 FROM generate_series(30000, 31000) i; ANALYZE t; $groups" ],
	[ 'another number of workers', "${parallel}SET LOCAL max_parallel_workers_per_gather = 1; $groups",
		"${parallel}SET LOCAL max_parallel_workers_per_gather = 3; $groups" ],
	[ 'a generic plan', "$prepared force_custom_plan; EXECUTE q(7)", "$prepared force_generic_plan; EXECUTE q(7)" ],
	[ 'an index that was made again', $by_id, "DROP INDEX t_id; CREATE UNIQUE INDEX other ON t (id); $by_id" ],
	[ 'a partition pruned, index', "$partitions = 5", "$partitions IN (5, 1005, 2005)" ],
	[ 'all partitions and one, scanned', 'SELECT * FROM p WHERE v = 3', 'SELECT * FROM p WHERE v = 3 AND k < 900' ],
	[ 'partitions in order and one', off('sort') . "$partitions >= 0 ORDER BY k", off('sort') . "$partitions < 900 ORDER BY k" ],
	[ 'partitions added', 'SELECT * FROM p WHERE v = 3', "${more}SELECT * FROM p WHERE v = 3" ],
	[ 'partitions added, index', "$partitions IN (5, 1005)", "$more$partitions IN (5, 1005)" ],
	[ 'partitions added, update', 'UPDATE p SET v = 1', "${more}UPDATE p SET v = 1" ],
	[ 'children of a table', 'SELECT * FROM parent', 'CREATE TABLE child3 () INHERITS (parent); SELECT * FROM parent' ],
	[ 'a temporary table of this name', ('CREATE TEMP TABLE tt AS SELECT 1 AS a; SELECT * FROM tt') x 2 ],
	[ 'partitions joined', map { 'SET LOCAL enable_partitionwise_join = on; ' . off(qw(indexscan bitmapscan mergejoin nestloop))
			. "SELECT * FROM p a JOIN p b USING (k) WHERE k < $_" } 3000, 9000 ],
);

my @other = (
	[ 'table and index', $by_id, off(qw(indexscan bitmapscan)) . $by_id ],
	[ 'index and bitmap', $by_group, off('indexscan') . $by_group ],
	[ 'index and index only', 'SELECT id FROM t WHERE id = 7', off('indexonlyscan') . 'SELECT id FROM t WHERE id = 7' ],
	[ 'forward and backward', 'SELECT * FROM t ORDER BY id LIMIT 1', 'SELECT * FROM t ORDER BY id DESC LIMIT 1' ],
	[ 'another index', $by_group, "DROP INDEX t_grp_n; CREATE INDEX ON t (n, grp); $by_group" ],
	[ 'another method of index', $by_id, "DROP INDEX t_id; CREATE INDEX ON t USING hash (id); $by_id" ],
	[ 'a partial index', $by_group, "DROP INDEX t_grp_n; CREATE INDEX ON t (grp, n) WHERE grp = 7; $by_group" ],
	[ 'another operator class', map { off(qw(seqscan)) . "CREATE INDEX ON t (name $_); SELECT * FROM t WHERE name = 'x'" } 'text_ops', 'text_pattern_ops' ],
	[ 'more columns of the index', off('seqscan') . 'SELECT * FROM t WHERE grp = 7', off('seqscan') . $by_group ],
	[ 'hash and merge join', $join, off('hashjoin') . 'SET LOCAL enable_nestloop = off; ' . $join ],
	[ 'hash join and nested loop', $join, off(qw(hashjoin mergejoin)) . $join ],
	[ 'merge join and nested loop', off(qw(hashjoin nestloop)) . $join, off(qw(hashjoin mergejoin)) . $join ],
	[ 'order of a join', map { "SET LOCAL join_collapse_limit = 1; SELECT * FROM $_" } 't JOIN u ON u.t_id = t.id JOIN small s ON s.id = u.id',
		'u JOIN small s ON s.id = u.id JOIN t ON u.t_id = t.id' ],
	[ 'outer and inner join', 'SELECT * FROM t JOIN u USING (id)', 'SELECT * FROM t LEFT JOIN u USING (id)' ],
	[ 'memoize', off(qw(hashjoin mergejoin)) . 'SELECT * FROM u JOIN t ON t.id = u.grp', off(qw(hashjoin mergejoin memoize)) . 'SELECT * FROM u JOIN t ON t.id = u.grp' ],
	[ 'materialize', map { off(qw(hashjoin mergejoin), @$_) . 'SELECT * FROM small a JOIN small b ON a.id < b.id' } [], ['material'] ],
	[ 'hashed and sorted groups', $groups, off('hashagg') . $groups ],
	[ 'hashed and sorted distinct', 'SELECT DISTINCT grp FROM t', off('hashagg') . 'SELECT DISTINCT grp FROM t' ],
	[ 'incremental sort', 'SELECT * FROM t ORDER BY grp, name LIMIT 9', off('incremental_sort') . 'SELECT * FROM t ORDER BY grp, name LIMIT 9' ],
	[ 'sorted by another column', 'SELECT * FROM t ORDER BY n, name', 'SELECT * FROM t ORDER BY name, n' ],
	[ 'parallel', "SET LOCAL max_parallel_workers_per_gather = 0; $groups", $parallel . $groups ],
	[ 'gather and gather merge', "${parallel}SELECT * FROM t WHERE n = 5", "${parallel}SELECT * FROM t WHERE n = 5 ORDER BY name" ],
	[ 'hashed subplan', map { "${_}SELECT * FROM t WHERE id NOT IN (SELECT t_id FROM u)" } '', "SET LOCAL work_mem = '64kB'; " ],
	[ 'a common table expression', 'WITH w AS MATERIALIZED (SELECT * FROM t) SELECT * FROM w', 'WITH w AS NOT MATERIALIZED (SELECT * FROM t) SELECT * FROM w' ],
	[ 'update and delete', 'UPDATE t SET n = 1', 'DELETE FROM t' ],
	[ 'conflict: nothing and update', map { "INSERT INTO t VALUES (1) ON CONFLICT (id) DO $_" } 'NOTHING', 'UPDATE SET n = 1' ],
	[ 'actions of MERGE', map { "MERGE INTO t USING u ON u.t_id = t.id WHEN MATCHED THEN $_" } 'DELETE', 'UPDATE SET n = 2' ],
	[ 'another table', 'SELECT * FROM t', 'SELECT * FROM u' ],
	[ 'another function', 'SELECT * FROM generate_series(1, 2)', q{SELECT * FROM regexp_split_to_table('a', 'b')} ],
	[ 'row locks', $by_id, "$by_id FOR UPDATE" ],
	[ 'tid and table', q{SELECT * FROM t WHERE ctid = '(0,1)'}, off('tidscan') . q{SELECT * FROM t WHERE ctid = '(0,1)'} ],
	[ 'range of tids', q{SELECT * FROM t WHERE ctid > '(0,1)'}, q{SELECT * FROM t WHERE ctid = '(0,1)'} ],
	[ 'another sampling method', map { "SELECT * FROM t TABLESAMPLE $_ (5)" } qw(system bernoulli) ],
	[ 'a partition without the index', "$partitions IN (5, 1005)", "DROP INDEX p_k; CREATE INDEX ON p0 (k); $partitions IN (5, 1005)" ],
	[ 'set operation', map { "SELECT grp FROM t $_ SELECT grp FROM u" } 'INTERSECT', 'EXCEPT' ],
	[ 'another window', map { "SELECT sum(n) OVER ($_) FROM t" } 'PARTITION BY grp', 'PARTITION BY grp ORDER BY n' ],
	[ 'always false', $by_id, 'SELECT * FROM t WHERE false' ],
	[ 'with ties', map { "SELECT * FROM t ORDER BY id FETCH FIRST 3 ROWS $_" } 'ONLY', 'WITH TIES' ],
);

is(plan_id($_->[1]), plan_id($_->[2]), "the plan has the same id: $_->[0]") for @same;
isnt(plan_id($_->[1]), plan_id($_->[2]), "the plan has another id: $_->[0]") for @other;

# a session that runs a plan is sampled with its id
my $sleep = 'SELECT pg_sleep(3) FROM small WHERE id = 1';
my $session = $node->background_psql('postgres');
$session->query_until(qr/begins/, "\\echo begins\n$sleep;\n");
ok($node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM tacho.samples() WHERE plan_id = @{[plan_id($sleep)]} AND wait_event = 'PgSleep'"),
	'samples have the id of the plan that runs');
$session->quit;

# a regression suite with compute_query_id = regress has no ids in its output
unlike($node->safe_psql('postgres', 'SET compute_query_id = regress; EXPLAIN (VERBOSE) SELECT 1'),
	qr/Identifier/, 'EXPLAIN has no id where outputs are compared');

$node->stop;
done_testing();
