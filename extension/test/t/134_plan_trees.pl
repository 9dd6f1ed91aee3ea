# tacho.plan(): the tree of a plan is the text of EXPLAIN, with a question mark for
# each constant.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plan_trees', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
max_parallel_workers_per_gather = 2
jit = off
});
my $major = $node->pg_version->major;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(<<'END');
CREATE TABLE customers (id int PRIMARY KEY, name varchar(20), region text, "Odd Name" int);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total numeric, at timestamptz DEFAULT now());
CREATE INDEX orders_customer ON orders (customer_id);
CREATE INDEX orders_open ON orders (at) WHERE total > 500;
CREATE TABLE events (id int, at date, kind text) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE SCHEMA other;
CREATE TABLE other.customers (id int, note text);
INSERT INTO customers SELECT n, 'n' || n, 'r' || n % 7, n FROM generate_series(1, 2000) n;
INSERT INTO orders SELECT n, n % 2000 + 1, n FROM generate_series(1, 20000) n;
INSERT INTO events SELECT n, '2026-01-01'::date + n % 59, 'k' || n % 5 FROM generate_series(1, 5000) n;
INSERT INTO other.customers SELECT n, 'x' FROM generate_series(1, 100) n;
ANALYZE;
END

# The lines of EXPLAIN in the form of tacho.plan(): no values, and no casts that EXPLAIN adds.
sub without_values
{
	my ($line) = @_;
	my ($label, $expression) = $line =~ /^(\s*[A-Z][A-Za-z -]+: )(.*)$/ or return $line;

	return $line if $label =~ /Workers|Removed/;
	$expression =~ s/'(?:[^']|'')*'(?:::[a-z ]+(?:\(\d+\))?(?:\[\])?)?/?/g;
	$expression =~ s/(?<![\w\$.])(?<!Plan )\d+(?:\.\d+)?\b/?/g;
	$expression =~ s/\((\w+(?:\.\w+)?)\)::\w+/$1/g;
	$expression =~ s/\?::[a-z]+/?/g;
	return $label . $expression;
}

sub explained
{
	my ($query, $settings) = @_;
	my @lines = split /\n/, sql("$settings EXPLAIN $query");

	return join "\n", map { without_values($_) } grep { !/^\s*(Cache Mode|Query Identifier|Window:|Disabled|Conflict|Tuples|Inner Unique|Estimates|Replaces|Delete on events_)/ } @lines;
}

my $number = 0;

# Executes a query and compares its tree with EXPLAIN.
sub is_explained
{
	my ($name, $query, $settings) = @_;
	my $from = 'the_' . ++$number;
	my $expected;

	# a name that finds the statement
	$query =~ s/^SELECT /SELECT $number AS $from, /;
	$settings //= '';
	$expected = explained($query, $settings);
	sql("$settings $query");
	is(recorded($from), $expected, $name);
	return;
}

# The tree of the statement that has this in its text.
sub recorded
{
	my ($text) = @_;
	my $ids = sql("SELECT format('%L, query_id => %L', plan_id, queryid) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)"
		  . " WHERE query LIKE '%$text%' AND query !~ 'EXPLAIN|tacho'");
	my $tree = "SELECT string_agg(explain, E'\\n' ORDER BY node_number) FROM tacho.plan($ids)";

	for (1 .. 600)
	{
		my ($failed, $out) = $node->psql('postgres', $tree);
		return $out if !$failed && $out ne '';
		select undef, undef, undef, 0.1;
	}
	return "no tree for ($ids)";
}

