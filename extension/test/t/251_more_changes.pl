# More incidents, which tacho.changes() names as t/250 describes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoIncident qw(change_holds_lock incident load server set sql);
use Test::More;

# An incident needs CPUs that others leave alone: its load must rise.
plan skip_all => 'incidents need a quiet machine: make test-incidents' unless $ENV{TACHO_INCIDENTS};

my ($node, $deploy) = server('more_changes', q{
	CREATE TABLE orders AS SELECT n AS id, n % 5000 AS customer, n % 97 AS amount, repeat('x', 40) AS note FROM generate_series(1, 200000) n;
	CREATE INDEX orders_customer ON orders(customer);
	CREATE TABLE jobs AS SELECT n AS id, 'done' AS state FROM generate_series(1, 200000) n;
	INSERT INTO jobs SELECT n, 'new' FROM generate_series(1, 10) n;
	CREATE INDEX jobs_state ON jobs(state);
	CREATE TABLE accounts(id int primary key, n int); INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100) n;
	VACUUM ANALYZE orders; VACUUM ANALYZE jobs});
my $lookup = "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n";
my $range = "\\set c random(0, 4900)\nSELECT sum(amount) FROM orders WHERE customer BETWEEN :c AND :c + 300;\n";
my @more;

# A loop asks for each row by itself.
incident('a query is called for each row', qr/^more calls\|SELECT sum\(amount\) FROM orders WHERE customer BETWEEN \$1 AND \$2 \+ \$3\|t$/,
	around => 2,
	load => [ load(1, 2, $range) ],
	cause => sub { push @more, load(4, 80, $range) },
	end => sub { TachoIncident::stop_load(@more) });

change_holds_lock($lookup);

# Rows change their state, and the plan is made for a few.
incident('most rows change', qr/^rows changed\|UPDATE jobs SET state = \$1 WHERE id < \$2\|t$/,
	around => 2,
	load => [ load(3, 20, "SELECT max(id) FROM jobs WHERE state = 'new';\n") ],
	cause => sub { sql(q{UPDATE jobs SET state = 'new' WHERE id < 100000}) },
	near => sub { set('cpu_index_tuple_cost', '0.006') });

# Two transactions lock two rows in opposite order.
my $lock = sub { my ($first, $second) = @_; return "BEGIN;\nUPDATE accounts SET n = n + 1 WHERE id = $first;\nSELECT pg_sleep(0.02);\nUPDATE accounts SET n = n + 1 WHERE id = $second;\nEND;\n" };
@more = ();
incident('deadlocks', qr/^deadlock\|cycle of \d+\|t$/,
	around => 4,
	load => [ load(2, 10, $lock->(1, 2), '--max-tries=0', '--time=60') ],
	cause => sub { push @more, load(2, 10, $lock->(2, 1), '--max-tries=0', '--time=60') },
	end => sub { TachoIncident::stop_load(@more) });

# A pool opens many connections.
@more = ();
incident('many connections', qr/^more connections\|t$/,
	around => 3,
	load => [ load(2, 3, $range) ],
	cause => sub { push @more, load(40, 100, $range) },
	end => sub { TachoIncident::stop_load(@more) });
done_testing();
