# A sampler that is terminated, cancelled or killed comes back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster wait_for_marker);
use Test::More;

my $node = tacho_cluster('sampler', interval => '50ms',
	conf => 'restart_after_crash = on');
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $first = metric($node, 'sampler_pid');

$node->safe_psql('postgres', "SELECT pg_cancel_backend($first)");
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 10"),
	'a cancel does not disturb the sampler');
is(metric($node, 'sampler_pid'), $first, 'the cancelled sampler is still the same process');

$node->safe_psql('postgres', "SELECT pg_terminate_backend($first)");
ok(wait_for_metric($node, 'sampler_starts', "value = '2'"),
	'a terminated sampler is started again');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'the restarted sampler records');
isnt(metric($node, 'sampler_pid'), $first, 'the restarted sampler is another process');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$postmaster, 'a terminated sampler does not restart the server');
ok(wait_for_metric($node, 'ticks_taken', 'value::bigint >= 10'), 'ticks go on after the sampler was terminated');
ok(wait_until_written($node), 'ticks are written after the sampler was terminated');
ok(wait_for_marker($node, 'stop', 1), 'the end of the sampler is marked');
is( $node->safe_psql('postgres',
		q{SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'stop'}),
	'sampler terminated',
	'the marker says that the sampler stopped');

my $second = metric($node, 'sampler_pid');
kill 'KILL', $second;
ok( $node->poll_query_until('postgres',
		"SELECT pg_postmaster_start_time() = '$postmaster'
			AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $second)"),
	'the server recovers from a killed sampler');
ok(wait_for_metric($node, 'sampler_starts', "value = '1'"),
	'the sampler starts after the crash recovery');
ok(wait_for_metric($node, 'ticks_taken', 'value::bigint >= 10'), 'ticks go on after the crash recovery');
ok(wait_until_written($node), 'ticks are written after the crash recovery');
is(metric($node, 'frames_lost'), '0', 'no frame is lost after the crash recovery');
$node->stop;

done_testing();
