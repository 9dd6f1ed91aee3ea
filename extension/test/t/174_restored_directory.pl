# A data directory that was copied in the place of its original, as a restore does,
# begins a new node. The node answers with all of the earlier history. A marker and the
# server's log say what happened.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(server_ms tacho_cluster wait_for_marker wait_for_ticks);
use TachoStatus qw(metric wait_for_metric);
use Test::More;

my $node = tacho_cluster('restored', conf => "tacho.retention_age = 0\n");
my $data = $node->data_dir;
wait_for_ticks($node, 10, server_ms($node));
my $before = metric($node, 'node');
my $first = metric($node, 'first_tick_time');
$node->stop;

# where the directory is, is recorded
my $file = "$data/tacho/node";
my ($path) = slurp_file($file) =~ /^path (.*)$/m;
is($path, "$data/tacho", 'the file "node" says where the directory is');

# cp -a in its place
rename $data, "$data.gone" or die "rename: $!";
system_or_bail('cp', '-a', "$data.gone", $data);
system_or_bail('rm', '-rf', "$data.gone");
my $log = -s $node->logfile;
$node->start;
ok(wait_for_marker($node, 'new node', 1), 'the change of node is marked');
my ($now) = slurp_file($file) =~ /^node ([0-9a-f]{16})$/m;
isnt($now, $before, 'a restored directory is a new node');
like(
	slurp_file($node->logfile, $log),
	qr/history starts as node $now: the directory was restored or moved; its previous node is $before/,
	'the log names the new node');
is(metric($node, 'node'), "$now, $before", 'status() has both nodes');
is(metric($node, 'first_tick_time'), $first, 'status() begins with the history of the node before');
ok(wait_for_marker($node, 'gap', 1), 'the time between the two is a gap');
cmp_ok($node->safe_psql('postgres', q{SELECT sum(ticks_observed) FROM tacho.aas(since => now() - interval '1 hour', until => now())}),
	'>=', 10, 'ticks of the node before are in the answers');
cmp_ok(
	$node->safe_psql('postgres',
		qq{SELECT sum(ticks_observed) FROM tacho.aas(since => now() - interval '1 hour', node => '$before')}),
	'>=', 10, 'the node before alone has its ticks');
$node->stop;

done_testing();
