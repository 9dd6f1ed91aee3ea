# Tables and helpers for tests that bring a recorded plan back.
package TachoPlans;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(make_shop marked off plans_of recorded_plan);

# Customers, orders and regions, a table with odd names, and a partitioned one.
sub make_shop
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'END');
CREATE TABLE customers (id int PRIMARY KEY, region int, note text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total int);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE INDEX orders_total ON orders (total);
CREATE TABLE regions (id int PRIMARY KEY, name text);
CREATE TABLE "Odd (t)" (id int PRIMARY KEY, "A" int);
CREATE TABLE events (id int, at date, kind int) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE INDEX events_kind ON events (kind);
INSERT INTO customers SELECT n, n % 7, 'n' FROM generate_series(1, 2000) n;
INSERT INTO orders SELECT n, n % 2000 + 1, n FROM generate_series(1, 20000) n;
INSERT INTO regions SELECT n, 'r' FROM generate_series(0, 6) n;
INSERT INTO "Odd (t)" SELECT n, n FROM generate_series(1, 3000) n;
INSERT INTO events SELECT n, '2026-01-01'::date + n % 59, n % 500 FROM generate_series(1, 5000) n;
VACUUM ANALYZE;
END
	return;
}

# off(...): these methods are off.
sub off { return join ' ', map { "SET enable_$_ = off;" } @_ }

# The query with columns that find its statement, and give it an id of its own.
sub marked
{
	my ($query, $name, $number) = @_;
	my $columns = '1, ' x $number . "1 AS $name";

	$query =~ s/^SELECT /SELECT $columns, / or $query .= " RETURNING $columns";
	return $query;
}

# Each plan of a statement, its calls and the id of its query, in the order of the first execution.
sub plans_of
{
	my ($node, $name) = @_;

	return map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', "SELECT plan_id, p.calls, queryid FROM tacho.statement_plans p JOIN tacho.statements USING (userid, dbid, toplevel, queryid)"
		  . " WHERE query LIKE '%$name%' AND query !~ 'tacho' ORDER BY since");
}

# Columns of the first row of tacho.plan() for such a plan, once its tree is recorded.
sub recorded_plan
{
	my ($node, $found, @columns) = @_;
	my ($plan, undef, $query) = @$found;
	my $from = "FROM tacho.plan('$plan', query_id => '$query') WHERE node_number = 1";

	for (1 .. 100) { last if $node->safe_psql('postgres', "SELECT count(*) $from") eq '1'; select undef, undef, undef, 0.1 }
	return map { $node->safe_psql('postgres', "SELECT $_ $from") } @columns;
}

1;
