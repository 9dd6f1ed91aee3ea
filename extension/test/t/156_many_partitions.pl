# The tree of a plan lists a part of many partitions: the first 64 and each that is read in
# another way. It says how many others there are, and has all nodes that follow.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use TachoPlans qw(plans_of recorded_plan);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('many_partitions', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
max_parallel_workers_per_gather = 0
enable_seqscan = off
enable_bitmapscan = off
enable_hashjoin = off
enable_mergejoin = off
jit = off
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# 200 partitions with an index each, but many_150; 70 tables
sql(<<'END');
CREATE TABLE many (id int, kind int) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE many_%s PARTITION OF many FOR VALUES FROM (%s) TO (%s)', n, n, n + 1)
	|| CASE n WHEN 150 THEN '' ELSE format('; CREATE INDEX ON many_%s (kind)', n) END
	FROM generate_series(1, 200) n \gexec
CREATE TABLE other (id int PRIMARY KEY, kind int);
SELECT format('CREATE TABLE part_%s (id int PRIMARY KEY)', n) FROM generate_series(1, 70) n \gexec
INSERT INTO many SELECT n, n % 3 FROM generate_series(1, 200) n;
ANALYZE;
END

# Executes a query and returns the given columns of its plan, a node a line.
sub tree_of
{
	my ($name, $query, $columns) = @_;

	sql($query);
	my ($found) = plans_of($node, $name);
	recorded_plan($node, $found, 'node_type');
	return split /\n/, sql("SELECT $columns FROM tacho.plan('$found->[0]', query_id => '$found->[2]') ORDER BY node_number");
}

# Nodes of EXPLAIN: level, alias.
sub explained
{
	my ($query) = @_;
	my @nodes = map { /^( *)(?:->  )?(?:Nested Loop|Materialize|Memoize|Append|(?:Seq|Index(?: Only)?) Scan (?:using \S+ )?on (\S+)(?: (\S+))?)  \(/
		? length($1) / 6 . ' ' . ($3 // $2 // '') : () } split /\n/, sql("EXPLAIN $query");

	return map { s/^([\d.]+)/int($1 + 0.9)/er } @nodes;
}

my $all = 'SELECT 1 AS all_many, * FROM many WHERE kind = 2';
my @expected = grep { !/ many_(\d+)$/ || $1 <= 64 || $1 == 150 } explained($all);
is(scalar @expected, 66, 'EXPLAIN has the nodes that are to be listed');
is_deeply([ tree_of('all_many', $all, q{depth || ' ' || coalesce(alias, '')}) ], \@expected,
	'the first 64 partitions and the one that is read in another way');
my ($plan) = plans_of($node, 'all_many');
is( sql("SELECT condition FROM tacho.plan('$plan->[0]', query_id => '$plan->[2]') WHERE node_type = 'Append'"),
	'Partitions Not Listed: 135', 'the number of the others');
is( sql("SELECT plan_json::jsonb #> '{0,Plan,Partitions Not Listed}' FROM tacho.plan('$plan->[0]', query_id => '$plan->[2]') WHERE node_number = 1"),
	'135', 'JSON has it as a number');
is( sql("SELECT string_agg(node_type || coalesce(' ' || condition, ''), '; ' ORDER BY node_number) FROM tacho.plan('$plan->[0]', query_id => '$plan->[2]') WHERE alias IN ('many_64', 'many_150')"),
	'Index Scan Index Cond: (kind = ?); Seq Scan Filter: (kind = ?)', 'a listed partition has its conditions');

# the hint cannot name indexes that the tree does not have
my $indexed = 'SELECT 1 AS indexed_many, * FROM many WHERE kind = 2 AND id <> 150 AND id < 140';
tree_of('indexed_many', $indexed, 'depth');
my ($found) = plans_of($node, 'indexed_many');
my ($hint, $lacks) = recorded_plan($node, $found, 'hint', 'hint_lacks');
is($hint, '/*+ IndexScan(many) Set(max_parallel_workers_per_gather 0) */', 'a hint without names of indexes');
is($lacks, 'The plan lists a part of the partitions: the hint names no indexes of them.', 'the hint says what it lacks');

# what follows the partitions is there
my $joined = 'SELECT 1 AS joined_many FROM many m JOIN other o ON o.id = m.id WHERE m.kind = 2';
my @joined = grep { !/ m_(\d+)$/ || $1 <= 64 || $1 == 150 } explained($joined);
is_deeply([ tree_of('joined_many', $joined, q{depth || ' ' || coalesce(alias, '')}) ], \@joined, 'the other side of a join is listed');

# pruning and listing are two numbers
my $pruned = 'PREPARE pruned (int) AS SELECT 1 AS pruned_many FROM many WHERE id <= $1 AND kind = 2; SET plan_cache_mode = force_generic_plan;';
sql("$pruned EXECUTE pruned (100)");
my ($generic) = plans_of($node, 'pruned_many');
recorded_plan($node, $generic, 'node_type');
is( sql("SELECT condition FROM tacho.plan('$generic->[0]', query_id => '$generic->[2]') WHERE node_type = 'Append'"),
	"Subplans Removed: 100\nPartitions Not Listed: 36", 'removed partitions are not counted among those');

# the parts of a UNION ALL are all listed
my $union = join ' UNION ALL ', map { "SELECT id, $_ AS union_many FROM part_$_ WHERE id > 3" } 1 .. 70;
is(scalar tree_of('union_many', $union, 'alias'), 71, '70 parts of a UNION ALL');


# two partitioned tables in one UNION ALL
sql(<<'END');
CREATE TABLE second (id int, kind int) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE second_%s PARTITION OF second FOR VALUES FROM (%s) TO (%s)', n, n, n + 1) FROM generate_series(1, 70) n \gexec
END
my $two = 'SELECT count(*) AS two_many FROM (SELECT kind FROM many WHERE id > 100 UNION ALL SELECT kind FROM second WHERE id > 0) x';
my @aliases = tree_of('two_many', $two, q{coalesce(alias, '')});
my @listed = map { my $table = $_; scalar grep { /^${table}_/ } @aliases } qw(many second);
is_deeply(\@listed, [ 64, 64 ], 'partitions of each table are listed');

$node->stop;
done_testing();
