# A sampler that got no CPU for long reports that when it continues.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_until_written);
use TachoTest qw(server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $node = tacho_cluster('stopped');

sub sql { return $node->safe_psql('postgres', $_[0]) }

wait_for_ticks($node, 5, server_ms($node));
my $sampler = metric($node, 'sampler_pid');
kill 'STOP', $sampler;
my $since = server_ms($node);
my $until = $since + 12_000;
ok($node->poll_query_until('postgres',
		"SELECT extract(epoch FROM clock_timestamp()) * 1000 > $until"),
	'no tick is taken for twelve seconds');
kill 'CONT', $sampler;
ok($node->poll_query_until('postgres', qq{
		SELECT count(*) = 1 FROM tacho.markers(since => '2000-01-01')
		WHERE kind = 'gap' AND detail ~ '^the sampler did not run for \\d+\\.\\d s\$'
		  AND extract(epoch FROM period_start) * 1000 <= $since + 1000
		  AND extract(epoch FROM period_end) * 1000 >= $until - 1000}),
	'the pause of the sampler is marked with its bounds');
wait_until_written($node);
is( sql(q{
		SELECT count(*) FROM tacho.markers(since => '2000-01-01') g
		WHERE kind = 'gap' AND EXISTS (
		  SELECT FROM tacho.samples(since => g.period_start, until => g.period_end, scope => 'all', n => NULL) s
		  WHERE s.sample_time >= g.period_start AND s.sample_time < g.period_end)}),
	'0', 'the pause has no sample');
$node->stop;

done_testing();
