# The extension marks each setting of the server whose value changes: by a reload, at a
# start, or while the sampler did not run. Markers show no value that may be a secret.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(tacho_cluster wait_for_marker);

my $node = tacho_cluster("settings", conf => "work_mem = 4MB\nmax_connections = 30\nlog_connections = off");
my $auto = $node->data_dir . '/postgresql.auto.conf';
my $conf = $node->data_dir . '/postgresql.conf';

# Waits for this number of markers; returns the new ones, sorted.
my $seen = 0;
sub changes
{
	my ($count) = @_;

	wait_for_marker($node, 'settings changed', $seen + $count);
	my @changes = split /\n/, $node->safe_psql('postgres',
		q{SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'settings changed' ORDER BY marker_time, detail});
	my @new = @changes[ $seen .. $#changes ];
	$seen = @changes;
	return [ sort @new ];
}

# A reload that the sampler has taken.
sub reload
{
	my $ticks = metric($node, 'ticks_taken');
	$node->reload;
	wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 3");
	return;
}

my $prefix = $node->safe_psql('postgres', 'SHOW log_line_prefix');
my $before = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$node->safe_psql('postgres', $_) foreach q{ALTER SYSTEM SET work_mem = '64MB'}, q{ALTER SYSTEM SET restore_command = 'push --key s3cret'},
  q{ALTER SYSTEM SET max_connections = 40}, q{ALTER SYSTEM SET log_line_prefix = '%m '},
  q{ALTER SYSTEM SET log_connections = on}, q{ALTER SYSTEM SET lock_timeout = '7s'}, q{ALTER SYSTEM SET tacho.flush_interval = '2s'};
reload();
my $after = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
is_deeply(changes(6), [
		"lock_timeout: (default) -> 7s ($auto:8)",
		"log_connections: off -> on ($auto:7)",
		"log_line_prefix: $prefix -> %m  ($auto:6)",
		"restore_command: (not shown) -> (not shown) ($auto:4)",
		"tacho.flush_interval: 1s -> 2s ($auto:9)",
		"work_mem: 4MB -> 64MB ($auto:3)" ], 'after a reload each setting in effect is a marker with its place')
  or diag($node->safe_psql('postgres', q{SELECT * FROM tacho.markers(since => '2000-01-01')}));
is($node->safe_psql('postgres', qq{SELECT count(*) FROM tacho.markers(since => '2000-01-01') WHERE kind = 'settings changed'
	AND marker_time BETWEEN '$before' AND '$after'}), '6', 'the marker has the time of the reload');

is($node->safe_psql('postgres', qq{SELECT string_agg(concat_ws('|', object_class, object_name, old_value, new_value), ' ' ORDER BY object_name)
	FROM tacho.markers(since => '2000-01-01') WHERE kind = 'settings changed' AND object_name <> 'log_line_prefix'
	AND database IS NULL AND username IS NULL AND client_addr IS NULL}),
	'setting|lock_timeout|(default)|7s setting|log_connections|off|on setting|restore_command|(not shown)|(not shown)'
	. ' setting|tacho.flush_interval|1s|2s setting|work_mem|4MB|64MB', 'each fact of the marker has its column');

$node->append_conf('postgresql.conf', 'app.api_key = s3cret');
reload();
is_deeply([ map { s/:\d+\)$//r } @{ changes(1) } ], ["app.api_key: (not set) -> (not shown) ($conf"], 'a setting that is new in a file is a marker');

$node->restart;
is_deeply(changes(1), ["max_connections: 30 -> 40 ($auto:5)"], 'settings changed by a start are markers');

$node->stop;
$node->append_conf('postgresql.auto.conf', q{restore_command = 'push --key another'});
$node->append_conf('postgresql.auto.conf', q{work_mem = '128MB'});
$node->start;
is_deeply(changes(2), [
		"restore_command: (not shown) -> (not shown) ($auto:10)",
		"work_mem: 64MB -> 128MB ($auto:11)" ], 'settings changed while the server was down are markers');

$node->safe_psql('postgres', 'ALTER SYSTEM RESET work_mem');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET log_connections');
reload();
$_ = changes(2);
like($_->[0], qr/^log_connections: on -> off \(\Q$conf\E:\d+\)$/, 'a setting of new sessions that is taken back is a marker');
like($_->[1], qr/^work_mem: 128MB -> 4MB \(\Q$conf\E:\d+\)$/, 'another setting that is taken back is a marker');

SKIP:
{
	skip 'transaction_timeout needs PostgreSQL 17', 1 if $node->pg_version < 17;
	$node->safe_psql('postgres', q{ALTER SYSTEM SET transaction_timeout = '7min'});
	reload();
	like(changes(1)->[0], qr/^transaction_timeout: 0 -> 7min \(\Q$auto\E:\d+\)$/, 'the timeout of transactions is a setting of the server');
}

# A file that is damaged is not used; a crash of the server leaves it as it is.
my $kept = $node->data_dir . '/pg_stat/tacho_settings.stat';
$node->stop;
open my $file, '+<', $kept or die "$kept: $!";
seek $file, 100, 0;
print $file 'x';
close $file;
$node->append_conf('postgresql.conf', 'work_mem = 5MB');
$node->start;
is_deeply(changes(0), [], 'after damage to the file no change is claimed');
$node->append_conf('postgresql.conf', 'work_mem = 6MB');
$node->stop('immediate');
$node->start;
like(changes(1)->[0], qr/^work_mem: 5MB -> 6MB/, 'settings changed by a crash are markers');
is(system("grep -rqa s3cret '@{[ $node->data_dir ]}/tacho' '$kept'"), 256, 'no secret is in the history or beside it');
$node->stop;

done_testing();
