# A writer that is killed or stopped is replaced or waited for; nothing that
# was sampled meanwhile is lost.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('writer', interval => '20ms');
ok(wait_for_metric($node, 'frames_written', "value::bigint > 0"),
	'the first writer acknowledges frames');
my $sampler = metric($node, 'sampler_pid');

for my $starts (2 .. 4)
{
	my $writer = metric($node, 'writer_pid');
	kill 'KILL', $writer;
	ok(wait_for_metric($node, 'writer_starts', "value::bigint >= $starts"),
		'a killed writer is followed by another');
	ok(wait_for_metric($node, 'recording', "value = 'on'"),
		'the second writer acknowledges frames');
	isnt(metric($node, 'writer_pid'), $writer, 'the second writer is another process');
	ok(wait_until_written($node), 'no frame is lost when the writer is killed');
}
is(metric($node, 'writer_error'), 'the tape writer was terminated by signal 9',
	'status() keeps the last error');
is(metric($node, 'reason'), '', 'status() says that recording is on again');

my $writer = metric($node, 'writer_pid');
kill 'STOP', $writer;
my $made = metric($node, 'frames_made');
ok(wait_for_metric($node, 'frames_made', "value::bigint >= $made + 3"),
	'sampling goes on while the writer is stopped');
ok(metric($node, 'bytes_buffered') > 0, 'frames wait while the writer is stopped');
kill 'CONT', $writer;
ok(wait_until_written($node), 'waiting frames are written when the writer goes on');
is(metric($node, 'writer_pid'), $writer, 'the stopped writer was not replaced');

is(metric($node, 'frames_lost'), '0', 'no frame is lost while the writer is stopped');
is(metric($node, 'sampler_pid'), $sampler, 'the sampler process is still the first one');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');

$node->stop;
my $log = slurp_file($node->logfile);
is(() = $log =~ /WARNING:  history is not being written: the tape writer was terminated by signal 9/g,
	1, 'the log has each trouble once');

done_testing();
