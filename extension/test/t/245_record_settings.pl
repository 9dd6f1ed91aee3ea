# tacho-record marks each setting of the server, a role or a database whose value
# changes: by a reload, at a start, or while no recorder ran. Markers show no value that
# may be a secret.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoRecord qw(ask markers record record_program ticks wait_until);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('settings');
$node->init;
$node->append_conf('postgresql.conf', "work_mem = 4MB\nmax_connections = 30\n");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE ROLE app');
my $conninfo = $node->connstr('postgres') . ' user=watcher';
my $tape = $node->basedir . '/recorded';
my $auto = $node->data_dir . '/postgresql.auto.conf';

sub sql { return $node->safe_psql('postgres', join ';', @_) }

# Waits for this number of markers; returns the new ones, sorted.
my $seen = 0;
sub changes
{
	my ($count) = @_;
	my @changes;

	wait_until("$count changes", sub { @changes = markers($tape, 'settings changed'); return @changes >= $seen + $count });
	my @new = @changes[ $seen .. $#changes ];
	$seen = @changes;
	return [ sort @new ];
}

# Waits until the recorder has looked at the settings once.
sub wait_for_look
{
	wait_until('a look', sub { return -s "$tape/recorder-settings.toml" });
	return;
}

my $recorder = record($conninfo, $tape);
wait_for_look();
my $prefix = sql('SHOW log_line_prefix');
my $before = sql(q{SELECT date_part('epoch', clock_timestamp())});
sql($_) foreach q{ALTER SYSTEM SET work_mem = '64MB'}, q{ALTER SYSTEM SET restore_command = 'push --key s3cret'},
  q{ALTER SYSTEM SET max_connections = 40}, q{ALTER SYSTEM SET log_line_prefix = '%m '};
$node->reload;
my $after = sql(q{SELECT date_part('epoch', clock_timestamp())});
is_deeply(changes(3), [
		"log_line_prefix: $prefix -> %m  ($auto:6)",
		"restore_command: (not shown) -> (not shown) ($auto:4)",
		"work_mem: 4MB -> 64MB ($auto:3)" ], 'after a reload each setting in effect is a marker with its place')
  or diag(join "\n", markers($tape, 'settings changed'));
my ($marker) = grep { $_->{detail} =~ /^work_mem/ } ask($tape, 'markers', '--since', '2000-01-01T00:00:00Z');
my $moment = sql("SELECT date_part('epoch', '$marker->{marker_time}'::timestamptz)");
cmp_ok($moment, '<', $after + 5, 'the time is the time of the reload');
cmp_ok($moment, '>', $before - 1, 'the marker is not before the reload');

$node->restart;
is_deeply(changes(1), ["max_connections: 30 -> 40 ($auto:5)"], 'settings changed by a start are markers');

is($recorder->end('TERM'), 0, 'the recorder ends');
sql($_) foreach q{ALTER SYSTEM SET work_mem = '128MB'}, q{ALTER ROLE app SET work_mem = '1GB'},
  q{ALTER DATABASE postgres SET app.api_key = 's3cret'}, q{ALTER ROLE app IN DATABASE postgres SET jit = off};
$node->reload;
$recorder = record($conninfo, $tape);
is_deeply(changes(4), [
		'app.api_key of database postgres: (not set) -> (not shown)',
		'jit of role app in database postgres: (not set) -> off',
		'work_mem of role app: (not set) -> 1GB',
		"work_mem: 64MB -> 128MB ($auto:6)" ], 'settings changed without a recorder are markers, of roles and databases too')
  or diag(join "\n", markers($tape, 'settings changed'));
sql('ALTER ROLE app RESET work_mem');
is_deeply(changes(1), ['work_mem of role app: 1GB -> (not set)'], 'a setting that is taken back is a marker');
SKIP:
{
	skip 'transaction_timeout needs PostgreSQL 17', 1 if $node->pg_version < 17;
	sql(q{ALTER SYSTEM SET transaction_timeout = '7min'});
	$node->reload;
	like(changes(1)->[0], qr/^transaction_timeout: 0 -> 7min \(\Q$auto\E:\d+\)$/, 'the timeout of transactions is a setting of the server');
}
is($recorder->end('TERM'), 0, 'the second recorder ends');
is(system("grep -rqa s3cret '$tape'"), 256, 'no secret is beside the history');

done_testing();
