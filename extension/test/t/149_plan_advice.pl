# The advice of tacho.plan() for PostgreSQL 19: where pg_plan_advice is installed, the server
# plans a recorded plan again with it.
use strict;
use warnings;
use TachoPlans qw(make_shop marked off plans_of recorded_plan);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plan_advice', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
});
my $has_advice = -e $node->config_data('--pkglibdir') . '/pg_stash_advice.so';

sub sql { return $node->safe_psql('postgres', $_[0]) }

make_shop($node);

my $number = 0;
my $name_in_advice = qr/(?:"(?:[^"]|"")*"|[^\s()"])+/;

# The single sayings of an advice: `HASH_JOIN(c)`, `INDEX_SCAN(c public.customers_pkey)`.
sub sayings
{
	my ($advice) = @_;
	my @all;

	while ($advice =~ /(\w+)(\((?:"(?:[^"]|"")*"|[^()"]|(?2))*\))/g)
	{
		my ($tag, $inner) = ($1, $2);
		$inner =~ s/\s+/ /g;
		if ($tag eq 'JOIN_ORDER') { push @all, "$tag$inner"; next }
		my @targets = substr($inner, 1, -1) =~ /(\((?:$name_in_advice|\s)*\)|$name_in_advice)/g;
		@targets = map { "$targets[2 * $_] $targets[2 * $_ + 1]" } 0 .. $#targets / 2 if $tag =~ /^INDEX/;
		push @all, map { "$tag($_)" } @targets;
	}
	return @all;
}

