# Without an option the program finds the history of the server that runs here, also if
# tacho.directory puts it elsewhere. If several servers run, it names their directories.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

delete @ENV{qw(TACHO_TAPE PGDATA)};

# Other servers run on this host. In a process name space of its own a server is the
# only one. Runs COMMAND there and returns its output and end.
my @enter = qw(unshare --user --map-user=1000 --pid --fork --mount-proc);
my ($id) = run_command([ @enter, 'id', '-u' ]);
my $namespaces = $id eq '1000';

sub alone
{
	my ($node, @command) = @_;
	my $script = q{
		pg_ctl=$1 data=$2
		shift 2
		"$pg_ctl" -D "$data" -l "$data/alone.log" -w start >/dev/null || exit 99
		for _ in $(seq 1800); do
			! ls "$TAPE"/*.open >/dev/null 2>&1 || break
			sleep 0.1
		done
		"$@"
		code=$?
		"$pg_ctl" -D "$data" -m fast -w stop >/dev/null
		exit $code};
	chomp(my $bin = qx{"$ENV{PG_CONFIG}" --bindir});

	return run_command(
		[ @enter, 'sh', '-c', $script, 'sh', "$bin/pg_ctl", $node->data_dir, @command ]);
}

my $program = $ENV{TACHO_PROGRAM};
my $first = tacho_cluster('first', extension => 0);
my $tape = $first->data_dir . '/tacho';
my $second = tacho_cluster('second', extension => 0);

# Both run: both are named, whatever else runs here.
$_->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_ls_dir('tacho') AS name WHERE name LIKE '%.open'")
  || die 'nothing is recorded'
  for $first, $second;
my ($out, $error) = run_command([ $program, 'status' ]);
is($out, '', 'with several servers there is no answer');
like($error, qr/\Aerror: more than one server running here has a history\ndetail: The directories are /, 'several servers are an error');
like($error, qr/"\Q$_\E\/tacho"/, '... that names the history of ' . $_)
  for $first->data_dir, $second->data_dir;
like($error, qr/\nhint: Specify one directory with --tape or in TACHO_TAPE\.$/, 'the error says what to do');

{
	local $ENV{PGDATA} = $first->data_dir;
	my ($found) = run_command([ $program, 'status', '--json' ]);
	like($found, qr/"directory|"metric"/, 'PGDATA decides between several servers');
}
$_->stop for $first, $second;

SKIP:
{
	skip 'no user namespaces here', 4 unless $namespaces;
	local $ENV{TAPE} = $tape;
	($out, $error) = alone($first, $program, 'inspect');
	like($out, qr/\.open log \d+ bytes\n  node [0-9a-f]{16} /, 'the only server that runs is found');
	is($error, '', 'the server that runs is taken without a message');

	# elsewhere
	my $elsewhere = dirname($first->data_dir) . '/history of first';
	rename $tape, $elsewhere or die "rename: $!";
	$first->append_conf('postgresql.conf', "tacho.directory = '$elsewhere'");
	$ENV{TAPE} = $elsewhere;
	my ($moved, $why) = alone($first, $program, 'inspect');
	like($moved, qr/\.open log \d+ bytes\n/, 'a history elsewhere is found');
	is($why, '', 'a history elsewhere is taken without a message');
}

done_testing();
