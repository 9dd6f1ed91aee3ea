# pg_upgrade from an older major keeps the extension. Its objects were of version 0.1, and
# were updated before. The worker does not run in the
# servers that pg_upgrade starts. The new cluster records, and the history of the old
# cluster can be moved to it and read.
#
# TACHO_OLD_BINDIR names the programs of the older major, with tacho and its objects of
# version 0.1 installed there (tools/test-upgrade.sh).
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric);
use TachoTest qw(at server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $old_bin = $ENV{TACHO_OLD_BINDIR};
plan skip_all => 'TACHO_OLD_BINDIR does not name an older major (tools/test-upgrade.sh)'
  unless $old_bin;
chomp(my $new_bin = `"$ENV{PG_CONFIG}" --bindir`);

my $new = tacho_cluster('new', start => 0,
	init => { extra => [ '--no-locale', '-E', 'UTF8', '-U', 'postgres' ] });

# the old cluster
my $base = $PostgreSQL::Test::Utils::tmp_check;
my $old = "$base/old";
my @connection = ('-h', $base, '-p', '65439', '-U', 'postgres');
sub old_sql
{
	my ($out) = run_command([ 'psql', '-XAtq', @connection, '-c', shift, 'postgres' ]);
	return $out;
}
system_or_bail("$old_bin/initdb", '-D', $old, '-U', 'postgres', '-A', 'trust', '-N',
	'--no-locale', '-E', 'UTF8', ($new->pg_version >= 18 ? '-k' : ()));
append_to_file("$old/postgresql.conf", qq{
shared_preload_libraries = 'tacho'
tacho.program = '$ENV{TACHO_PROGRAM}'
tacho.sample_interval = 100ms
tacho.flush_interval = 1s
port = 65439
listen_addresses = ''
unix_socket_directories = '$base'
});
system_or_bail("$old_bin/pg_ctl", '-w', '-D', $old, '-l', "$base/old.log", 'start');
old_sql(q{CREATE EXTENSION tacho VERSION '0.1'});
old_sql('ALTER EXTENSION tacho UPDATE');
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if old_sql(q{SELECT count(*) FROM tacho.samples(scope => 'all', n => NULL)}) > 20;
	old_sql('SELECT pg_sleep(0.1)');
}
my $moment = old_sql('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');
my $ticks = "SELECT ticks_observed FROM tacho.aas(since => @{[at($moment)]} - interval '1 hour', until => @{[at($moment)]}, bucket => '1 day'";
# the history up to $moment is complete when it has a later sample
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if old_sql("SELECT coalesce(max(sample_time) >= @{[at($moment)]}, false)
		FROM tacho.samples(scope => 'all', n => 1)") eq 't';
	old_sql('SELECT pg_sleep(0.1)');
}
my $kept = old_sql("$ticks)");
my $old_node = old_sql(q{SELECT value FROM tacho.status() WHERE metric = 'node'});
cmp_ok($kept, '>', 0, 'the old cluster records');
system_or_bail("$old_bin/pg_ctl", '-w', '-D', $old, 'stop');
my $starts = () = slurp_file("$base/old.log") =~ /ready to accept connections/g;

# the upgrade
chdir $base or die "chdir: $!";
my ($out, $err) = run_command(
	[ "$new_bin/pg_upgrade", '-b', $old_bin, '-B', $new_bin, '-d', $old, '-D', $new->data_dir,
		'-U', 'postgres', '-p', '65440', '-P', '65441', '-s', $base, '--no-sync' ]);
like($out, qr/Upgrade Complete/, 'pg_upgrade works') or diag("$out$err");
ok(!-e $new->data_dir . '/tacho', 'the servers that pg_upgrade starts record nothing');

# the new cluster
$new->start;
is($new->safe_psql('postgres', q{SELECT extname, extnamespace::regnamespace FROM pg_extension WHERE extname = 'tacho'}),
	'tacho|pg_catalog', 'the new cluster has the extension');
wait_for_ticks($new, 10, server_ms($new));
is(metric($new, 'recording'), 'on', 'the new cluster records');
is(metric($new, 'nodes'), '1', 'the new cluster has a history of its own');
$new->stop;

# the history of the old cluster, moved over as the documentation says
my $tape = $new->data_dir . '/tacho';
system_or_bail('rm', '-r', $tape);
system_or_bail('cp', '-r', "$old/tacho", $tape);
$new->start;
wait_for_ticks($new, 10, server_ms($new));
is(metric($new, 'nodes'), '2', 'a copied history is a node beside the node of the new cluster');
is($new->safe_psql('postgres', "$ticks, node => '$old_node')"), $kept,
	'the copied history answers completely');
$new->stop;

done_testing();
