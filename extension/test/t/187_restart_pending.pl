# An upgrade replaces the file of the library, and no script restarts the server: status()
# and tacho doctor say that the old library runs, until the restart.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use File::Basename qw(dirname);
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric);
use TachoTest qw(tacho_cluster);
use Test::More;

# With EXEC_BACKEND each process loads the file that is there, so no process runs the
# old one.
plan skip_all => 'every process loads the library by itself'
  if PostgreSQL::Test::Cluster->new('built')->config_data('--cppflags') =~ /EXEC_BACKEND/;

# A directory that is searched first, with the same file by another link.
my $library = PostgreSQL::Test::Cluster->new('probe')->config_data('--pkglibdir') . '/tacho.so';
my $place = dirname($library) . "/first-$$";
mkdir $place or die "$place: $!";
link $library, "$place/tacho.so" or die "$place: $!";
END { unlink glob "$place/*" if $place; rmdir $place if $place }

my $node = tacho_cluster('pending', conf => "dynamic_library_path = '$place:\$libdir'");
my $doctor = dirname($ENV{TACHO_PROGRAM}) . '/tacho-doctor';

# The line of tacho doctor about versions, with the step below it.
sub versions
{
	my ($out) = run_command([ $doctor, $node->connstr('postgres') ]);

	return ($out =~ /^(\w+ +versions: .*(?:\n +.*)?)$/m)[0] // $out;
}

is(metric($node, 'restart_pending'), '', 'the library that was loaded is the one that is installed');
my $version = metric($node, 'version');
copy($library, "$place/new") or die "$place: $!";
rename "$place/new", "$place/tacho.so" or die "$place: $!";
my $reason = 'the library on disk differs from the loaded one';
is(metric($node, 'restart_pending'), $reason, 'after an upgrade a restart is pending');
SKIP:
{
	skip "there is no $doctor", 1 unless -x $doctor;
	is(versions(), "part versions: restart pending: $reason, $version\n      restart the server", 'tacho doctor names the step');
}
unlink "$place/tacho.so" or die "$place: $!";
is(metric($node, 'restart_pending'), $reason, 'a library that was removed differs, too');
link $library, "$place/tacho.so" or die "$place: $!";
is(metric($node, 'restart_pending'), '', 'with the old file again no restart is pending');
copy($library, "$place/new") or die "$place: $!";
rename "$place/new", "$place/tacho.so" or die "$place: $!";
is(metric($node, 'restart_pending'), $reason, 'a library that is replaced again needs a restart');
unlink "$place/tacho.so" or die "$place: $!";
link $library, "$place/tacho.so" or die "$place: $!";
$node->restart;
is(metric($node, 'restart_pending'), '', 'a restart loads the file that is there');
done_testing();
