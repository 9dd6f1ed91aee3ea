# Each committed statement that changes the schema is a marker with its object, role,
# database and application: also in functions, subtransactions and prepared
# transactions. Temporary objects and what is rolled back at once are not.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);

my $node = tacho_cluster('schema', conf => "max_prepared_transactions = 5\nallow_in_place_tablespaces = on");
sub sql { return $node->safe_psql('postgres', $_[0]) }

# Waits for this number of markers; returns the new ones, sorted: two can have the same
# millisecond.
my $seen = 0;
sub changes
{
	my ($count) = @_;

	wait_for_marker($node, 'schema changed', $seen + $count);
	my @all = split /\n/, sql(q{SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'schema changed'
		ORDER BY period_start, detail});
	my @new = @all[ $seen .. $#all ];
	$seen = @all;
	return [ sort @new ];
}

sql('CREATE ROLE deploy SUPERUSER LOGIN');
sql('CREATE DATABASE shop');
$seen = 3;
wait_for_marker($node, 'schema changed', 3);
my $session = tacho_session($node, app => 'migrate', user => 'deploy');
my $by = ', role deploy, database postgres, application migrate, client [local]';
# Runs statements, each in its own transaction.
sub run { $session->run($_) foreach @_; return }

# Markers have milliseconds.
my $before = sql(q{SELECT date_trunc('milliseconds', clock_timestamp())});
run('CREATE SCHEMA app', 'CREATE TABLE app.orders(id int primary key, customer int)',
	'CREATE INDEX orders_customer ON app.orders(customer)', 'ALTER TABLE app.orders ADD COLUMN note text',
	'CREATE TEMP TABLE scratch(x int)', 'CREATE VIEW app.v AS SELECT 1 AS x', 'DROP VIEW app.v',
	'ALTER TABLE app.orders RENAME COLUMN note TO notes', 'TRUNCATE app.orders',
	q{ALTER ROLE deploy SET work_mem = '8MB'}, 'ALTER DATABASE shop RESET ALL', q{ALTER SYSTEM SET work_mem = '9MB'}, 'CREATE INDEX CONCURRENTLY later ON app.orders(notes)', 'DROP INDEX app.orders_customer');
is_deeply(changes(13), [ sort
		"CREATE SCHEMA app$by", "CREATE TABLE app.orders$by", "CREATE INDEX orders_customer on app.orders$by",
		"ALTER TABLE app.orders$by", "CREATE VIEW app.v$by", "DROP VIEW app.v$by",
		"ALTER TABLE app.orders note to notes$by", "TRUNCATE TABLE app.orders$by", "ALTER ROLE deploy SET work_mem$by",
		"ALTER DATABASE shop RESET ALL$by", "ALTER SYSTEM SET work_mem$by",
		"CREATE INDEX later on app.orders$by", "DROP INDEX app.orders_customer on app.orders$by" ], 'each statement has its object');
is(sql(qq{SELECT count(*) FROM tacho.markers(since => '$before') WHERE kind = 'schema changed'
	AND period_start >= '$before' AND period_end >= period_start AND marker_time = period_end}), 13, 'the marker reaches from the begin of the statement to its commit');

# Columns: each fact is one of its own. Relations have their OID, also when they are gone.
is(sql(qq{SELECT string_agg(concat_ws('|', command, object_class, object_name, database, username, application, client_addr,
		old_value, new_value, outcome, left_out), E'\n' ORDER BY period_start)
	FROM tacho.markers(since => '$before') WHERE kind = 'schema changed'}),
	join("\n", map { "$_|postgres|deploy|migrate|[local]" } 'CREATE SCHEMA|schema|app', 'CREATE TABLE|table|app.orders',
		'CREATE INDEX|index|orders_customer', 'ALTER TABLE|table|app.orders', 'CREATE VIEW|view|app.v', 'DROP VIEW|view|app.v',
		'ALTER TABLE|table|app.orders', 'TRUNCATE TABLE|table|app.orders', 'ALTER ROLE|role|deploy', 'ALTER DATABASE|database|shop',
		'ALTER SYSTEM SET|setting|work_mem', 'CREATE INDEX|index|later', 'DROP INDEX|index|app.orders_customer'), 'each fact of the marker has its column');
my $oids = sql(qq{SELECT string_agg(coalesce(object_oid::text, '-'), ' ' ORDER BY period_start)
	FROM tacho.markers(since => '$before') WHERE kind = 'schema changed'});
my ($orders, $later) = split /\|/, sql(q{SELECT 'app.orders'::regclass::oid, 'app.later'::regclass::oid});
like($oids, qr/^- $orders (\d+) $orders (\d+) \2 $orders $orders - - - $later \1$/, 'markers have the OIDs of relations');

# Other objects, long names, and a statement without a name.
my $long = 'x' x 63;
my $since = sql(q{SELECT date_trunc('milliseconds', clock_timestamp())});
run("CREATE SCHEMA $long", "CREATE TABLE $long.$long(x int)", "CREATE INDEX ON $long.$long(x)", "GRANT SELECT ON $long.$long TO deploy",
	'GRANT USAGE ON SCHEMA app TO deploy', 'REVOKE USAGE ON SCHEMA app FROM PUBLIC',
	'GRANT USAGE ON SCHEMA app TO SESSION_USER', 'ALTER ROLE CURRENT_ROLE SET jit = on', 'ALTER ROLE CURRENT_USER RESET jit', 'ALTER SYSTEM RESET ALL', "DROP TABLE $long.$long", 'ALTER TABLE app.orders RENAME TO kept',
	'ALTER TABLE app.kept RENAME TO orders', 'CREATE MATERIALIZED VIEW app.m AS SELECT 1 AS x', 'CREATE TABLE app.copied AS SELECT 1 AS x');
changes(15);
is(sql(qq{SELECT string_agg(concat_ws('|', command, object_class, object_name, (object_oid > 0)::text, split_part(detail, ', ', 1)), E'\n' ORDER BY period_start)
	FROM tacho.markers(since => '$since') WHERE kind = 'schema changed'}),
	join("\n", "CREATE SCHEMA|schema|$long|CREATE SCHEMA $long", "CREATE TABLE|table|$long.$long|true|CREATE TABLE $long.$long",
		"CREATE INDEX|index|CREATE INDEX on $long.$long", "GRANT|table|$long.$long|GRANT $long.$long to deploy", 'GRANT|schema|app|GRANT app to deploy',
		'REVOKE|schema|app|REVOKE app from PUBLIC', 'GRANT|schema|app|GRANT app to SESSION_USER',
		'ALTER ROLE|role|CURRENT_ROLE|ALTER ROLE CURRENT_ROLE SET jit', 'ALTER ROLE|role|CURRENT_USER|ALTER ROLE CURRENT_USER RESET jit',
		'ALTER SYSTEM RESET|setting|ALL|ALTER SYSTEM RESET ALL', "DROP TABLE|table|$long.$long|true|DROP TABLE $long.$long",
		'ALTER TABLE|table|app.orders|true|ALTER TABLE app.orders to kept', 'ALTER TABLE|table|app.kept|true|ALTER TABLE app.kept to orders',
		'CREATE MATERIALIZED VIEW|materialized view|app.m|true|CREATE MATERIALIZED VIEW app.m', 'CREATE TABLE AS|table|app.copied|true|CREATE TABLE AS app.copied'),
	'markers have other kinds of objects');

# A role that may create in a schema and not use it: the lookup of its OID refuses nothing.
sql($_) foreach 'CREATE ROLE half LOGIN', 'CREATE SCHEMA shut', 'GRANT CREATE ON SCHEMA shut TO half';
tacho_session($node, app => 'half', user => 'half')->run('CREATE TABLE shut.t(x int)');
changes(4);
is(sql(q{SELECT username, object_oid = 'shut.t'::regclass::oid FROM tacho.markers(since => '2000-01-01') WHERE object_name = 'shut.t'}),
	'half|t', 'a change in a schema that its creator may not use has its object');

# Transactions: no marker before the commit, none for what is rolled back.
run('BEGIN', 'CREATE TABLE a(x int)', 'SAVEPOINT s', 'CREATE TABLE b(x int)', 'ROLLBACK TO s', 'SAVEPOINT t',
	'CREATE TABLE c(x int)', 'RELEASE t');
is_deeply(changes(0), [], 'a change has no marker before the commit');
run('COMMIT');
is_deeply(changes(2), [ "CREATE TABLE a$by", "CREATE TABLE c$by" ], 'changes of subtransactions that were kept are markers');
run('BEGIN', 'CREATE TABLE gone(x int)', 'ROLLBACK', 'CREATE TABLE a(x int)',
	'DO $$BEGIN BEGIN CREATE TABLE d(x int); PERFORM 1/0; EXCEPTION WHEN division_by_zero THEN CREATE TABLE e(x int); END; END$$');
is_deeply(changes(1), ["CREATE TABLE e$by"], 'changes that fail have no marker, in a function neither');
run('BEGIN', 'CREATE TABLE p(x int)', q{PREPARE TRANSACTION 'x'}, q{ROLLBACK PREPARED 'x'});
is_deeply(changes(1), ["CREATE TABLE p$by (prepared, not committed)"], 'changes of a prepared transaction are markers');
run('BEGIN', 'ALTER TABLE app.orders ADD COLUMN late int', 'SELECT pg_sleep(1.1)', 'ROLLBACK');
like(changes(1)->[0], qr/^ALTER TABLE app\.orders\Q$by\E \(rolled back after 1\.\d s\)$/, 'a change that is rolled back after a second has that time');

# A statement that fails in a subtransaction leaves nothing behind.
run('BEGIN', 'SAVEPOINT s', 'CREATE TABLE app.orders(x int)', 'ROLLBACK TO s', 'SELECT pg_sleep(1.1)', 'ROLLBACK', 'CREATE TABLE after_failure(x int)');
is_deeply(changes(1), ["CREATE TABLE after_failure$by"], 'a statement that failed at once has no marker when its transaction ends');
run(q{CREATE FUNCTION failing() RETURNS int LANGUAGE plpgsql AS $$BEGIN BEGIN CREATE TABLE app.orders(x int);
	EXCEPTION WHEN duplicate_table THEN RETURN 1; END; RETURN 2; END$$}, 'CREATE TABLE around AS SELECT failing()');
is_deeply(changes(2), [ "CREATE FUNCTION failing$by", "CREATE TABLE AS around$by" ], 'a failed statement in a function leaves the statement around it');

# Temporary objects, whose statements do not say so.
run('CREATE TEMP TABLE own(x int)', 'CREATE INDEX own_x ON own(x)', 'CREATE INDEX ON own(x)', 'ALTER TABLE own ADD COLUMN y int', 'ALTER TABLE own RENAME COLUMN y TO z',
	'TRUNCATE own', 'TRUNCATE own, scratch', 'DROP INDEX own_x', 'DROP TABLE own, scratch', 'CREATE TEMP TABLE own(x int)', 'CREATE TABLE lasting(x int)', 'DROP TABLE own, lasting');
is_deeply(changes(2), [ "CREATE TABLE lasting$by", "DROP TABLE own, lasting$by" ], 'changes of temporary objects have no marker');

# Statements that find nothing to do.
run('CREATE TABLE IF NOT EXISTS app.orders(x int)', 'CREATE TABLE IF NOT EXISTS app.copied AS SELECT 1 AS x', 'CREATE SCHEMA IF NOT EXISTS app',
	'CREATE INDEX IF NOT EXISTS later ON app.orders(notes)', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON app.orders(notes)',
	'DROP TABLE IF EXISTS missing', 'DROP INDEX CONCURRENTLY IF EXISTS missing', 'DROP SCHEMA IF EXISTS missing', 'DROP ROLE IF EXISTS missing', 'ALTER TABLE IF EXISTS missing ADD COLUMN x int',
	'CREATE TABLE IF NOT EXISTS app.found(x int)', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS found_x ON app.found(x)', 'ALTER TABLE IF EXISTS app.found SET (fillfactor = 90)',
	'DROP INDEX CONCURRENTLY IF EXISTS app.found_x', 'DROP TABLE IF EXISTS missing, app.found', 'CREATE ROLE found', 'DROP ROLE IF EXISTS found', 'CREATE SCHEMA IF NOT EXISTS found', 'DROP SCHEMA IF EXISTS found');
is_deeply(changes(9), [ sort "CREATE TABLE app.found$by", "CREATE INDEX found_x on app.found$by", "ALTER TABLE app.found$by", "DROP INDEX app.found_x on app.found$by",
		"DROP TABLE missing, app.found$by", "CREATE ROLE found$by", "DROP ROLE found$by", "CREATE SCHEMA found$by", "DROP SCHEMA found$by" ], 'a statement that did nothing has no marker');

# Comments, without their text.
run(map { "COMMENT ON $_ IS 'said'" } 'TABLE app.orders', 'COLUMN app.orders.notes', 'CONSTRAINT orders_pkey ON app.orders', 'FUNCTION failing()', 'ROLE deploy');
is_deeply(changes(5), [ map { "COMMENT $_$by" } qw(app.orders app.orders.notes app.orders.orders_pkey deploy failing) ], 'each comment has its object');
is(sql(q{SELECT string_agg(object_class || ' ' || object_name, ', ' ORDER BY object_name) FROM tacho.markers(since => '2000-01-01') WHERE command = 'COMMENT'}),
	'table app.orders, column app.orders.notes, constraint app.orders.orders_pkey, role deploy, function failing', 'a comment has the kind of its object');

# Bounds: of a transaction, of a minute.
run(q{DO $$BEGIN FOR i IN 1..100 LOOP EXECUTE format('CREATE TABLE many%s(x int)', i); END LOOP; END$$});
is_deeply([ changes(16)->[0], $seen > 0 && (sort @{ [ split /\n/, sql(q{SELECT detail FROM tacho.markers(since => '2000-01-01')
	WHERE kind = 'schema changed' AND detail ~ 'in this transaction'}) ] })[0] ],
	[ "CREATE TABLE many1$by", "CREATE TABLE many16$by, and 84 more in this transaction" ], 'a transaction lists 16 and counts the others');
run(map { "CREATE TABLE one$_(x int)" } 1 .. 300);
my $told = q{FROM tacho.markers(since => '2000-01-01') WHERE kind = 'schema changed'};
ok($node->poll_query_until('postgres', qq{SELECT count(*) FILTER (WHERE detail ~ '^CREATE TABLE one')
	+ sum(substring(detail FROM '^(\\d+) more')::int) = 300 $told}), 'a minute lists some and counts the others')
  or diag(sql(qq{SELECT detail, marker_time $told}));

# Names given by a client count against tacho.name_limit. The changes above have used 1 kB of the
# day.
$node->append_conf('postgresql.conf', 'tacho.name_limit = 1kB');
$node->reload;
sql('CREATE ROLE flood SUPERUSER LOGIN');
wait_for_marker($node, 'settings changed', 1);
tacho_session($node, app => 'flooding', user => 'flood')->run('CREATE INDEX unnamed ON app.orders(id)');
ok($node->poll_query_until('postgres', qq{SELECT count(*) = 1 $told AND username = 'flood'}), 'a change of a role without room for names has its marker');
is(sql(qq{SELECT detail $told AND username = 'flood'}),
	'CREATE INDEX (other) (other), role flood, database postgres, application (other), client [local]', 'the marker has no name of the client');
like(sql(q{SELECT string_agg(detail, ' ') FROM tacho.markers(since => '2000-01-01') WHERE kind = 'names left out'}), qr/role "flood"/, 'a marker says that names are left out');

$node->append_conf('postgresql.conf', 'tacho.schema_changes = off');
$node->reload;
sql('SELECT pg_sleep(0.5)');
my $count = sql("SELECT count(*) $told");
$session = tacho_session($node, app => 'migrate', user => 'deploy');
run('CREATE TABLE unseen(x int)');
sql('SELECT pg_sleep(1)');
is(sql("SELECT count(*) $told"), $count, 'changes have no marker with tacho.schema_changes = off');

# A role without pg_read_all_stats sees who connects as little as in pg_stat_activity.
sql($_) foreach 'CREATE ROLE curious LOGIN', 'GRANT EXECUTE ON FUNCTION tacho.markers TO curious';
is($node->safe_psql('postgres', qq{SELECT count(*) > 0, count(application), count(client_addr), count(*) FILTER (WHERE detail ~ 'application|client') $told
	AND username = 'deploy'}, extra_params => [ '-U', 'curious' ]), 't|0|0|0', 'a role does not see the application and client of another role');
done_testing();
