# A server in a small container: /proc is hidden, and the file system of its history
# becomes full. Kinds of CPU activity become coarser and status() says so; recording
# pauses, says so, and continues when there is space again.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoLocks qw(session);
use TachoNamespace qw(namespaces_missing start_inside);
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(at server_ms tacho_cluster wait_for_marker wait_for_ticks);
use Test::More;

my $node = tacho_cluster('container', start => 0);
my $missing = namespaces_missing($node);
plan skip_all => $missing if $missing;
my $small = $node->basedir . '/small';
$node->append_conf('postgresql.conf', qq{
tacho.directory = '$small/history'
tacho.min_free_space = 1MB
tacho.retention_size = 0
});
start_inside($node, '4m');
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');

# /proc is hidden.
my $spinner = session($node, 'spinner');
$spinner->send('DO $$ BEGIN LOOP END LOOP; END $$');
my $since = server_ms($node);
ok(wait_for_ticks($node, 10, $since), 'ticks are taken without /proc');
is( $node->safe_psql('postgres', qq{
		SELECT DISTINCT cpu FROM tacho.samples(since => @{[at($since)]}, n => NULL, application => 'spinner')
		WHERE wait_event IS NULL}),
	'CPU*', 'kinds of CPU are CPU* without /proc');
like(metric($node, 'cpu_kind'), qr{^off: could not open file "/proc/\d+/schedstat": No such file or directory$},
	'status() has the reason');
$node->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'spinner'});
$spinner->finish;

# The disk gets full: the server writes into it, too, as others would.
my $before = server_ms($node);
wait_for_ticks($node, 10, $before);
wait_until_written($node);
my $kept = $node->safe_psql('postgres',
	"SELECT ticks_observed FROM tacho.aas(until => @{[at($before)]}, bucket => '1 day')");
$node->safe_psql('postgres', q{COPY (SELECT repeat('x', 1000) FROM generate_series(1, 3200))
	TO PROGRAM 'cat > } . "$small/ballast'");
ok(wait_for_metric($node, 'reason', q{value = 'recording is paused for lack of space: less than 1 MB are free'}),
	'recording pauses when the disk is full');
is(metric($node, 'recording'), 'off', 'status() says that the disk is full');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server accepts queries on a full disk');
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 10"), 'the sampler goes on beside a full disk');
my $stderr;
$node->psql('postgres', 'SELECT count(*) FROM tacho.samples()', stderr => \$stderr);
like($stderr, qr/NOTICE:  history is not being recorded: recording is paused for lack of space: less than 1 MB are free/,
	'an answer has a notice of the pause');

# Really full: not a byte is left, and then room again.
$node->safe_psql('postgres', "COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; cat /dev/zero >> $small/ballast || true'");
$ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 10"),
	'the sampler goes on without a free byte');
$node->safe_psql('postgres', "COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; rm $small/ballast'");
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'recording goes on when there is room');
ok(wait_for_marker($node, 'recording resumed', 1), 'the resumption is marked');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(kind, ', ' ORDER BY marker_time) FROM tacho.markers(since => '2000-01-01') WHERE kind LIKE 'recording%'}),
	'recording paused, recording resumed', 'the history has the markers of the pause in order');
is( $node->safe_psql('postgres',
		"SELECT ticks_observed FROM tacho.aas(until => @{[at($before)]}, bucket => '1 day')"),
	$kept, 'the history from before the pause is kept');
my $after = server_ms($node);
ok(wait_for_ticks($node, 10, $after), 'new ticks are added');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');

$node->stop;
like(slurp_file($node->logfile),
	qr/WARNING:  history is not being written: recording is paused for lack of space: less than 1 MB are free\n.*DETAIL:  The server itself is not affected.\n.*HINT:  Free space, or adjust "tacho.min_free_space"/,
	'the log says what to do');

done_testing();