is_explained('a table', 'SELECT * FROM customers WHERE region = \'r1\' AND name LIKE \'n1%\'');
is_explained('a key', 'SELECT * FROM customers WHERE id = 7');
is_explained('an index alone', 'SELECT id FROM customers WHERE id BETWEEN 5 AND 9', 'SET enable_seqscan = off; SET enable_bitmapscan = off;');
is_explained('a list', 'SELECT * FROM orders WHERE customer_id IN (1, 2, 3)', 'SET enable_seqscan = off;');
is_explained('two bitmaps', 'SELECT * FROM orders WHERE customer_id = 5 OR id = 9', 'SET enable_seqscan = off;');
is_explained('a hash join', 'SELECT count(*) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.total > 100', 'SET enable_mergejoin = off; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 0;');
is_explained('a merge join', 'SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id ORDER BY c.id DESC', 'SET enable_hashjoin = off; SET enable_nestloop = off;');
is_explained('a nested loop', 'SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id < 20', 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_memoize = off;');
is_explained('a left join', 'SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.total > 3 WHERE o.id IS NULL', 'SET max_parallel_workers_per_gather = 0;');
is_explained('a semi join', 'SELECT * FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 19000)');
is_explained('groups', 'SELECT region, count(*) FROM customers GROUP BY region HAVING count(*) > 5 ORDER BY count(*) DESC NULLS LAST');
is_explained('an init plan', 'SELECT * FROM orders WHERE total > (SELECT avg(total) FROM orders)', 'SET max_parallel_workers_per_gather = 0;');
is_explained('a subplan', 'SELECT (SELECT max(total) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE id < 5');
is_explained('partitions', 'SELECT * FROM events WHERE kind = \'k1\'');
is_explained('one partition', 'SELECT * FROM events WHERE at = \'2026-01-05\'');
is_explained('a union', 'SELECT id FROM customers UNION ALL SELECT id, id FROM orders');
is_explained('workers', 'SELECT count(*) FROM orders WHERE total > 10',
	'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;');
is_explained('a window', 'SELECT id, rank() OVER (PARTITION BY region ORDER BY id) FROM customers');
is_explained('values', "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v (x, y) WHERE x > 1");
is_explained('a function', 'SELECT * FROM generate_series(1, 10) g WHERE g > 5');
is_explained('a limit', 'SELECT * FROM orders ORDER BY total LIMIT 10', 'SET max_parallel_workers_per_gather = 0;');
is_explained('the same name twice', 'SELECT * FROM customers JOIN other.customers o USING (id) JOIN customers c ON c.id = o.id');
is_explained('a name in quotes', 'SELECT * FROM customers WHERE "Odd Name" = 7');
is_explained('no table', 'SELECT 1 WHERE random() < 2');

for (
	['a CTE', 'WITH the_cte AS MATERIALIZED (SELECT * FROM customers WHERE id < 10) SELECT * FROM the_cte a JOIN the_cte b USING (id) WHERE a.region = \'r2\'', 'the_cte'],
	['a recursive CTE', 'WITH RECURSIVE the_steps (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM the_steps WHERE n < 5) SELECT * FROM the_steps', 'the_steps'],
	['an update', 'UPDATE customers SET region = \'the_update\' WHERE id = 12', 'UPDATE customers'],
	['a delete', 'DELETE FROM events WHERE kind = \'the_delete\'', 'DELETE FROM events'],
	['an insert', 'INSERT INTO other.customers SELECT id FROM customers WHERE id = 1', 'INSERT INTO other.customers SELECT id'],
)
{
	my ($name, $query, $from) = @$_;
	my $expected = explained($query, '');

	sql($query);
	is(recorded($from), $expected, $name);
}

# two plans of a query, with what differs
my $twice = 'SELECT count(*) AS twice FROM orders WHERE customer_id = 5;';
sql("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $twice");
sql("SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0; $twice");
my ($query_id, $table, $index);
for (1 .. 600)
{
	($query_id) = split /\n/, sql("SELECT queryid FROM tacho.statements WHERE query LIKE '%AS twice%' AND query !~ 'tacho'");
	my @trees = split /\n/, sql("SELECT p.plan_id || ' ' || t.node_type FROM tacho.statement_plans p, tacho.plan(p.plan_id::text, query_id => '$query_id') t WHERE p.queryid = $query_id AND t.depth = 1");
	($table) = map { /^(\S+) Seq Scan$/ } @trees;
	($index) = map { /^(\S+) Index Scan$/ } @trees;
	last if $table && $index;
	select undef, undef, undef, 0.1;
}
is( sql("SELECT plan_id, node_type, differs, regexp_replace(other, '  .cost.*', '') FROM tacho.plan('$table', diff => '$index', query_id => '$query_id')"),
	join("\n", "$table|Aggregate|same|", "$table|Seq Scan|node|Index Scan using orders_customer on orders", "$index|Aggregate|same|", "$index|Index Scan|node|Seq Scan on orders"),
	'two plans differ in the scan');
my ($shown) = run_command([ $ENV{TACHO_PROGRAM}, 'plan', $table, '--diff', $index, '--tape', $node->data_dir . '/tacho' ]);
$shown =~ s/recorded .*:/recorded T:/g;
$shown =~ s/Last Analyze: 2.*/Last Analyze: T/g;
$shown =~ s/  setting jit = off\n//g;
$shown =~ s/  \(cost=.*//g;
# t/149 has the advice, which 19 prints
$shown =~ s/\n?^Commands for pg_stash_advice.*?stash_name = 'tacho';(\n|\z)//gms;
$shown =~ s/\n+\z//;
is($shown, <<"END" =~ s/\n$//r, 'the command line marks it');
Plan $table, recorded T:

  setting enable_bitmapscan = off
  setting enable_indexonlyscan = off
  setting enable_indexscan = off
  setting max_parallel_workers_per_gather = 0
  Aggregate
!   ->  Seq Scan on orders
!         Filter: (customer_id = ?)
!         Last Analyze: T
!         other plan: Index Scan using orders_customer on orders

Hint for pg_hint_plan, in front of the query:

  /*+ SeqScan(orders) Set(max_parallel_workers_per_gather 0) */

Plan $index, recorded T:

  setting enable_bitmapscan = off
  setting enable_indexonlyscan = off
  setting enable_seqscan = off
  Aggregate
!   ->  Index Scan using orders_customer on orders
!         Index Cond: (customer_id = ?)
!         Last Analyze: T
!         other plan: Seq Scan on orders

Hint for pg_hint_plan, in front of the query:

  /*+ IndexScan(orders orders_customer) Set(max_parallel_workers_per_gather 0) */
END
done_testing();
