# The directory of the history is removed while the server records into it. The server
# notices and logs it, recording continues in a new directory with a lock, and the
# history has a marker for the missing time.
use strict;
use warnings;
use File::Path qw(remove_tree);
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(server_ms tacho_cluster wait_for_marker wait_for_ticks);
use Test::More;

my $node = tacho_cluster('removed');
my $directory = $node->data_dir . '/tacho';
my $gone = qr/directory "\Q$directory\E" was removed or replaced/;

wait_for_ticks($node, 5, server_ms($node));
wait_until_written($node);
remove_tree($directory);
ok(wait_for_metric($node, 'writer_starts', "value = '2'"), 'a directory that is removed is noticed');
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'recording goes on in a new directory');
like(metric($node, 'writer_error'), qr/^$gone$/, 'status() keeps the last error');
ok(wait_for_ticks($node, 5, server_ms($node)), 'ticks are added in the new directory');
is(metric($node, 'frames_lost'), '0', 'no frame that was not written is lost');
wait_for_marker($node, 'gap', 1);
is( $node->safe_psql('postgres', q{
		SELECT g.detail, g.period_start = date_trunc('milliseconds', pg_postmaster_start_time()),
		  g.period_end > g.period_start
		FROM tacho.markers(since => '2000-01-01') g
		WHERE kind = 'gap' AND detail LIKE 'the directory %'}),
	'the directory was removed or replaced|t|t', 'the gap begins with the start of the server');
my ($out, $error) =
  run_command([ $ENV{TACHO_PROGRAM}, 'tape-writer', '--wait', '0', '--directory', $directory ]);
like($error, qr/is in use by another writer/, 'the new directory has a lock');

$node->stop;
my $log = slurp_file($node->logfile);
like($log, qr/WARNING:  history is not being written: $gone\n.*DETAIL:  .*\n.*HINT:  History goes on in a directory of that name/,
	'the log names the removed directory');
like($log, qr/LOG:  history is being written again\n.*DETAIL:  It was not written for \d+ seconds: $gone\.$/m,
	'the log says that recording goes on');

done_testing();
