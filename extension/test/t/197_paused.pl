# After a pause for lack of space, the settings that the hint names resume recording,
# also if they change during the pause. The history says why nothing was recorded, also
# after a restart during the pause.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(at server_ms tacho_cluster wait_for_marker wait_for_ticks);
use Test::More;

my $node = tacho_cluster('paused');
my $reason = qr/recording is paused for lack of space: less than 10485760 MB are free/;
my $hint = 'Free space, or adjust "tacho.min_free_space" or "tacho.retention_size".';

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub set
{
	my ($value) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET tacho.min_free_space = '$value'");
	$node->reload;
	return;
}

sub details
{
	my ($kind) = @_;
	return sql(
		"SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = '$kind' AND detail NOT LIKE 'the sampler %' ORDER BY marker_time");
}

wait_for_ticks($node, 5, server_ms($node));
for my $time (1 .. 2)
{
	set('10TB');
	ok(wait_for_metric($node, 'recording', "value = 'off'"), 'recording pauses');
	like(metric($node, 'reason'), qr/^$reason$/, 'status() says what recording waits for');
	set('0');
	ok(wait_for_metric($node, 'recording', "value = 'on'"), 'recording resumes when the setting allows it');
	ok(wait_until_written($node), 'all waiting frames are written');
	ok(wait_for_marker($node, 'recording resumed', $time), 'the resumption is marked');
}

# Settings between those in effect and the newest, which no writer has read.
set('10TB');
ok(wait_for_metric($node, 'recording', "value = 'off'"), 'recording pauses below the free space of the setting');
set('20TB');
ok(wait_for_metric($node, 'reason', "value ~ 'less than 20971520 MB'"), 'status() asks for more space');
set('0');
ok(wait_until_written($node), 'recording resumes by the newest setting, with all waiting frames');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'status() says that recording is on');
is(metric($node, 'frames_lost'), '0', 'no frame is lost by the pause');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');
like(metric($node, 'writer_error'), qr/^recording is paused for lack of space: less than \d+ MB are free$/,
	'status() keeps the last error');

# The buffer is full: the frame with the new setting finds no room in it.
set('10TB');
ok(wait_for_metric($node, 'recording', "value = 'off'"), 'recording pauses a third time');
sql(q{
	SET tacho.query_text = raw;
	DO $$ DECLARE n int := 0; lost bigint; BEGIN LOOP
		n := n + 1;
		EXECUTE format('SELECT /* %s %s */ 1%s WHERE 1 = 1%s', n, repeat('x', 7000),
			repeat(', 1', n % 40), repeat(' AND 1 = 1', n / 40));
		IF n % 40 = 0 THEN
			PERFORM pg_sleep(0.05);
			SELECT value INTO lost FROM tacho.status() WHERE metric = 'frames_lost';
			EXIT WHEN lost >= 3;
		END IF;
	END LOOP; END $$});
set('0');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'a full buffer does not keep a setting from its effect');
ok(wait_for_marker($node, 'frames lost', 1), 'the lost frames are marked');

# Restarted while it waits.
ok(wait_until_written($node), 'all frames are written');
set('10TB');
ok(wait_for_metric($node, 'recording', "value = 'off'"), 'recording pauses before the stop');
$node->stop;
$node->adjust_conf('postgresql.auto.conf', 'tacho.min_free_space', "'0'");
$node->start;
ok(wait_for_marker($node, 'gap', 1), 'the gap is marked');
is(details('gap'), 'the server ended while recording was paused for lack of space',
	'the gap has its cause');
is(details('crash recovery'), '', 'the server did not crash');

$node->stop;
my $log = slurp_file($node->logfile);
like($log,
	qr/^\d\S+ \S+ \S+ .*WARNING:  history is not being written: $reason\n.*DETAIL:  The server itself is not affected.\n.*HINT:  \Q$hint\E$/m,
	'the log says what to do, with the prefix of log lines');
like($log, qr/LOG:  history is being written again\n.*DETAIL:  It was not written for \d+ seconds: $reason\.$/m,
	'the log says that the pause is over');
unlike($log, qr/^(?:LOG|WARNING|ERROR|TROUBLE):/m, 'every line of the log has the prefix');

done_testing();