# The advice says nothing that the server itself does not say of this plan.
sub is_servers_advice
{
	my ($shape, $settings, $query, $advice) = @_;
	my $explained = sql("LOAD 'pg_plan_advice'; $settings EXPLAIN (COSTS OFF, PLAN_ADVICE) $query");
	my ($generated) = $explained =~ /Generated Plan Advice:\n(.*)/s;
	my %servers = map { $_ => 1 } sayings($generated // '');
	# the server says this only where it has considered distinct rows
	my @others = grep { !$servers{$_} && !/^SEMIJOIN_NON_UNIQUE/ } sayings($advice =~ s/''/'/gr);

	is("@others", '', "$shape: all of the advice is the server's") or diag("the server's: $explained");
	return;
}

# Executes a query by plan A and by plan B, and compares the advice of A. With it, settings of B
# give plan A again, unless the shape is only text.
sub is_advice
{
	my ($shape, $query, $a, $b, $expected, $lacks) = @_;
	my $name = 'advice_' . ++$number;

	$query = marked($query, $name, $number);
	sql("$a $query");
	sql("$b $query");
	my ($plan, $other) = plans_of($node, $name);
	isnt($other, undef, "$shape: there are two plans") or return;
	my ($commands, $lacking) = recorded_plan($node, $plan, qw(advice advice_lacks));
	my ($text) = $commands =~ /^SELECT pg_set_stashed_advice\('tacho', $plan->[2], '(.*)'\);$/m;
	is($text, $expected, "$shape: the advice");
	is($lacking =~ s/\n/ /gr, $lacks // '', "$shape: the advice lacks nothing else");
	is_servers_advice($shape, $a, $query, $text);
	return if $shape =~ /^only text/;
	sql("LOAD 'pg_stash_advice'; $commands $b $query");
	is(join(' ', map { $_->[1] } plans_of($node, $name)), '2 1', "$shape: with the advice the first plan is back");
	return;
}

my $by_index = 'SELECT * FROM orders WHERE customer_id = 5';
my $table = off(qw(indexscan bitmapscan indexonlyscan));
my $index = off(qw(seqscan bitmapscan indexonlyscan));
my $only = off(qw(seqscan bitmapscan));
my $bitmap = off(qw(seqscan indexscan indexonlyscan));

# costs that give other plans; advice enables no method that a setting has switched off
my $not_index = 'SET random_page_cost = 1e7; SET seq_page_cost = 0;';
my $not_table = 'SET seq_page_cost = 1e7; SET random_page_cost = 0;';

if (!$has_advice)
{
	sql("SELECT 1 AS without_advice, * FROM orders WHERE customer_id = 5");
	my ($plan) = plans_of($node, 'without_advice');
	my @none = recorded_plan($node, $plan, qw(advice advice_lacks));
	is("@none", ' ', 'before PostgreSQL 19 a plan has no advice');
	$node->stop;
	done_testing();
	exit;
}
sql('CREATE EXTENSION pg_stash_advice');

is_advice('a table', $by_index, $table, $not_table, 'SEQ_SCAN(orders) NO_GATHER(orders)');
is_advice('an index', $by_index, $index, $not_index, 'INDEX_SCAN(orders public.orders_customer) NO_GATHER(orders)');
is_advice('an index alone', 'SELECT o.customer_id FROM orders o WHERE customer_id = 5', $only, $not_index, 'INDEX_ONLY_SCAN(o public.orders_customer) NO_GATHER(o)');
my $indexes = 'Bitmap Heap Scan: no advice names its indexes.';
is_advice('a bitmap', $by_index, $bitmap, $not_index, 'BITMAP_HEAP_SCAN(orders) NO_GATHER(orders)', $indexes);
is_advice('two bitmaps', 'SELECT * FROM orders WHERE customer_id = 5 OR total = 9', $bitmap, $not_index, 'BITMAP_HEAP_SCAN(orders) NO_GATHER(orders)', "$indexes BitmapOr: no advice chooses this.");
is_advice('a row', "SELECT * FROM orders WHERE ctid = '(0,1)' AND id = 5", '', $not_index, 'TID_SCAN(orders) NO_GATHER(orders)');
is_advice('names in quotes', q{SELECT * FROM "Odd (t)" "an ""o'" WHERE id = 3}, $index, $not_index, q{INDEX_SCAN("an ""o''" public."Odd (t)_pkey") NO_GATHER("an ""o''")});

my $two = 'SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.region = 3 AND o.total < 5000';
my $hash = off(qw(nestloop mergejoin));
my $merge = 'SET enable_mergejoin = on;' . off(qw(nestloop hashjoin));
my $loop = off(qw(hashjoin mergejoin)) . $index;
is_advice('a hash join', $two, "$hash $table", $not_table, 'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o c) NO_GATHER(o c)');
is_advice('a merge join', $two, "$merge $table", '', 'JOIN_ORDER(c o) MERGE_JOIN_PLAIN(o) SEQ_SCAN(c o) NO_GATHER(c o)');
is_advice('a nested loop', $two, "$loop SET enable_memoize = off;", $not_index, 'JOIN_ORDER(c o) NESTED_LOOP_PLAIN(o) INDEX_SCAN(c public.customers_pkey o public.orders_customer) NO_GATHER(c o)');
is_advice('memoized rows', 'SELECT * FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.total < 3000', off(qw(hashjoin mergejoin bitmapscan)), $not_index,
	'JOIN_ORDER(o c) NESTED_LOOP_MEMOIZE(c) INDEX_SCAN(o public.orders_total c public.customers_pkey) NO_GATHER(o c)');
is_advice('a left join', 'SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.total > 3 WHERE c.region = 3', "$hash $table", $not_table,
	'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o c) NO_GATHER(o c)');
is_advice('a semi join', 'SELECT * FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 19000)', "$hash $table", $not_table,
	'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o c) SEMIJOIN_NON_UNIQUE(o) NO_GATHER(o c)');
my $three = 'SELECT * FROM orders o JOIN customers c ON c.id = o.customer_id JOIN regions r ON r.id = c.region WHERE r.name < \'s\'';
is_advice('three tables', $three, "SET join_collapse_limit = 1; $hash $table", $not_table, 'JOIN_ORDER(o c r) HASH_JOIN(c r) SEQ_SCAN(o c r) NO_GATHER(o c r)');
is_advice('partitions', 'SELECT * FROM events WHERE kind = 7', $bitmap, $not_index,
	'BITMAP_HEAP_SCAN(events/public.events_1 events/public.events_2) NO_GATHER(events/public.events_1 events/public.events_2)', $indexes);
is_advice('one partition', "SELECT * FROM events e WHERE kind = 7 AND at = '2026-01-08'", $index, $not_index, 'INDEX_SCAN(e/public.events_1 public.events_1_kind_idx) NO_GATHER(e/public.events_1)');
is_advice('a joined partitioned table', 'SELECT * FROM customers c JOIN events e ON e.id = c.id', "$hash $table", $not_table,
	'JOIN_ORDER(e c) HASH_JOIN(c) SEQ_SCAN(e/public.events_1 e/public.events_2 c) NO_GATHER(e/public.events_1 e/public.events_2 c)');
is_advice('an init plan', 'SELECT * FROM orders WHERE total > (SELECT count(*) + 19000 FROM regions g)', $table, $not_table, 'SEQ_SCAN(g@expr_1 orders) NO_GATHER(g@expr_1 orders)');
is_advice('a subplan', 'SELECT (SELECT sum(total) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE id < 5', $index, $not_index,
	'INDEX_SCAN(o@expr_1 public.orders_customer c public.customers_pkey) NO_GATHER(o@expr_1 c)');
is_advice('a function', 'SELECT * FROM generate_series(1, 10) g JOIN customers c ON c.id = g', "$hash $table", $not_table, 'JOIN_ORDER(c g) HASH_JOIN(g) SEQ_SCAN(c) NO_GATHER(c g)');
is_advice('an update', 'UPDATE customers c SET note = o.total FROM orders o WHERE o.customer_id = c.id AND o.id < 10', "$hash $table", $not_table,
	'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o c) NO_GATHER(o c)');
is_advice('only text: sorted groups', 'SELECT total % 10, count(*) FROM orders GROUP BY total % 10', "SET enable_hashagg = off; $table", $table,
	'SEQ_SCAN(orders) NO_GATHER(orders)', 'GroupAggregate: no advice chooses this.');
is_advice('the same name twice', 'SELECT * FROM orders o WHERE customer_id = 5 AND EXISTS (SELECT 1 FROM customers o WHERE id = 7 OFFSET 0)', $index, $not_index,
	'INDEX_SCAN(o@exists_1 public.customers_pkey o public.orders_customer) NO_GATHER(o@exists_1 o)');

# with workers
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
is_advice('workers', 'SELECT sum(total) FROM orders', $parallel, "$parallel SET parallel_setup_cost = 1e6;", 'SEQ_SCAN(orders) GATHER(orders)');
is_advice('no workers', 'SELECT sum(total) FROM orders', '', $parallel, 'SEQ_SCAN(orders) NO_GATHER(orders)');
is_advice('a join by workers', 'SELECT sum(total) FROM orders o JOIN customers c ON c.id = o.customer_id', "$parallel $hash", "$parallel SET parallel_setup_cost = 1e6; $not_table",
	'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(o c) GATHER((o c))');

# names that tell relations with the same alias from each other
is_advice('only text: a subquery with the name of its table', 'SELECT * FROM (SELECT * FROM orders WHERE customer_id = 5) orders', $index, $not_index,
	'INDEX_SCAN(orders#2 public.orders_customer) NO_GATHER(orders#2)');
is_advice('the same name in a subquery', 'SELECT * FROM orders o JOIN (SELECT id AS x FROM customers o WHERE region = 3) s ON s.x = o.customer_id WHERE o.total < 5000', "$hash $table", $not_table,
	'JOIN_ORDER(o o#2) HASH_JOIN(o#2) SEQ_SCAN(o o#2) NO_GATHER(o o#2)');
is_advice('a subquery of its own', 'SELECT * FROM (SELECT * FROM orders o WHERE customer_id = 5 ORDER BY total LIMIT 10) s', $index, $not_index,
	'INDEX_SCAN(o@s public.orders_customer) NO_GATHER(o@s s)');
is_advice('two subqueries of one name', 'SELECT (SELECT sum(total) FROM (SELECT total FROM orders o WHERE customer_id = 5 LIMIT 3) s) FROM (SELECT * FROM orders o WHERE customer_id = 7 LIMIT 3) s', $index, $not_index,
	'INDEX_SCAN(o@s public.orders_customer o@s_1 public.orders_customer) NO_GATHER(o@s s@expr_1 o@s_1 s)');
is_advice('only text: a join with a subquery', 'SELECT * FROM customers c JOIN (SELECT customer_id, count(*) FROM orders GROUP BY 1) o ON o.customer_id = c.id WHERE c.region = 3', "$hash $table", $not_table,
	'JOIN_ORDER(o c) HASH_JOIN(c) SEQ_SCAN(orders@o c) NO_GATHER(orders@o o c)', 'HashAggregate: no advice chooses this.');
is_advice('only text: a filtered subquery', 'SELECT * FROM customers c JOIN (SELECT customer_id, count(*) AS n FROM orders o GROUP BY 1 OFFSET 1) s ON s.customer_id = c.id WHERE s.n > 3', "$hash $table", $not_table,
	'JOIN_ORDER(c s) HASH_JOIN(s) SEQ_SCAN(c o@s) NO_GATHER(c o@s s)', 'HashAggregate: no advice chooses this.');
is_advice('parts of a union', 'SELECT * FROM customers c JOIN (SELECT customer_id FROM orders o WHERE total < 9 UNION ALL SELECT id FROM regions o) u ON u.customer_id = c.id', "$hash $table", $not_table,
	'JOIN_ORDER(c u) HASH_JOIN(u) SEQ_SCAN(c o@unnamed_subquery o) NO_GATHER(c o@unnamed_subquery unnamed_subquery o u)');
is_advice('a subplan below partitions', 'SELECT * FROM events e WHERE kind = 7 AND id > (SELECT count(*) FROM regions g WHERE g.id = e.id)', $table, $not_table,
	'SEQ_SCAN(g@expr_1 e/public.events_1 e/public.events_2) NO_GATHER(g@expr_1 e/public.events_1 e/public.events_2)');
is_advice('only text: joined partitions', 'SELECT * FROM events e JOIN events f ON f.at = e.at AND f.id = e.id WHERE e.kind = 7', "SET enable_partitionwise_join = on; $hash $table", "SET enable_partitionwise_join = on; $not_table",
	'JOIN_ORDER(f/public.events_1 e/public.events_1) JOIN_ORDER(f/public.events_2 e/public.events_2) HASH_JOIN(e/public.events_1 e/public.events_2) SEQ_SCAN(f/public.events_1 e/public.events_1 f/public.events_2 e/public.events_2) PARTITIONWISE((e f)) NO_GATHER(f/public.events_1 e/public.events_1 f/public.events_2 e/public.events_2 e f)');
is_advice('only text: distinct rows in a join', 'SELECT * FROM customers c WHERE id IN (SELECT customer_id FROM orders o WHERE o.total > 19000)', "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; $index", $not_index,
	'JOIN_ORDER(o c) NESTED_LOOP_PLAIN(c) INDEX_SCAN(o public.orders_total c public.customers_pkey) SEMIJOIN_UNIQUE(o) NO_GATHER(o c)', 'HashAggregate: no advice chooses this.');
is_advice('a common table expression', 'SELECT * FROM (SELECT 1) x, LATERAL (WITH w AS MATERIALIZED (SELECT * FROM orders o WHERE customer_id = 5) SELECT count(*) FROM w) y', $index, $not_index,
	'INDEX_SCAN(o@w public.orders_customer) NO_GATHER(o@w w@y y)');
$node->stop;
done_testing();
