# Markers of changes of the schema that fail, do nothing, or are rolled back in part. Changes
# without room are counted once. Names have the encoding of their database.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);

my $node = tacho_cluster('outcomes', conf => 'allow_in_place_tablespaces = on');
sub sql { return $node->safe_psql('postgres', $_[0]) }

sql('CREATE ROLE second SUPERUSER LOGIN; CREATE ROLE third SUPERUSER LOGIN; CREATE ROLE fourth SUPERUSER LOGIN');
my $session = tacho_session($node, app => 'migrate');
# A role has room for 120 markers in a minute.
sub next_role { $session = tacho_session($node, app => 'migrate', user => $_[0]); return }
sub run { $session->run($_) foreach @_; return }

# Waits for a change that is made last; returns the other ones since the last call,
# sorted, without their role, database and client.
my ($seen, $marks) = (0, 0);
sub changes
{
	my $mark = 'mark' . ++$marks;

	run("CREATE SCHEMA $mark");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM tacho.markers(since => '2000-01-01') WHERE object_name = '$mark'")
	  or die "no marker $mark";
	my @all = split /\n/, sql(q{SELECT regexp_replace(detail, ', role .*client \[local\]', '') FROM tacho.markers(since => '2000-01-01') WHERE kind = 'schema changed'
		ORDER BY marker_time, period_start, detail});
	my @new = grep { !/ mark\d+$/ } @all[ $seen .. $#all ];
	$seen = @all;
	return [ sort @new ];
}

run('CREATE SCHEMA app', 'CREATE TABLE app.orders(id int primary key, customer int)', 'CREATE INDEX orders_customer ON app.orders(customer)',
	'CREATE INDEX orders_both ON app.orders(id, customer)', 'CREATE TABLE app.parted(x int) PARTITION BY LIST (x)', 'CREATE TABLE app.part PARTITION OF app.parted FOR VALUES IN (1)');
changes();

# Statements that commit while they run, and end by an error of the second transaction.
my $other = tacho_session($node, app => 'other');
$other->run('BEGIN; LOCK TABLE app.orders, app.parted IN ROW EXCLUSIVE MODE');
sub stopped
{
	my ($statement, $stop) = @_;
	my $own = tacho_session($node, app => 'stopped');

	$own->send($statement);
	my $waiting = q{FROM pg_stat_activity WHERE application_name = 'stopped' AND wait_event_type = 'Lock'};
	$node->poll_query_until('postgres', "SELECT count(*) = 1 $waiting") or die "$statement does not wait";
	sql("SELECT $stop(pid) $waiting");
	$node->poll_query_until('postgres', "SELECT count(*) = 0 $waiting") or die "$statement does not end";
	$own->{harness}->finish;
	return;
}
stopped('DROP INDEX CONCURRENTLY app.orders_customer', 'pg_cancel_backend');
stopped('CREATE INDEX CONCURRENTLY later ON app.orders(customer)', 'pg_cancel_backend');
stopped('ALTER TABLE app.parted DETACH PARTITION app.part CONCURRENTLY', 'pg_cancel_backend');
stopped('DROP INDEX CONCURRENTLY app.orders_both', 'pg_terminate_backend');
$other->run('COMMIT');
is_deeply(changes(), [ 'ALTER TABLE app.parted (failed, done in part)', 'CREATE INDEX later on app.orders (failed, done in part)',
		'DROP INDEX app.orders_both on app.orders (failed, done in part)', 'DROP INDEX app.orders_customer on app.orders (failed, done in part)' ],
	'a statement that fails after it has committed has a marker');
is(sql(q{SELECT count(*), count(outcome) FROM tacho.markers(since => '2000-01-01') WHERE detail ~ 'failed'}), '4|0', 'a statement that fails after it has committed counts as a change');

# Statements that take one table after the other, each in a transaction of its own. The lock
# of the first or of the last table stops them.
next_role('fourth');
my $long = 'x' x 63;
run('CREATE SCHEMA several', map({ ("CREATE TABLE several.$_(x int primary key)", "CLUSTER several.$_ USING ${_}_pkey") } qw(a b)),
	"CREATE SCHEMA $long", "CREATE TABLE $long.$long(x int)", "CREATE INDEX long ON $long.$long(x)");
changes();
my %lists = (CLUSTER => q{SELECT indrelid::regclass FROM pg_index WHERE indisclustered ORDER BY ctid},
	'REINDEX SCHEMA several' => q{SELECT oid::regclass FROM pg_class WHERE relnamespace = 'several'::regnamespace AND relkind = 'r' ORDER BY ctid});
sub files { return sql(q{SELECT string_agg(pg_relation_filenode(indexrelid)::text, ' ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = 'several.a'::regclass OR indrelid = 'several.b'::regclass}) }
foreach my $statement (sort keys %lists)
{
	foreach my $place (0, 1)
	{
		my $table = (split /\n/, sql($lists{$statement}))[$place];
		my $before = files();

		$other->run("BEGIN; LOCK TABLE $table IN ROW EXCLUSIVE MODE");
		stopped($statement, 'pg_cancel_backend');
		$other->run('COMMIT');
		is(files() ne $before, $place == 1, "$statement has done a part if the last table stops it");
		my $new = [ grep { !/rolled back after [1-9]/ } @{ changes() } ];
		is_deeply($new, [ $place == 1 ? ($statement =~ s/ SCHEMA//r) . ' (failed, done in part)' : () ],
			"$statement has the marker of a change if it has done a part");
	}
}
$other->run("BEGIN; LOCK TABLE $long.$long IN ROW EXCLUSIVE MODE");
stopped("DROP INDEX CONCURRENTLY $long.long", 'pg_cancel_backend');
$other->run('COMMIT');
is_deeply(changes(), ["DROP INDEX $long.long on $long.$long (failed, done in part)"], 'long names leave room for the words');
run('CREATE SCHEMA nothing', 'REINDEX SCHEMA nothing', map({ "ALTER TABLE several.$_ SET WITHOUT CLUSTER" } qw(a b)), 'CLUSTER');
is_deeply(changes(), [ 'ALTER TABLE several.a', 'ALTER TABLE several.b', 'CREATE SCHEMA nothing' ], 'CLUSTER and REINDEX of no table have no marker');

# CLUSTER and REINDEX.
run('CLUSTER app.orders USING orders_pkey', 'CLUSTER app.orders', 'REINDEX TABLE app.orders', 'REINDEX INDEX app.orders_pkey',
	'REINDEX SCHEMA app', 'CREATE TEMP TABLE own(x int primary key)', 'CLUSTER own USING own_pkey', 'REINDEX TABLE own');
is_deeply(changes(), [ 'CLUSTER app.orders', 'CLUSTER app.orders using orders_pkey', 'REINDEX app', 'REINDEX app.orders',
		'REINDEX app.orders_pkey on app.orders' ], 'CLUSTER and REINDEX have markers, temporary tables do not');
is(sql(q{SELECT string_agg(DISTINCT concat_ws('|', command, object_class, object_name, object_oid::regclass), E'\n') FROM tacho.markers(since => '2000-01-01')
		WHERE command IN ('CLUSTER', 'REINDEX') AND object_name ~ '^app'}),
	"CLUSTER|table|app.orders|app.orders\nREINDEX|index|app.orders_pkey|app.orders_pkey\nREINDEX|schema|app\nREINDEX|table|app.orders|app.orders",
	'their markers have object and OID');

# A savepoint or an EXCEPTION block rolls back.
run('BEGIN', 'SAVEPOINT s', 'ALTER TABLE app.orders ADD COLUMN held int', 'SELECT pg_sleep(1.1)', 'ALTER TABLE app.orders ADD COLUMN brief int', 'ROLLBACK TO s', 'COMMIT');
my $slow = changes();
is_deeply([ grep { !/rolled back after [1-9]/ } @$slow ], [], 'a change that a savepoint rolls back at once has no marker');
like($slow->[0], qr/^ALTER TABLE app\.orders \(rolled back after \d+\.\d s\)$/, 'a change that a savepoint rolls back after a second has one');
run('DO $$BEGIN BEGIN TRUNCATE app.orders; PERFORM pg_sleep(1.1); PERFORM 1/0; EXCEPTION WHEN division_by_zero THEN NULL; END; END$$');
like(join(' ', @{ changes() }), qr/^TRUNCATE TABLE app\.orders \(rolled back after \d+\.\d s\)$/, 'a change that an EXCEPTION block rolls back has one, too');

# The number of changes without a note.
sub many { my ($count) = @_; return qq{DO \$\$BEGIN FOR i IN 1..$count LOOP CREATE OR REPLACE VIEW app.v AS SELECT 1 AS x; END LOOP; END\$\$} }
run('BEGIN', many(16), 'SAVEPOINT s', many(100), 'ROLLBACK TO s', 'SAVEPOINT t', many(2), 'SAVEPOINT u', many(1), 'RELEASE u', 'RELEASE t', many(4), 'COMMIT');
is_deeply(changes(), [ ('CREATE VIEW app.v') x 15, 'CREATE VIEW app.v, and 7 more in this transaction' ], 'changes that were rolled back are not counted');
run('BEGIN', many(16), 'SAVEPOINT s', many(2), 'SAVEPOINT t', many(1), 'RELEASE t', 'SELECT pg_sleep(1.1)', many(1), 'ROLLBACK TO s', 'COMMIT');
$slow = changes();
like(pop @$slow, qr/^CREATE VIEW app\.v \(rolled back after [1-9]\d*\.\d s\), and 3 more in this transaction$/, 'a change without a note that is rolled back after a second has a marker');
is_deeply($slow, [ ('CREATE VIEW app.v') x 16 ], 'the changes before its savepoint are committed');

next_role('second');
# Some builds cannot load what a subscription needs.
my @subscriptions = $node->psql('postgres', q{LOAD 'libpqwalreceiver'}) == 0 ? qw(sub_a sub_b) : ();
# Statements with IF EXISTS and IF NOT EXISTS, alone and where the transaction has an id.
run('CREATE DOMAIN app.d AS int CONSTRAINT positive CHECK (VALUE > 0)', q{CREATE TYPE app.mood AS ENUM ('ok')}, 'CREATE FOREIGN DATA WRAPPER w',
	'CREATE SERVER srv FOREIGN DATA WRAPPER w', 'CREATE USER MAPPING FOR CURRENT_USER SERVER srv', 'CREATE STATISTICS app.st ON id, customer FROM app.orders',
	'CREATE COLLATION app.c FROM "C"', 'CREATE SEQUENCE app.s', 'CREATE DATABASE gone', q{CREATE TABLESPACE gone LOCATION ''},
	map({ "CREATE SUBSCRIPTION $_ CONNECTION 'dbname=postgres' PUBLICATION p WITH (connect = false, slot_name = NONE)" } @subscriptions));
changes();
my @nothing = ('ALTER TABLE IF EXISTS missing RENAME TO other', 'ALTER TABLE IF EXISTS missing RENAME COLUMN a TO b', 'ALTER VIEW IF EXISTS missing RENAME TO other',
	'ALTER SEQUENCE IF EXISTS missing RESTART', 'ALTER TABLE IF EXISTS missing SET SCHEMA app', 'ALTER TABLE app.orders ADD COLUMN IF NOT EXISTS id int', 'CREATE SERVER IF NOT EXISTS srv FOREIGN DATA WRAPPER w',
	q{ALTER TYPE app.mood ADD VALUE IF NOT EXISTS 'ok'}, 'CREATE USER MAPPING IF NOT EXISTS FOR CURRENT_USER SERVER srv',
	'CREATE STATISTICS IF NOT EXISTS app.st ON id, customer FROM app.orders', 'ALTER STATISTICS IF EXISTS missing SET STATISTICS 5',
	'CREATE COLLATION IF NOT EXISTS app.c FROM "C"', 'ALTER DOMAIN app.d DROP CONSTRAINT IF EXISTS missing', 'DROP USER MAPPING IF EXISTS FOR CURRENT_USER SERVER missing', 'DROP SUBSCRIPTION IF EXISTS missing');
my @once = ('DROP DATABASE IF EXISTS missing', 'DROP TABLESPACE IF EXISTS missing');
run(@nothing, @once);
is_deeply(changes(), [], 'a statement that did nothing has no marker');
run('BEGIN', 'CREATE TABLE app.first(x int)', @nothing, 'COMMIT');
is_deeply(changes(), ['CREATE TABLE app.first'], 'a statement that did nothing has no marker behind one that did something');
my @something = ('ALTER TABLE IF EXISTS app.first RENAME TO second', 'ALTER TABLE IF EXISTS app.second RENAME COLUMN x TO y', 'ALTER SEQUENCE IF EXISTS app.s INCREMENT 2',
	'ALTER TABLE IF EXISTS app.second SET SCHEMA public', 'CREATE SERVER IF NOT EXISTS other FOREIGN DATA WRAPPER w', q{ALTER TYPE app.mood ADD VALUE IF NOT EXISTS 'good'},
	'CREATE USER MAPPING IF NOT EXISTS FOR CURRENT_USER SERVER other', 'CREATE STATISTICS IF NOT EXISTS app.st2 ON id, customer FROM app.orders',
	'ALTER STATISTICS IF EXISTS app.st SET STATISTICS 5', 'CREATE COLLATION IF NOT EXISTS app.c2 FROM "C"', 'ALTER DOMAIN app.d DROP CONSTRAINT IF EXISTS positive',
	'DROP USER MAPPING IF EXISTS FOR CURRENT_USER SERVER other');
my @made = sort 'ALTER TABLE app.first to second', 'ALTER TABLE app.second x to y', 'ALTER SEQUENCE app.s', 'ALTER TABLE app.second to public', 'CREATE SERVER other', 'ALTER TYPE app.mood',
	'CREATE USER MAPPING', 'CREATE STATISTICS app.st2', 'ALTER STATISTICS app.st', 'CREATE COLLATION app.c2', 'ALTER DOMAIN app.d', 'DROP USER MAPPING';
run('BEGIN', @something, 'ROLLBACK');
changes();
run('BEGIN', 'TRUNCATE app.orders', @something, 'COMMIT');
is_deeply(changes(), [ sort @made, 'TRUNCATE TABLE app.orders' ], 'a statement that did something in such a transaction has a marker');
run('ALTER TABLE second RENAME TO first', 'ALTER TABLE first RENAME COLUMN y TO x', 'ALTER TABLE first SET SCHEMA app', 'DROP SERVER other', 'DROP STATISTICS app.st2',
	'DROP COLLATION app.c2', 'ALTER DOMAIN app.d ADD CONSTRAINT positive CHECK (VALUE > 0)');
changes();
$something[5] =~ s/good/better/;
run(@something, 'DROP DATABASE IF EXISTS gone', 'DROP TABLESPACE IF EXISTS gone', 'DROP SUBSCRIPTION IF EXISTS sub_a', 'BEGIN', 'DROP SUBSCRIPTION IF EXISTS sub_b', 'COMMIT');
is_deeply(changes(), [ sort @made, 'DROP DATABASE gone', 'DROP TABLESPACE gone', map { "DROP SUBSCRIPTION $_" } @subscriptions ], 'a statement that did something has a marker');

next_role('third');
# Objects that are no relations have their old name.
run('CREATE ROLE before', 'CREATE DATABASE before', q{CREATE TABLESPACE before LOCATION ''});
changes();
run('ALTER SCHEMA mark1 RENAME TO marked', 'ALTER ROLE before RENAME TO after', 'ALTER DATABASE before RENAME TO after', 'ALTER TABLESPACE before RENAME TO after');
is_deeply(changes(), [ map { "ALTER $_" } 'DATABASE before to after', 'ROLE before to after', 'SCHEMA mark1 to marked', 'TABLESPACE before to after' ], 'a renamed object has its old name');

# EXPLAIN ANALYZE makes the table.
run('EXPLAIN ANALYZE CREATE TABLE app.explained AS SELECT 1 AS x', 'EXPLAIN ANALYZE CREATE TEMP TABLE unseen AS SELECT 1 AS x',
	'EXPLAIN CREATE TABLE app.unseen AS SELECT 1 AS x', 'EXPLAIN ANALYZE SELECT 1');
is_deeply(changes(), ['CREATE TABLE AS app.explained'], 'EXPLAIN ANALYZE counts as the statement that it executes');

# Names of databases in other encodings.
my %names = (LATIN1 => 'gr\00F6\00DFe', EUC_JP => '\65E5\672C');
foreach my $encoding (sort keys %names)
{
	sql("CREATE DATABASE other_$encoding TEMPLATE template0 ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C'");
	tacho_session($node, app => 'other', db => lc "other_$encoding")->run(qq{CREATE TABLE U&"$names{$encoding}"(x int)})
	  ->run(qq{CREATE INDEX i ON U&"$names{$encoding}"(x)});
	changes();
	is(sql(qq{SELECT count(*) FILTER (WHERE object_name = U&'$names{$encoding}'), count(*) FILTER (WHERE detail LIKE U&'CREATE INDEX i on $names{$encoding},%')
			FROM tacho.markers(since => '2000-01-01') WHERE database = 'other_' || lower('$encoding')}),
		'1|1', "a marker has the name of a database in $encoding");
}

# A sampler that stands still takes no change. One that starts again tells no change twice.
my $since = sql(q{SELECT date_trunc('milliseconds', clock_timestamp())});
my $told = qq{FROM tacho.markers(since => '$since') WHERE kind = 'schema changed' AND marker_time >= '$since'};
sub sampler { return sql(q{SELECT value FROM tacho.status() WHERE metric = 'sampler_pid'}) }
foreach my $round (1, 2)
{
	my $pid = sampler();
	kill 'STOP', $pid;
	run(map { 'CREATE OR REPLACE VIEW app.v AS SELECT 1 AS x' } 1 .. 300);
	kill 'CONT', $pid;
	my $all = 300 * $round;
	ok($node->poll_query_until('postgres', "SELECT count(command) + sum(coalesce(left_out, 0)) >= $all $told"), "all changes of round $round have their marker");
	is(sql("SELECT count(command) + sum(coalesce(left_out, 0)) $told"), $all, "no change of round $round is counted twice");
	sql("SELECT pg_terminate_backend($pid)");
	$node->poll_query_until('postgres', "SELECT value::int <> $pid FROM tacho.status() WHERE metric = 'sampler_pid'");
}
done_testing();
