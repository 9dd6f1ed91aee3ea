# The hint of tacho.plan() brings a recorded plan back: its text for many shapes of plans, and
# where pg_hint_plan is installed, the server plans the old plan again.
use strict;
use warnings;
use TachoPlans qw(make_shop marked off plans_of recorded_plan);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plan_hints', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
autovacuum = off
jit = off
enable_mergejoin = off
max_parallel_workers_per_gather = 0
});
my $has_hints = -e $node->config_data('--pkglibdir') . '/pg_hint_plan.so';
diag('pg_hint_plan is not installed: hints are compared as texts') if !$has_hints;
my $serial = 'Set(max_parallel_workers_per_gather 0)';

sub sql { return $node->safe_psql('postgres', $_[0]) }

make_shop($node);

my $number = 0;

# Executes a query by plan A and by plan B, and compares the hint of A. With the hint, settings
# of B give plan A again.
sub is_hint
{
	my ($shape, $query, $a, $b, $expected, $lacks) = @_;
	my $name = 'hint_' . ++$number;

	$query = marked($query, $name, $number);
	sql("$a $query");
	sql("$b $query");
	my ($plan, $other) = plans_of($node, $name);
	isnt($other, undef, "$shape: there are two plans") or return;
	my ($hint, $lacking) = recorded_plan($node, $plan, qw(hint hint_lacks));
	is($hint, "/*+ $expected */", "$shape: the hint");
	is($lacking =~ s/\n/ /gr, $lacks // '', "$shape: the hint lacks nothing else");
	return if !$has_hints || $shape =~ /^only text/;
	sql("LOAD 'pg_hint_plan'; $b " . ($query =~ s/^(\w+) /$1 $hint /r));
	is(join(' ', map { $_->[1] } plans_of($node, $name)), '2 1', "$shape: with the hint the first plan is back");
	return;
}

my $by_index = 'SELECT * FROM orders WHERE customer_id = 5';
my $table = off(qw(indexscan bitmapscan indexonlyscan));
my $index = off(qw(seqscan bitmapscan indexonlyscan));
my $only = off(qw(seqscan bitmapscan));
my $bitmap = off(qw(seqscan indexscan indexonlyscan));

is_hint('a table', $by_index, $table, $index, "SeqScan(orders) $serial");
is_hint('an index', $by_index, $index, $table, "IndexScan(orders orders_customer) $serial");
is_hint('an index alone', 'SELECT o.customer_id FROM orders o WHERE customer_id = 5', $only, $table, "IndexOnlyScan(o orders_customer) $serial");
is_hint('a bitmap', $by_index, $bitmap, $table, "BitmapScan(orders orders_customer) $serial");
is_hint('two bitmaps', 'SELECT * FROM orders WHERE customer_id = 5 OR total = 9', $bitmap, $table,
	"BitmapScan(orders orders_customer orders_total) $serial", 'BitmapOr: no hint chooses this.');
is_hint('a row', "SELECT * FROM orders WHERE ctid = '(0,1)' AND id = 5", '', off('tidscan') . $table, "TidScan(orders) $serial");
is_hint('names in quotes', 'SELECT * FROM "Odd (t)" "an ""o" WHERE id = 3', $index, $table, "IndexScan(\"an \"\"o\" \"Odd (t)_pkey\") $serial");

my $two = 'SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.region = 3 AND o.total < 5000';
my $hash = off(qw(nestloop mergejoin));
my $merge = 'SET enable_mergejoin = on;' . off(qw(nestloop hashjoin));
my $loop = off(qw(hashjoin mergejoin)) . $index;
is_hint('a hash join', $two, "$hash $table", $loop, "Leading((o c)) HashJoin(o c) SeqScan(o) SeqScan(c) $serial");
is_hint('a merge join', $two, "$merge $table", $hash, "Leading((c o)) MergeJoin(c o) SeqScan(c) SeqScan(o) $serial");
is_hint('a nested loop', $two, "$loop SET enable_memoize = off;", $hash,
	"Leading((c o)) NestLoop(c o) NoMemoize(c o) IndexScan(c customers_pkey) IndexScan(o orders_customer) $serial");
is_hint('a left join', 'SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.total > 3 WHERE c.region = 3', "$hash $table", $loop,
	"Leading((o c)) HashJoin(o c) SeqScan(o) SeqScan(c) $serial");
is_hint('a semi join', 'SELECT * FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 19000)', "$hash $table", $loop,
	$node->pg_version->major >= 18 ? "Leading((o c)) HashJoin(o c) SeqScan(o) SeqScan(c) $serial" : "Leading((c o)) HashJoin(c o) SeqScan(c) SeqScan(o) $serial");
is_hint('only text: memoized rows', 'SELECT * FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.total < 3000', off(qw(hashjoin mergejoin bitmapscan)), "$hash $table",
	"Leading((o c)) NestLoop(o c) Memoize(o c) IndexScan(o orders_total) IndexScan(c customers_pkey) $serial", 'Memoize: no hint chooses this.');
my $three = 'SELECT * FROM orders o JOIN customers c ON c.id = o.customer_id JOIN regions r ON r.id = c.region WHERE r.name < \'s\'';
is_hint('three tables', $three, "SET join_collapse_limit = 1; $hash $table", $loop,
	"Leading(((o c) r)) HashJoin(o c) HashJoin(o c r) SeqScan(o) SeqScan(c) SeqScan(r) $serial");
is_hint('partitions', 'SELECT * FROM events WHERE kind = 7', $bitmap, $table, "BitmapScan(events events_1_kind_idx events_2_kind_idx) $serial");
is_hint('one partition', "SELECT * FROM events e WHERE kind = 7 AND at = '2026-01-08'", $index, $table, "IndexScan(e events_1_kind_idx) $serial");
is_hint('a joined partitioned table', 'SELECT * FROM customers c JOIN events e ON e.id = c.id', "$hash $table", $loop,
	"Leading((e c)) HashJoin(e c) SeqScan(e) SeqScan(c) $serial");
is_hint('an init plan', 'SELECT * FROM orders WHERE total > (SELECT count(*) + 19000 FROM regions g)', $table, $index, "SeqScan(g) SeqScan(orders) $serial");
is_hint('a subplan', 'SELECT (SELECT sum(total) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE id < 5', $index, $bitmap,
	"IndexScan(o orders_customer) IndexScan(c customers_pkey) $serial");
is_hint('a function', 'SELECT * FROM generate_series(1, 10) g JOIN customers c ON c.id = g', "$hash $table", $loop, "Leading((c g)) HashJoin(c g) SeqScan(c) $serial");
is_hint('an update', 'UPDATE customers c SET note = o.total FROM orders o WHERE o.customer_id = c.id AND o.id < 10', "$hash $table", $loop,
	"Leading((o c)) HashJoin(o c) SeqScan(o) SeqScan(c) $serial");
is_hint('sorted groups', 'SELECT total % 10, count(*) FROM orders GROUP BY total % 10', "SET enable_hashagg = off; $table", $table,
	"SeqScan(orders) Set(enable_hashagg off) $serial");

# with workers
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
my $free = 'Set(parallel_setup_cost 0) Set(parallel_tuple_cost 0)';
is_hint('workers', 'SELECT sum(total) FROM orders', $parallel, '', "SeqScan(orders) Parallel(orders 2 hard) $free");
is_hint('no workers', 'SELECT sum(total) FROM orders', '', $parallel, "SeqScan(orders) $serial");
is_hint('a join by workers', 'SELECT sum(total) FROM orders o JOIN customers c ON c.id = o.customer_id', "$parallel $hash", $loop,
	"Leading((o c)) HashJoin(o c) SeqScan(o) SeqScan(c) Parallel(o 2 hard) Parallel(c 2 hard) $free");

# the hint has only a part of these plans
is_hint('only text: a subquery in a join', 'SELECT * FROM customers c JOIN (SELECT customer_id, count(*) FROM orders GROUP BY 1) o ON o.customer_id = c.id WHERE c.region = 3', "$hash $table", $loop,
	"SeqScan(orders) SeqScan(c) $serial", 'A subquery below a join has no name in the plan: the order and the method of joins with it are not said. HashAggregate: no hint chooses this.');
is_hint('only text: the same name twice', 'SELECT * FROM orders o WHERE customer_id = 5 AND EXISTS (SELECT 1 FROM customers o WHERE id = 7 OFFSET 0)', $index, $table,
	"IndexScan(o_1 customers_pkey) IndexScan(o orders_customer) $serial", 'o_1 may be a name that EXPLAIN made; such a table needs an alias of its own in the query.');
$node->stop;
done_testing();
