# Markers name what happened to the server, with exact particulars.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Sys::Hostname;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster wait_for_marker);
use Test::More;
use Time::HiRes qw(usleep);

my $node = tacho_cluster('markers', conf => "restart_after_crash = on\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub details
{
	my ($kind) = @_;
	return sql(
		"SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = '$kind' ORDER BY marker_time");
}

my $server = join ', ', 'PostgreSQL ' . sql('SHOW server_version'), 'primary',
  'timeline 1', 'system ' . sql('SELECT system_identifier FROM pg_control_system()'),
  'host ' . hostname();
my $crash = 'the server crashed and recovered';

ok(wait_for_marker($node, 'start', 1), 'a start is marked');
is(details('start'), "server started, $server", 'the marker of a start names the server');
is(details('crash recovery'), '', 'the first start is not a recovery');

$node->stop('immediate');
usleep(500_000);				# a server that is back within a slot leaves no gap
$node->start;
ok(wait_for_marker($node, 'crash recovery', 1), 'a server that was not shut down has a marker of recovery');
is(details('crash recovery'), $crash, 'the marker says that the server crashed and recovered');
ok(wait_for_marker($node, 'gap', 1), 'the recovery has its gap');
is(details('gap'), 'server was killed or the machine failed', 'the gap has its cause');

wait_for_metric($node, 'ticks_taken', 'value::int >= 5');
wait_until_written($node);
my $victim = sql('SELECT pid FROM pg_stat_activity WHERE backend_type = $$background writer$$');
kill 'KILL', $victim;
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"),
	'the server recovers from a killed process');
ok(wait_for_marker($node, 'crash recovery', 2), 'the recovery of the server is marked');
ok(wait_for_marker($node, 'gap', 2), 'the recovery of the server has its gap');
is(details('gap'), "server was killed or the machine failed\ncrash recovery", 'that gap has its cause');

wait_until_written($node);
$node->restart;
ok(wait_for_marker($node, 'start', 4), 'a restart is marked');
is(details('crash recovery'), "$crash\n$crash", 'a restart is not marked as a recovery');
is(details('start'), join("\n", ("server started, $server") x 4), 'each start names the server');
$node->stop;

done_testing();
