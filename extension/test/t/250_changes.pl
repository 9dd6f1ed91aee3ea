# tacho.changes() names what caused an incident and when, to the second. Each incident
# has three innocent changes around it; one of them is nearer to the begin of the effect
# than the cause.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoIncident qw(incident load server set sql);
use TachoTest qw(tacho_session);
use Test::More;

# An incident needs CPUs that others leave alone: its load must rise.
plan skip_all => 'incidents need a quiet machine: make test-incidents' unless $ENV{TACHO_INCIDENTS};

my ($node, $deploy) = server('changes', q{
	CREATE TABLE orders AS SELECT n AS id, n % 5000 AS customer, n % 97 AS amount, repeat('x', 40) AS note FROM generate_series(1, 400000) n;
	CREATE INDEX orders_customer ON orders(customer);
	CREATE TABLE accounts(id int primary key, n int); INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100) n;
	VACUUM ANALYZE orders});
my $lookup = "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n";

# A setting of the planner: a whole scan seems cheaper than the index. Nearer is a new
# index of the same table.
incident('the planner is told that random reads are dear', qr/^planner setting\|random_page_cost\|t$/,
	load => [ load(4, 40, $lookup) ],
	cause => sub { set('random_page_cost', 100000) },
	near => sub { $deploy->run('CREATE INDEX orders_note ON orders(note)') });
set('random_page_cost', 4);

# An index is dropped. Nearer is a change of another table.
incident('an index is dropped', qr/^index dropped\|orders_customer\|t$/,
	load => [ load(4, 40, $lookup) ],
	cause => sub { $deploy->run('DROP INDEX orders_customer') });
$deploy->run('CREATE INDEX orders_customer ON orders(customer)');

# A session keeps the lock of a row and is idle. Nearer is an index of the same table.
my $forgotten = tacho_session($node, app => 'psql');
incident('a transaction is left open', qr/^idle in transaction\|psql\|t$/,
	load => [ load(4, 20, "UPDATE accounts SET n = n + 1 WHERE id = 1;\n") ],
	cause => sub { $forgotten->run('BEGIN'); $forgotten->run('UPDATE accounts SET n = 0 WHERE id = 1') },
	end => sub { $forgotten->run('ROLLBACK') });

# A release sends a query that no release before did.
my @new;
incident('a new query comes with a release', qr/^new query\|SELECT count\(DISTINCT note\) FROM orders WHERE amount < \$1\|t$/,
	around => 2,
	load => [ load(4, 40, $lookup) ],
	cause => sub { push @new, load(2, 4, "SELECT count(DISTINCT note) FROM orders WHERE amount < 50;\n") },
	end => sub { TachoIncident::stop_load(@new) });
done_testing();
