# An autovacuum worker fills the write-ahead log, and queries of its table wait for room in it. They do
# not wait for the disk themselves, so that a slow disk alone makes no load.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoIncident qw(incident load server sql);
use Test::More;

# An incident needs CPUs that others leave alone: its load must rise.
plan skip_all => 'incidents need a quiet machine: make test-incidents' unless $ENV{TACHO_INCIDENTS};

# On a quick disk the worker ends too soon, and queries do not wait for the log.
my ($syncs) = qx(pg_test_fsync -s 1 -f "$ENV{TESTDATADIR}/synced") =~ m{fdatasync\s+([0-9]+)[.0-9]* ops/sec};
plan skip_all => "the disk syncs $syncs times a second; the worker needs one with at most 400" if $syncs > 400;

# Each page of orders from row 80,001 on has a dead row, 48,571 in all. After the checkpoint, the worker
# writes each of these pages into the log. The threshold is reached when 9,000 other rows are deleted, and
# not before: clients change 400 rows a second. So few pages have pointers to dead rows that the worker
# leaves out the indexes. The pages of the deleted rows are in the log already, so that clients do not wait
# for the DELETE.
my ($node, $deploy) = server('autovacuum', q{
	BEGIN;
	CREATE TABLE orders WITH (fillfactor = 80) AS SELECT n AS id, n % 97 AS amount, repeat('x', 800) AS note FROM generate_series(1, 420000) n;
	UPDATE orders SET amount = 0 WHERE id > 80000 AND id % 7 = 0;
	CREATE UNIQUE INDEX orders_id ON orders(id);
	CREATE TABLE lines WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 20, autovacuum_vacuum_cost_limit = 100)
		AS SELECT n AS id, repeat('x', 400) AS note FROM generate_series(1, 100000) n;
	COMMIT;
	CHECKPOINT;
	BEGIN; DELETE FROM orders WHERE id BETWEEN 71001 AND 80000; ROLLBACK}, q{
fsync = on
synchronous_commit = off
wal_buffers = 64kB
max_wal_size = 4GB
autovacuum = on
autovacuum_naptime = 1s
autovacuum_vacuum_cost_delay = 2ms
autovacuum_vacuum_cost_limit = 800
autovacuum_vacuum_scale_factor = 0
autovacuum_vacuum_threshold = 57400
autovacuum_vacuum_insert_threshold = -1
autovacuum_analyze_threshold = 2000000000
});

# Nearer are a worker that pauses, on a table that the query does not mention, and a VACUUM by hand of
# another table.
incident('autovacuum works on a table', qr/^autovacuum\|public\.orders\|t$/,
	around => 3,
	load => [ load(4, 400, "\\set i random(1, 70000)\nUPDATE orders SET amount = amount + 1 WHERE id = :i;\n") ],
	cause => sub { sql('DELETE FROM orders WHERE id BETWEEN 71001 AND 80000') },
	near => sub { sql('DELETE FROM lines WHERE id <= 1000'); $deploy->run('VACUUM items') });

# A worker that starts has no state yet.
is(sql(q{SELECT string_agg(DISTINCT coalesce(query_text, 'no text'), ', ' ORDER BY coalesce(query_text, 'no text'))
	FROM tacho.samples(backend_type => 'autovacuum worker', scope => 'all', n => null) WHERE state = 'active'}),
	'autovacuum: VACUUM public.lines, autovacuum: VACUUM public.orders', 'each worker at work has a text');
done_testing();
