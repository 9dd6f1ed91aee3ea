# A server that stops marks it, leaves no process behind, and the ticks of the
# next start continue the numbers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster wait_for_marker);
use Test::More;
use Time::HiRes qw(usleep);

my $node = tacho_cluster('stop', interval => '50ms');
my $kinds = q{SELECT string_agg(kind, ', ' ORDER BY marker_time, kind DESC)
	FROM tacho.markers(since => '2000-01-01') WHERE kind IN ('start', 'stop')};

my $last_tick = 'SELECT coalesce(max(tick), 0) FROM tacho.samples(n => 1)';

# Waits for a tick newer than $tick. The session that waits is the one it samples.
sub tick_after
{
	my ($tick) = @_;
	return $node->poll_query_until('postgres',
		"SELECT ($last_tick) > $tick FROM pg_sleep(0.2)");
}

ok(wait_for_metric($node, 'ticks_taken', 'value::bigint > 20'), 'ticks are taken before the stop');
ok(wait_until_written($node), 'ticks are written before the stop');
ok(tick_after(0), 'ticks have numbers before the stop');

for my $mode ('fast', 'immediate', 'smart')
{
	my $before = $node->safe_psql('postgres', $last_tick);
	my $writer = metric($node, 'writer_pid');
	$node->stop($mode);
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless kill 0, $writer;
		usleep(100_000);
	}
	ok(!kill(0, $writer), "no writer survives a $mode stop");
	$node->start;
	ok(wait_for_metric($node, 'ticks_taken', 'value::bigint > 20'),
		'ticks are taken after the start');
	ok(wait_until_written($node), 'ticks are written after the start');
	ok(tick_after($before), 'numbers of ticks go on after the start');
}
ok(wait_for_marker($node, 'start', 4), 'each start is marked');
is($node->safe_psql('postgres', $kinds),
	'start, stop, start, start, stop, start',
	'each stop but the immediate one is marked');
is( $node->safe_psql('postgres',
		q{SELECT DISTINCT detail FROM tacho.markers(since => '2000-01-01')
		WHERE kind = 'stop'}),
	'server stopped',
	'stops are marked as stops of the server');
$node->stop;

done_testing();
