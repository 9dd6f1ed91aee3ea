# The extension in a directory of its own, as an image volume mounts it (docs/containers.md):
# lib, share and bin below one path, which settings of PostgreSQL 18 name.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(tacho_cluster);
use Test::More;

my $probe = PostgreSQL::Test::Cluster->new('probe');
plan skip_all => 'extension_control_path is of PostgreSQL 18' if $probe->pg_version < 18;
my ($libraries, $shared) = map { $probe->config_data($_) } '--pkglibdir', '--sharedir';
my $volume = PostgreSQL::Test::Utils::tempdir();
run_command([ 'mkdir', '-p', map { "$volume/$_" } qw(lib share/extension bin) ]);
my @copies = ([ "$libraries/tacho.so", 'lib/tacho.so' ], [ "$libraries/tacho-parent", 'lib/tacho-parent' ], [ $ENV{TACHO_PROGRAM}, 'bin/tacho' ],
	map { [ $_, 'share/extension/' . s{.*/}{}r ] } glob "$shared/extension/tacho*");
foreach my $each (@copies)
{
	my ($from, $to) = @$each;
	copy($from, "$volume/$to") or die "$from: $!";
	chmod 0755, "$volume/$to";
}

my $node = tacho_cluster('volume', conf => qq{
extension_control_path = '$volume/share:\$system'
dynamic_library_path = '$volume/lib:\$libdir'
tacho.program = '$volume/bin/tacho'
});
is(metric($node, 'program'), "$volume/bin/tacho", 'the server runs the program of the volume');
ok(wait_for_metric($node, 'frames_written', 'value::bigint > 0'), 'the writer acknowledges frames');
ok($node->poll_query_until('postgres', 'SELECT ticks_observed > 0 FROM tacho.aas()'), 'readers answer');
# status() sees that the library of the volume is replaced
copy("$volume/lib/tacho.so", "$volume/lib/new") or die $!;
rename "$volume/lib/new", "$volume/lib/tacho.so" or die $!;
isnt(metric($node, 'restart_pending'), '', 'the library of the volume is the one that runs');
done_testing();
