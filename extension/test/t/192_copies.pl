# Copies of a cluster. A base backup includes the history, a clone records beside its
# origin, a promoted standby continues, pg_rewind takes over the history of the other
# side. Each copied directory is a node of its own, and none damages another. The
# cluster has group access, so the history has it, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(at server_ms tacho_cluster wait_for_marker wait_for_ticks);
use Test::More;

my $origin = tacho_cluster('origin',
	init => { allows_streaming => 1, extra => ['--allow-group-access'] },
	conf => "wal_log_hints = on\nwal_keep_size = 64MB\n");
if ($origin->psql('postgres', q{LOAD 'libpqwalreceiver'}) != 0)
{
	$origin->stop;
	plan skip_all => 'this installation cannot stream replication';
}

# Ticks observed in the hour before a moment, optionally of one node.
sub observed
{
	my ($node, $moment, $name) = @_;
	my $of = $name ? ", node => '$name'" : '';

	return $node->safe_psql('postgres',
		"SELECT ticks_observed FROM tacho.aas(since => @{[at($moment)]} - interval '1 hour', until => @{[at($moment)]}, bucket => '1 day'$of)");
}

sub tape { return shift->data_dir . '/tacho' }

sub is_sound
{
	my ($node) = @_;
	my $output = '';

	return ok(IPC::Run::run([ $ENV{TACHO_PROGRAM}, 'inspect', tape($node) ], '>&', \$output),
		'nothing of the tape of ' . $node->name . ' is damaged') || diag($output);
}

# Group access.
wait_for_ticks($origin, 10, server_ms($origin));
my $tape = tape($origin);
is(sprintf('%04o', (stat $tape)[2] & 07777), '0750', 'the group may enter the directory');
my %mode = map { my @stat = stat; @stat ? (basename($_) => sprintf('%04o', $stat[2] & 07777)) : () }
  glob "$tape/*";
is_deeply(\%mode, { map { $_ => '0640' } keys %mode }, 'the group may read every file');
cmp_ok(scalar(keys %mode), '>', 1, 'the directory has files');

# A base backup has the history.
$origin->backup('base');
my $moment = server_ms($origin);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($origin, 'base', has_streaming => 1);
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($origin, 'base');
$clone->start;
wait_for_metric($clone, 'frames_written', 'value::bigint > 0');
my %own = map { $_->name => metric($_, 'node') } ($origin, $clone);
isnt($own{clone}, $own{origin}, 'a copied directory is a new node');
wait_for_ticks($clone, 10, server_ms($clone));
is(metric($clone, 'nodes'), '2', 'the copied directory has two nodes');
cmp_ok(observed($clone, $moment, $own{origin}), '>=', 5,
	'the copy answers for the history of that node');
is(observed($clone, $moment), '0', 'the history of that node does not count as its own');
my $late = server_ms($origin);
wait_for_ticks($origin, 10, $late);
is(metric($origin, 'node'), $own{origin}, 'the node of the origin is the same');
is(metric($origin, 'nodes'), '1', 'the origin knows no other node');
is(metric($_, 'recording'), 'on', $_->name . ' records') for $origin, $clone;
is($origin->safe_psql('postgres', q{SELECT count(*) FROM tacho.markers(since => '2000-01-01') WHERE kind = 'gap'}),
	'0', 'the origin has no gap');
$clone->stop;
is_sound($clone);

# A standby is promoted; the old primary goes on, diverges, and is rewound.
$standby->start;
$origin->wait_for_catchup($standby);
wait_for_metric($standby, 'frames_written', 'value::bigint > 0');
my $standby_node = metric($standby, 'node');
isnt($standby_node, $own{origin}, 'a standby is a node of its own');
$standby->promote;
ok(wait_for_marker($standby, 'promotion', 1), 'the promotion of the standby is marked');
$standby->safe_psql('postgres', 'CREATE TABLE one_way (); CHECKPOINT');
$origin->safe_psql('postgres', 'CREATE TABLE other_way ()');
wait_for_ticks($standby, 10, server_ms($standby));
$moment = server_ms($standby);
$origin->stop;
is_sound($origin);
my $rewind = `$ENV{PG_CONFIG} --bindir`;
chomp $rewind;
SKIP:
{
	skip 'this installation has no pg_rewind', 7 unless -x "$rewind/pg_rewind";
	my ($out, $err) = run_command(
		[ 'pg_rewind', '--source-server', $standby->connstr('postgres'),
			'--target-pgdata', $origin->data_dir, '--no-sync' ]);
	like($err, qr/Done!/, 'pg_rewind works');
	$origin->append_conf('postgresql.conf', 'port = ' . $origin->port);
	$origin->append_conf('postgresql.conf',
		"primary_conninfo = '" . $standby->connstr . " application_name=origin'");
	$origin->set_standby_mode;
	$origin->start;
	wait_for_ticks($origin, 10, server_ms($origin));
	my $rewound = metric($origin, 'node');
	is(metric($origin, 'recording'), 'on', 'a rewound server records');
	ok($rewound ne $standby_node, 'the rewound server is another node than the standby');
	cmp_ok(observed($origin, $moment, $standby_node), '>', 0,
		'the rewound server has the history that it received');
	is(metric($standby, 'recording'), 'on', 'the server that it was rewound to records');
	$origin->stop;
	is_sound($origin);
}
$standby->stop;
is_sound($standby);

done_testing();
