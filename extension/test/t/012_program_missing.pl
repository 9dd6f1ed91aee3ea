# Without the tacho program the server works, the status says why there is no
# history, and history begins when the program appears.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('missing', start => 0);
my $program = $node->basedir . '/tacho';

$node->append_conf('postgresql.conf', "tacho.program = '$program'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');

# before the sampler has started, that is the reason
ok(wait_for_metric($node, 'reason',
		"value = 'could not run \"$program\": No such file or directory'"),
	'the status says why nothing is recorded');
is(metric($node, 'recording'), 'off', 'recording is off');
is(metric($node, 'writer_pid'), '', 'there is no writer');
is($node->safe_psql('postgres', 'CREATE TABLE t AS SELECT 1 AS a; SELECT a FROM t'),
	'1', 'the server answers queries without the program');
ok(wait_for_metric($node, 'ticks_taken', 'value::bigint > 5'),
	'sampling goes on without the program');
is(metric($node, 'frames_lost'), '0', 'frames wait in the buffer');

symlink $ENV{TACHO_PROGRAM}, $program or die "symlink: $!";
ok(wait_for_metric($node, 'recording', "value = 'on'"),
	'history begins when the program is there');
ok(wait_until_written($node), 'the waiting frames are written');
is(metric($node, 'sampler_starts'), '1', 'the sampler process is still the first one');

$node->stop;
my $log = slurp_file($node->logfile);
like($log,
	qr/WARNING:  history is not being written: could not run "\Q$program\E": No such file or directory\n.*DETAIL:  The server itself is not affected.\n.*HINT:  Install the tacho program there, or set "tacho.program"./,
	'the log has the reason with a hint');

done_testing();
