# The operating system refuses memory to the writer, then to a reader: the
# server serves, says what happened, and nothing is lost.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(server_ms tacho_cluster wait_for_ticks);
use Test::More;

# Runs the program under the limits of address space, in KB, that the files
# "limit.tape-writer" and "limit.query" hold.
my $node = tacho_cluster('memory', start => 0);
my $dir = $node->basedir;
append_to_file("$dir/limited", <<"END");
#!/bin/sh
test -e "$dir/limit.\$1" && ulimit -v `cat "$dir/limit.\$1"`
exec "$ENV{TACHO_PROGRAM}" "\$@"
END
chmod 0755, "$dir/limited" or die "chmod: $!";
$node->append_conf('postgresql.conf', "tacho.program = '$dir/limited'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
ok(wait_for_metric($node, 'frames_written', 'value::bigint > 3'), 'the writer acknowledges frames');
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# The writer.
my $made = metric($node, 'frames_made');
append_to_file("$dir/limit.tape-writer", 3000);
kill 'KILL', metric($node, 'writer_pid');
ok( wait_for_metric($node, 'reason', "value ~ '^the tape writer'"
		  . " AND value !~ 'signal 9'"),
	'a writer without memory ends: ' . metric($node, 'reason'));
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 10"), 'ticks go on');
unlink "$dir/limit.tape-writer";
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'with memory another writer starts');
ok(wait_until_written($node), 'the new writer writes the waiting frames');
is(metric($node, 'frames_lost'), '0', 'no frame is lost without memory');
cmp_ok(metric($node, 'frames_written'), '>', $made, 'the history has frames of that time');

# A running writer whose next allocation is refused.
my $writer = metric($node, 'writer_pid');
system_or_bail('prlimit', '--pid', $writer, '--as=4096:');
$ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 20"), 'ticks go on while the writer lacks memory');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'history is written by this writer or the next one');
ok(wait_until_written($node), 'all frames are written');
is(metric($node, 'frames_lost'), '0', 'no frame is lost while the writer lacks memory');

# A reader.
my ($stdout, $stderr);
append_to_file("$dir/limit.query", 3000);
is($node->psql('postgres', 'SELECT * FROM tacho.samples()', stderr => \$stderr), 3,
	'a reader without memory is an error');
like($stderr, qr/ERROR:  program ".*limited" was terminated by signal \d+.*\n.*HINT:  It may have been refused memory \(limit: 512 MB\)\. Use a shorter window or fewer rows\./,
	'the error says what may help');
unlink "$dir/limit.query";
is($node->psql('postgres', 'SELECT count(*) FROM tacho.samples()'), 0, 'the next question is answered');

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $postmaster,
	'the server did not restart');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');
$node->stop;
like(slurp_file($node->logfile),
	qr/WARNING:  history is not being written: the tape writer was terminated by signal \d+\n.*DETAIL:  The server itself is not affected./,
	'the log says that the writer was terminated');

done_testing();
