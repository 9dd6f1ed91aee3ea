# The dictionary of wait events has exactly the events of the server: no event of the server
# is unexplained, no explained event is unknown to it.
use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('waits');
$node->init;
$node->start;
my ($major) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d\d)/;

# Prints a command of tacho line by line.
sub lines
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ $ENV{TACHO_PROGRAM}, @_ ], '<', \undef, '>', \$out, '2>', \$error);
	is($error, '', "tacho @_");
	return split /\n/, $out;
}

# Names of the server's wait events: a view has them from 17 on. Older servers name an event
# by its number only, so a function in C asks for each number.
sub names
{
	return 'SELECT type || \':\' || name FROM pg_wait_events' if $major >= 17;
	my $library = $node->basedir . '/wait_names.so';
	my $headers = $node->config_data('--includedir-server');
	system("cc -fPIC -shared -I$headers -o $library $FindBin::RealBin/../unit/wait_names.c") == 0
	  or die 'cannot compile wait_names.c';
	$node->safe_psql('postgres', "CREATE FUNCTION wait_names() RETURNS text LANGUAGE c AS '$library'");
	return q{SELECT unnest(string_to_array(wait_names(), ' '))};
}

my %server = map { lc($_) => $_ } split /\n/, $node->safe_psql('postgres', names());
my %ours = map { lc($_) => $_ } lines(qw(explain wait --major), $major);
cmp_ok(scalar keys %server, '>', 230, 'the server lists its events');
is_deeply([ sort grep { !$ours{ lc $_ } } values %server ], [], 'each event of the server is explained');
# an event that a minor release added is missing in an older server
my @more = grep { !$server{ lc $_ } } sort values %ours;
is_deeply([ grep { (lines(qw(explain wait), $_))[-1] !~ /, in minor releases$/ } @more ],
	[], 'each explained event is one of the server');
$node->stop;
done_testing();
