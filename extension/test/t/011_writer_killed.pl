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
	'the first writer works');
my $sampler = metric($node, 'sampler_pid');

for my $starts (2 .. 4)
{
	my $writer = metric($node, 'writer_pid');
	kill 'KILL', $writer;
	ok(wait_for_metric($node, 'writer_starts', "value::bigint >= $starts"),
		'a killed writer is followed by another');
	ok(wait_for_metric($node, 'recording', "value = 'on'"),
		'which takes over');
	isnt(metric($node, 'writer_pid'), $writer, 'as another process');
	ok(wait_until_written($node), 'and gets all frames');
}
is(metric($node, 'writer_error'), 'the tape writer was terminated by signal 9',
	'the status keeps what happened');
is(metric($node, 'reason'), '', 'but says that all is well now');

my $writer = metric($node, 'writer_pid');
kill 'STOP', $writer;
my $made = metric($node, 'frames_made');
ok(wait_for_metric($node, 'frames_made', "value::bigint >= $made + 3"),
	'sampling goes on beside a writer that is stopped');
ok(metric($node, 'bytes_buffered') > 0, 'frames wait for it');
kill 'CONT', $writer;
ok(wait_until_written($node), 'and are written when it goes on');
is(metric($node, 'writer_pid'), $writer, 'by the same process');

is(metric($node, 'frames_lost'), '0', 'no frame is lost');
is(metric($node, 'sampler_pid'), $sampler, 'the sampler has never died');
is(metric($node, 'sampler_starts'), '1', 'and was started once');

$node->stop;
my $log = slurp_file($node->logfile);
is(() = $log =~ /WARNING:  history is not being written: the tape writer was terminated by signal 9/g,
	1, 'the same trouble is logged once');

done_testing();
