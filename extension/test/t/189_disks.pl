# The space of the file systems that the server uses is a measurement of the server.
use strict;
use warnings;
use File::Temp;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('disks', conf => q{
tacho.server_interval = 100ms
tacho.flush_interval = 100ms
});
# a file system of its own
my ($place) = grep { -w $_ and (stat)[0] != (stat $node->data_dir)[0] } '/dev/shm', '/var/tmp', '/run';
plan skip_all => 'there is only one file system' unless $place;
my $directory = File::Temp->newdir('tacho_disks_XXXXXX', DIR => $place);
my $tablespace = "$directory/fast";
mkdir $tablespace or die $!;

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Size of a file system and the space that users can take, in bytes, as df has them.
sub df
{
	my ($path) = @_;
	my ($size, $free) = (split /\n/, `df -B1 --output=size,avail '$path'`)[1] =~ /(\d+)\s+(\d+)/;
	return ($size, $free);
}

# The newest measurement of a file system.
sub newest
{
	my ($metric, $object) = @_;
	return sql("SELECT max::bigint FROM tacho.server_history(since => now() - interval '1 hour', metric => '$metric', bucket => '1 s')
		WHERE object = '$object' AND max IS NOT NULL ORDER BY period_start DESC LIMIT 1");
}

# Waits for a measurement of an object since a moment.
sub measured
{
	my ($object, $since) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.server_history(since => '$since', metric => 'disk_free')
		WHERE object = '$object' AND max IS NOT NULL");
}

my $start = sql('SELECT now()');
ok(measured('data directory', $start), 'the disk of the data directory is measured');
is(newest('disk_size', 'data directory'), (df($node->data_dir))[0], 'the size of the disk of the data directory is what df shows');
my $one = sql("SELECT string_agg(DISTINCT object, ',') FROM tacho.server_history(since => '2000-01-01', metric => 'disk_free')");
is($one, 'data directory', 'directories on the same disk have no measurement of their own');

sql("CREATE TABLESPACE fast LOCATION '$tablespace'");
ok(measured($tablespace, $start), 'the disk of a new tablespace is measured');
is(newest('disk_size', $tablespace), (df($tablespace))[0], 'the size of the disk of a tablespace is what df shows');

# Others use the disk, so the measurement lies between two of df only if they are quiet for a moment.
sub is_between
{
	my ($size, $before) = df($tablespace);
	my $since = sql('SELECT clock_timestamp()');
	measured($tablespace, $since) or return 0;
	my $free = newest('disk_free', $tablespace);
	my ($least, $most) = sort { $a <=> $b } $before, (df($tablespace))[1];
	return $least <= $free && $free <= $most;
}
my $tries = 0;
$tries++ until is_between() or $tries > 100;
cmp_ok($tries, '<=', 100, 'the free space is what df shows');

sql('DROP TABLESPACE fast');
my $dropped = sql('SELECT clock_timestamp()');
ok(measured('data directory', $dropped), 'other disks are measured after a tablespace was dropped');
$node->stop;
done_testing();
