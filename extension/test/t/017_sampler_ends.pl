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
is(metric($node, 'sampler_pid'), $first, 'which stays the same');

$node->safe_psql('postgres', "SELECT pg_terminate_backend($first)");
ok(wait_for_metric($node, 'sampler_starts', "value = '2'"),
	'a terminated sampler is started again');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'and records');
isnt(metric($node, 'sampler_pid'), $first, 'as another process');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$postmaster, 'the server was not disturbed');
ok(wait_for_metric($node, 'ticks_taken', 'value::bigint >= 10'), 'ticks go on');
ok(wait_until_written($node), 'and are written');
ok(wait_for_marker($node, 'stop', 1), 'its end is marked');
is( $node->safe_psql('postgres',
		q{SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'stop'}),
	'sampler terminated',
	'as what it was');

my $second = metric($node, 'sampler_pid');
kill 'KILL', $second;
ok( $node->poll_query_until('postgres',
		"SELECT pg_postmaster_start_time() = '$postmaster'
			AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $second)"),
	'the server recovers from a killed sampler');
ok(wait_for_metric($node, 'sampler_starts', "value = '1'"),
	'which starts with the new shared memory');
ok(wait_for_metric($node, 'ticks_taken', 'value::bigint >= 10'), 'ticks go on');
ok(wait_until_written($node), 'and are written');
is(metric($node, 'frames_lost'), '0', 'no frame is lost');
$node->stop;

done_testing();
