# Crash recovery is a gap with its cause. SQL objects of an older or a newer version
# work with this library as far as both know them. Calls that the library does not know
# are errors.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_marker wait_for_ticks);
use Test::More;

my $node = tacho_cluster('objects', conf => 'restart_after_crash = on');

# A backend is killed: everything is restarted, the sampler with it.
my $from = server_ms($node);
wait_for_ticks($node, 10, $from);
my $to = server_ms($node);
wait_for_ticks($node, 5, $to);
my $window = "since => @{[at($from)]}, until => @{[at($to)]}";
my $observed = $node->safe_psql('postgres', "SELECT ticks_observed FROM tacho.aas($window, bucket => '1 day')");
my $victim = tacho_session($node, app => 'victim');
$victim->send('SELECT pg_sleep(3600)');
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND wait_event = 'PgSleep'});
my $sampler = metric($node, 'sampler_pid');
kill 'KILL', $node->safe_psql('postgres',
	q{SELECT pid FROM pg_stat_activity WHERE application_name = 'victim'});
$victim->{harness}->finish;
ok( $node->poll_query_until('postgres', qq{
		SELECT value <> '$sampler' FROM tacho.status() WHERE metric = 'sampler_pid'}),
	'the server and the sampler come back');
ok(wait_for_marker($node, 'gap', 1), 'the time between is a gap');
is( $node->safe_psql('postgres', q{
		SELECT m.detail, a.ticks_observed
		FROM tacho.markers(since => '2000-01-01') m,
		  LATERAL tacho.aas(since => m.period_start, until => m.period_end, bucket => '1 day') a
		WHERE m.kind = 'gap'}),
	'crash recovery|0', 'the gap has its cause and no sample');
is( $node->safe_psql('postgres', "SELECT ticks_observed FROM tacho.aas($window, bucket => '1 day')"),
	$observed, 'the history from before the gap is kept');

# Objects of an older version: fewer arguments, fewer columns, other order.
$node->safe_psql('postgres', q{
	CREATE SCHEMA old;
	CREATE FUNCTION old.aas(until timestamptz DEFAULT NULL, since timestamptz DEFAULT NULL)
	RETURNS TABLE (avg_aas numeric, period_start timestamptz)
	LANGUAGE c AS '$libdir/tacho', 'tacho_reader';
	CREATE FUNCTION old.status() RETURNS TABLE (metric text, value text)
	LANGUAGE c AS '$libdir/tacho', 'tacho_status'});
is($node->safe_psql('postgres', "SELECT avg_aas, period_start FROM old.aas($window)"),
	$node->safe_psql('postgres', "SELECT avg_aas, period_start FROM tacho.aas($window)"),
	'a reader with fewer columns and arguments in another order answers alike');
is( $node->safe_psql('postgres', q{SELECT value FROM old.status() WHERE metric = 'version'}),
	$node->safe_psql('postgres', q{SELECT value FROM tacho.status() WHERE metric = 'version'}),
	'status() answers alike');

# Objects of a newer version: an unknown column, argument and reader.
$node->safe_psql('postgres', q{
	CREATE SCHEMA new;
	CREATE FUNCTION new.aas(since timestamptz DEFAULT NULL)
	RETURNS TABLE (avg_aas numeric, avg_joules numeric)
	LANGUAGE c AS '$libdir/tacho', 'tacho_reader';
	CREATE FUNCTION new.top(dimension text, planet text DEFAULT NULL)
	RETURNS TABLE (key text, avg_aas numeric) LANGUAGE c AS '$libdir/tacho', 'tacho_reader';
	CREATE FUNCTION new.horoscope() RETURNS TABLE (sign text, luck int)
	LANGUAGE c AS '$libdir/tacho', 'tacho_reader'});
my $stderr;
$node->psql('postgres', 'SELECT * FROM new.aas()', stderr => \$stderr);
like($stderr, qr/ERROR: .*avg_joules/, 'the error names a column that the program does not know');
note $stderr;
is($node->psql('postgres', q{SELECT * FROM new.top('wait_event')}), 0,
	'an argument that the program does not know is no error until it is given');
$node->psql('postgres', q{SELECT * FROM new.top('wait_event', planet => 'Mars')}, stderr => \$stderr);
like($stderr, qr/ERROR: .*planet/, 'the error names the argument that the program does not know');
note $stderr;
$node->psql('postgres', 'SELECT * FROM new.horoscope()', stderr => \$stderr);
like($stderr, qr/ERROR: .*horoscope/, 'the error names a reader that the program does not know');
note $stderr;
is(metric($node, 'recording'), 'on', 'recording goes on with old objects');
$node->stop;

done_testing();
