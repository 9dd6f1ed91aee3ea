# Settings change with a reload, and the history says so.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster wait_for_marker);
use Test::More;

my $node = tacho_cluster('reload', interval => '1s');
is(metric($node, 'tick_interval_ms'), '1000', 'the interval before the reload equals the setting');

$node->append_conf('postgresql.conf',
	"tacho.sample_interval = 40ms\ntacho.flush_interval = 2s\n"
	  . 'tacho.retention_unshipped = 20GB');
$node->reload;
ok(wait_for_metric($node, 'tick_interval_ms', "value = '40'"),
	'the interval follows a reload');
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 50"),
	'ticks follow the interval');
ok(wait_until_written($node), 'frames are written');
ok(wait_for_marker($node, 'settings changed', 3), 'each changed setting is a marker');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(substring(detail from '(.*) \(.*\)$'), ', ' ORDER BY detail)
		FROM tacho.markers(since => '2000-01-01') WHERE kind = 'settings changed'}),
	'tacho.flush_interval: 1s -> 2s, tacho.retention_unshipped: 0 -> 20GB, tacho.sample_interval: 1s -> 40ms',
	'a marker has the old and the new value');

$node->append_conf('postgresql.conf',
	"tacho.max_cpu = 0.01\ntacho.sample_interval = 10ms");
$node->reload;
ok(wait_for_metric($node, 'tick_interval_ms', 'value::int > 10'),
	'a sampler over its budget takes fewer ticks');
ok(wait_for_marker($node, 'interval changed', 1), 'the lower rate is marked');
like(
	$node->safe_psql('postgres',
		q{SELECT detail FROM tacho.markers(since => '2000-01-01')
		WHERE kind = 'interval changed' ORDER BY marker_time LIMIT 1}),
	qr/^10 ms -> 20 ms: the sampler used [0-9.]+ % of a CPU, the limit is 0.0 %$/,
	'the marker of the lower rate has the reason');
$node->append_conf('postgresql.conf', 'tacho.max_cpu = 0');
$node->reload;
ok(wait_for_metric($node, 'tick_interval_ms', "value = '10'"),
	'without a limit of CPU the interval equals the setting');
$node->stop;

done_testing();
