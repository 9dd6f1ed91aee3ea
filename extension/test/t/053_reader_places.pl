# Reader functions work wherever a query does: in a read-only transaction, in a parallel
# plan, in a cursor, in PL/pgSQL, on a standby. If the library was not loaded at server
# start, they say so.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster);
use Test::More;

my $node = stand_in_cluster(
	'places',
	init => { allows_streaming => 1 },
	conf => "max_parallel_workers = 4\n");
my $answer = q{answer([ 'number', 1 + $#ARGV ], [ 'function', $ARGV[1] ])};
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

behave($node, $answer);

sub value
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

is( value(q{BEGIN READ ONLY; SELECT value FROM tacho.summary() WHERE metric = 'function'; COMMIT}),
	'summary', 'a read-only transaction can ask a reader');
is( value(q{BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT value FROM tacho.summary() WHERE metric = 'function'; COMMIT}),
	'summary', 'a serializable deferrable transaction can ask a reader');

# Parallel plans: the function runs in the leader, beside a scan in workers.
value(q{CREATE TABLE big AS SELECT generate_series(1, 100000) AS id; ANALYZE big});
my $force = $version >= 160000 ? 'debug_parallel_query' : 'force_parallel_mode';
my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;};

is(value("SET $force = on; SELECT count(*) FROM tacho.summary()"),
	'2', 'a plan that must be parallel runs a reader in its leader');
is( value("$parallel SELECT (SELECT count(*) FROM big WHERE id % 2 = 0), count(*) FROM tacho.summary()"),
	'50000|2', 'a reader runs beside a parallel scan');
like(
	value("$parallel EXPLAIN (COSTS OFF) SELECT count(*) FROM big JOIN tacho.summary() s ON s.value = big.id::text"),
	qr/Gather.*Parallel Seq Scan on big/s,
	'a parallel scan is planned for a join with a reader');
is( value("$parallel SELECT count(*) FROM big JOIN tacho.summary() s ON s.value = big.id::text"),
	'1', 'a parallel scan joined with a reader gives its rows');
is( value(q{SELECT DISTINCT proparallel, provolatile FROM pg_proc WHERE pronamespace = 'tacho'::regnamespace AND prosrc IN ('tacho_reader', 'tacho_status')}),
	'r|v', 'all readers are parallel restricted and volatile');

# Forms of calling
is( value(q{SELECT (tacho.summary()).value}) =~ s/^\d+\n//r,
	'summary', 'a reader works in the select list');
is(value(q{SELECT count(*) FROM (SELECT tacho.summary() LIMIT 1) s}),
	'1', 'a reader works with LIMIT');
is( value(q{BEGIN; DECLARE c SCROLL CURSOR FOR SELECT metric FROM tacho.summary(); FETCH LAST FROM c; FETCH PRIOR FROM c; COMMIT}),
	"function\nnumber", 'a reader works in a cursor');
is( value(q{SELECT count(*) FROM generate_series(1, 20) i, LATERAL tacho.summary(since => now() - i * interval '1 hour')}),
	'40', 'a lateral reader runs once for each row');
is( value(q{PREPARE p(timestamptz) AS SELECT count(*) FROM tacho.summary(since => $1);
EXECUTE p('2026-01-01'); EXECUTE p('2026-01-02')}), "2\n2", 'prepared');
is( value(q{DO $$
DECLARE r record;
BEGIN
	FOR r IN SELECT * FROM tacho.summary() LOOP
		RAISE WARNING '%', r.metric;
	END LOOP;
END $$;
SELECT count(*) FROM tacho.summary()}), '2', 'a reader works in PL/pgSQL');
is( value(q{CREATE TABLE kept AS SELECT * FROM tacho.summary(); SELECT count(*) FROM kept}),
	'2', 'a reader fills a table');
is( value(q{SET search_path = pg_temp; CREATE FUNCTION pg_temp.length(text) RETURNS int LANGUAGE sql AS 'SELECT 1/0';
SELECT pg_catalog.count(*) FROM tacho.summary()}),
	'2', 'a reader works with a hostile search_path');

# Arguments by position
behave($node, q{answer([ 'arguments', join ' ', grep { !/^--(tape|format|memory|parent)/ } @ARGV ])});
is( value(q{SET TimeZone = 'Asia/Kathmandu'; SELECT value FROM tacho.summary('2026-01-01 00:00+00', '2026-01-01 01:00+00')}),
	'query summary --since=2026-01-01T00:00:00.000000Z --until=2026-01-01T01:00:00.000000Z --scope=load --session-tz=Asia/Kathmandu --by-leader=false',
	'a reader takes arguments by position');

# A standby, with a program of its own
behave($node, $answer);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
is( $standby->safe_psql('postgres',
		q{SELECT pg_is_in_recovery(), count(*) FROM tacho.summary()}),
	't|2', 'a reader works on a standby');
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT count(*) FROM tacho.summary()}),
	'2', 'a reader works on a promoted standby');
$standby->stop;

# Without shared_preload_libraries
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
for my $function (qw(aas status))
{
	my $stderr;

	$node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM tacho.$function();",
		stderr => \$stderr);
	like($stderr, qr/ERROR:  55000: $function\(\) needs tacho to be loaded at server start/,
		"$function() works without shared_preload_libraries");
	like($stderr, qr/^HINT:  Add tacho to shared_preload_libraries and restart the server\.$/m,
		'the hint names shared_preload_libraries');
}

$node->stop;
done_testing();
