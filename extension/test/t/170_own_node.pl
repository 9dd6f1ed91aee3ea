# SQL functions read the history of this server, even if the directory has a newer
# history of another one; summary() names the gaps.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at server_ms tacho_cluster wait_for_marker wait_for_ticks);
use TachoStatus qw(metric);
use Test::More;
use Time::HiRes qw(usleep);

my $node = tacho_cluster('home', conf => "tacho.retention_age = 0\n");
my $tape = $node->data_dir . '/tacho';
my $since = server_ms($node);
wait_for_ticks($node, 5, $since);
my ($own) = slurp_file("$tape/node") =~ /^node ([0-9a-f]{16})$/m;

# another recorder whose clock is a day ahead
my $csv = $node->basedir . '/other.csv';
my $day = 1 + int(time / 86400);
my @time = gmtime($day * 86400);
my $date = sprintf '%04d-%02d-%02d', $time[5] + 1900, $time[4] + 1, $time[3];
append_to_file($csv,
	"time,pid,backend_type,state,wait_event_type,wait_event\n"
	  . join('', map { "${date}T00:00:0${_}Z,7,client backend,active,Lock,tuple\n" } 0 .. 5));
system_or_bail("TACHO_PROGRAM='$ENV{TACHO_PROGRAM}' '$FindBin::RealBin/../data/import.sh' '$tape' b2 <'$csv'");

is(metric($node, 'nodes'), '2', 'the directory holds two nodes');
is(metric($node, 'node'), $own, 'status() is about the node of the server');
is(metric($node, 'nodes_hidden'), '00000000000000b2', 'status() names the other node');
is( $node->safe_psql('postgres', "SELECT source FROM tacho.aas(since => @{[at($since)]})"),
	'raw', 'aas() is about the node of the server');
like( $node->safe_psql('postgres', q{SELECT max(marker_time) < now() + interval '1 minute' FROM tacho.markers()}),
	qr/^t$/, 'markers() is about the node of the server');

# a gap: a server that is back within a slot leaves none
$node->stop;
usleep(500_000);
$node->start;
wait_for_marker($node, 'gap', 1);
my $gap = $node->safe_psql('postgres', q{
SELECT to_char(period_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || '+00 to ' ||
       to_char(period_end AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || '+00: ' || detail
  FROM tacho.markers() WHERE kind = 'gap'});
like($gap, qr/: server was stopped$/, 'a restart is a gap');
is( $node->safe_psql('postgres', q{SELECT value FROM tacho.summary() WHERE metric LIKE 'gap%'}),
	$gap, 'summary() names the gap');
$node->stop;

done_testing();
