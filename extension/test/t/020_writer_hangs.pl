# A writer that hangs until the buffer is full: the server and the sampler continue,
# lost frames are counted and marked with exact bounds, and a server stop does not wait
# for the writer.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);
use Test::More;

my $node = tacho_cluster('hangs', interval => '50ms', conf => "tacho.text_limit = 0\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

# A session that is seen at every tick.
my $seen = tacho_session($node, app => 'seen');
$seen->send('SELECT pg_sleep(1000)');
my $rows = metric($node, 'rows_taken');
ok(wait_for_metric($node, 'rows_taken', "value::bigint >= $rows + 40"), 'the first sample of the session is taken');
ok(wait_until_written($node), 'the writer acknowledges frames');
my $writer = metric($node, 'writer_pid');
kill 'STOP', $writer;

# Texts fill the buffer, each of 8 kB and of a shape of its own, until frames
# are lost.
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
cmp_ok(metric($node, 'frames_lost'), '>=', 3, 'frames without room in the buffer are counted as lost');
cmp_ok(metric($node, 'bytes_buffered'), '<=', 8 * 1024 * 1024, 'the buffer stays within its limit');
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 20"), 'ticks go on beside a writer that hangs');

kill 'CONT', $writer;
ok(wait_until_written($node), 'the frames in the buffer are written when the writer goes on');
ok(wait_for_marker($node, 'frames lost', 1), 'the lost frames are marked');
$ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 60"), 'recording goes on after the loss');
ok(wait_until_written($node), 'the writer that hung is the one that goes on');
is(metric($node, 'writer_pid'), $writer, 'the writer that hung was not replaced');
is(metric($node, 'sampler_starts'), '1', 'the sampler was not replaced');

is( sql(q{SELECT sum(substring(detail FROM '^(\d+) frames found no room in the buffer$')::int)
		FROM tacho.markers(since => '2000-01-01') WHERE kind = 'frames lost'}),
	metric($node, 'frames_lost'), 'markers count all frames that were lost');

# Each marker covers all slots between the ticks around it, except slots without a tick.
my $missed = metric($node, 'ticks_missed');
is( sql(qq{
		WITH seen AS MATERIALIZED (
		  SELECT DISTINCT sample_time AS t
		  FROM tacho.samples(since => '2000-01-01', application => 'seen', n => null)),
		lost AS (
		  SELECT period_start AS b, period_end AS e
		  FROM tacho.markers(since => '2000-01-01') WHERE kind = 'frames lost'),
		around AS (
		  SELECT b, e, (SELECT max(t) FROM seen WHERE t < b) AS before,
		    (SELECT min(t) FROM seen WHERE t > e) AS after,
		    (SELECT count(*) FROM seen WHERE t BETWEEN b AND e) AS within
		  FROM lost)
		SELECT sum(within), bool_and(before < b AND after > e),
		  sum(extract(epoch FROM (b - before) + (after - e)) / 0.05 - 2) <= $missed
		FROM around}),
	'0|t|t', 'the marker has the exact bounds of the loss');

# A stop does not wait for it. (The kernel wakes it when the sampler is gone,
# and it ends by itself.)
kill 'STOP', $writer;
$node->stop;
ok(!-e $node->data_dir . '/postmaster.pid', 'the server stops although the writer hangs');
$node->start;
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'the server records after the next start');
ok(wait_for_marker($node, 'frames lost', 1), 'the history from before the stop is kept');
$node->stop;

done_testing();
