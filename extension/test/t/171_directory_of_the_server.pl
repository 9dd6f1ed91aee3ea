# Directories of the server are refused under every name: all directories in the data
# directory, and through symbolic links in either direction.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('links');
my $data = $node->data_dir;
my $outside = $node->basedir . '/outside';

sub refusal
{
	my ($directory) = @_;
	my (undef, undef, $error) = $node->psql('postgres',
		"ALTER SYSTEM SET tacho.directory = '$directory'");
	return $error =~ /belongs to the server \((.*)\)/ ? $1 : "accepted $error";
}

# a stranger in pg_replslot would keep the server from starting
is(refusal('pg_replslot/tacho'), 'pg_replslot', 'pg_replslot is refused');
is(refusal("$data/pg_xact"), 'pg_xact', 'pg_xact is refused');
is(refusal('pg_logical/snapshots/'), 'pg_logical', 'a refused directory with a slash at its end is refused');
opendir my $dir, $data or die "opendir: $!";
is_deeply(
	[ map { refusal("$_/x") }
		  sort grep { /^(base|global|pg_)/ && -d "$data/$_" } readdir $dir ],
	[ sort map { s{.*/}{}r } grep { -d } glob "$data/base $data/global $data/pg_*" ],
	'every directory of this version is refused');

mkdir $outside or die "mkdir: $!";
symlink "$data/base", "$outside/link" or die "symlink: $!";
symlink $data, "$outside/data" or die "symlink: $!";
is(refusal("$outside/link"), 'base', 'a link to base is refused');
is(refusal("$outside/link/not/there/yet"), 'base', 'a directory below a link to base is refused');
is(refusal("$outside/data/global/x"), 'global',
	'a path through a link to the data directory is refused');
is(refusal("$outside/data"), 'the data directory itself', 'a link to the data directory is refused');
like(refusal("$outside/data/tacho"), qr/^accepted $/, 'a new directory in the data directory is accepted');
like(refusal("$outside/pg_wal"), qr/^accepted $/, 'a refused name in another place is accepted');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET tacho.directory');

# initdb --waldir
$node->stop;
rename "$data/pg_wal", "$outside/wal" or die "rename: $!";
symlink "$outside/wal", "$data/pg_wal" or die "symlink: $!";
$node->append_conf('postgresql.conf', "tacho.directory = '$outside/wal/tacho'");
$node->start;
is( metric($node, 'reason'),
	qq{directory "$outside/wal/tacho" is refused: it belongs to the server (pg_wal)},
	'the place that pg_wal links to is refused');
$node->append_conf('postgresql.conf', "tacho.directory = '$outside/data/history'");
$node->restart;
ok(wait_for_metric($node, 'frames_written', 'value::bigint > 0'),
	'a directory reached by a link works');
$node->stop;

done_testing();
