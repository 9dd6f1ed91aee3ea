# The counters of tables say why a query is slower, also if no change of the schema is recorded: as on
# a standby, whose primary dropped an index.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoIncident qw(incident load server sql);
use Test::More;

# An incident needs CPUs that others leave alone: its load must rise.
plan skip_all => 'incidents need a quiet machine: make test-incidents' unless $ENV{TACHO_INCIDENTS};

my ($node, $deploy) = server('table_scanned', q{
	CREATE TABLE orders AS SELECT n AS id, n % 5000 AS customer, n % 97 AS amount, repeat('x', 40) AS note FROM generate_series(1, 400000) n;
	CREATE INDEX orders_customer ON orders(customer);
	CREATE TABLE jobs AS SELECT n AS id, 'done' AS state FROM generate_series(1, 500000) n;
	VACUUM ANALYZE orders; VACUUM ANALYZE jobs},
	"tacho.schema_changes = off\ntacho.tables_interval = 1s\ntacho.plan_text_rate = 10000\n");

# Nearer are a scan of a larger table, which the query does not mention, and an index of its own table.
incident('an index is gone, and nothing says so', qr/^table scanned\|public\.orders\|t$/,
	around => 2,
	load => [ load(4, 40, "\\set c random(0, 4999)\nSELECT sum(amount) FROM orders WHERE customer = :c;\n") ],
	cause => sub { $deploy->run('DROP INDEX orders_customer') },
	near => sub { sql('SELECT count(*) FROM jobs'); $deploy->run('CREATE INDEX orders_note ON orders(note)') });
done_testing();
