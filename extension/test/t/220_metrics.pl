# A real Prometheus scrapes tacho-web every second. Its rates of the counters equal the
# answers of tacho, also across a restart of tacho-web.
use strict;
use warnings;
use FindBin;
use POSIX qw(strftime);
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoLocks qw(session wait_until_locked);
use TachoMetrics qw(checked metric_programs prometheus query series start_web);
use TachoRecord qw(ask wait_until);
use TachoTest qw(tacho_cluster);
use Test::More;

metric_programs();
my $node = tacho_cluster('metrics',
	init => { allows_streaming => 'logical' },
	conf => "tacho.server_interval = 200ms\n");
my $tape = $node->data_dir . '/tacho';

$node->safe_psql('postgres', q{
	SELECT pg_create_physical_replication_slot('left_behind', true);
	CREATE TABLE t(id int PRIMARY KEY);
	INSERT INTO t VALUES (1)});
my ($holder, @waiters) = map { session($node, $_) } qw(holder first second third);
$holder->run('BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE');
$_->send('UPDATE t SET id = 1') for @waiters;
wait_until_locked($node, qw(first second third));

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $web = start_web($tape, $port);
my $prometheus = prometheus($web);

# Scrapes of the counters and of the tick they go up to, by time.
sub scrapes
{
	my %scrapes;

	for my $metric (qw(tacho_session_seconds_total tacho_observed_seconds_total
		tacho_last_tick_timestamp_seconds))
	{
		push @{ $scrapes{ $_->[0] } }, $_->[1] for series($prometheus, $metric);
	}
	return map { [ $_, @{ $scrapes{$_} } ] }
	  grep { @{ $scrapes{$_} } == 3 } sort { $a <=> $b } keys %scrapes;
}

# Waits for $count more scrapes with new ticks.
sub more_scrapes
{
	my ($count) = @_;
	my $last = (scrapes())[-1];
	my $observed = $last ? $last->[2] : 0;

	wait_until("$count scrapes",
		sub { my $new = grep { $_->[2] > $observed } scrapes(); $new >= $count });
	return;
}

more_scrapes(5);
$web->stop;
$web = start_web($tape, $port);
more_scrapes(10);

my @scrapes = scrapes();
my ($first, $last) = @scrapes[ 0, -1 ];
my ($since, $until) = map { strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $_->[3]) } $first, $last;
my ($aas) = ask($tape, 'aas', '--since', $since, '--until', $until);
my $by_counters = ($last->[1] - $first->[1]) / ($last->[2] - $first->[2]);
is(sprintf('%.3f', $by_counters), sprintf('%.3f', $aas->{avg_aas}),
	'the load by counters between two scrapes equals tacho aas');
cmp_ok($aas->{avg_aas}, '>=', 3, 'the load is the load that waited');

# as in the documentation: within one scrape of the window's ends
my $window = int($last->[0] - $first->[0]) - 1;
my ($rated) = @{ query($prometheus, qq{
	sum(rate(tacho_session_seconds_total[${window}s] \@ $last->[0]))
	/ sum(rate(tacho_observed_seconds_total[${window}s] \@ $last->[0]))}) };
cmp_ok(abs($rated->{value}[1] - $aas->{avg_aas}), '<=', 2 * $aas->{peak_sessions} / $window,
	'the expression of the dashboards gives that load within one scrape at each end');

my ($resets) = @{ query($prometheus, 'max(resets(tacho_observed_seconds_total[10m]))') };
my ($waits) = @{ query($prometheus, 'max(resets(tacho_session_seconds_total[10m]))') };
my $midnights = int($last->[0] / 86400) - int($scrapes[0][0] / 86400);
cmp_ok($resets->{value}[1], '<=', $midnights, 'no counter is set back by a start of tacho web');
cmp_ok($waits->{value}[1], '<=', $midnights, 'no counter of waits is set back by a start of tacho web');

my ($locked) = @{ query($prometheus,
	'rate(tacho_session_seconds_total{wait_event_type="Lock",state="active"}[5s]) / on (server) rate(tacho_observed_seconds_total[5s])') };
is($locked->{metric}{server}, 'shop', 'waits for locks have the label of their server');
is(sprintf('%.1f', $locked->{value}[1]), '3.0', 'waits for locks belong to the three sessions');

for my $metric (
	'tacho_server_wal_bytes_total', 'tacho_server_checkpoint_write_time_seconds_total',
	'tacho_database_xact_commit_total{database="postgres"}',
	'tacho_slot_retained_bytes{slot="left_behind"}',
	'tacho_slot_active{slot="left_behind"} == 0',
	'tacho_server_memory_total_bytes > 1e8', 'tacho_last_tick_cost_seconds > 0',
	'tacho_history_bytes > 0', 'tacho_first_tick_timestamp_seconds > 1e9',
	'tacho_ticks_observed_total', 'tacho_ticks_missed_total', 'tacho_ticks_failed_total',
	'tacho_markers_total{kind="start"} >= 1', 'tacho_vcpus > 0', 'tacho_damaged_bytes == 0')
{
	is(scalar @{ query($prometheus, $metric) }, 1, $metric);
}
my ($retained) = @{ query($prometheus, 'tacho_slot_retained_bytes') };
my $kept = $node->safe_psql('postgres',
	q{SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) FROM pg_replication_slots});
cmp_ok($retained->{value}[1], '<=', $kept, 'a slot keeps at most as much log as the server says');

my $text = $web->get('/metrics')->{content};
my ($code, $said) = checked($text, 'check', 'metrics');
is("$code $said", '0 ', 'promtool finds nothing in the text format');
my ($once) = run_command([ $ENV{TACHO_PROGRAM}, 'metrics', '--tape', "shop=$tape" ]);
($code, $said) = checked("$once\n", 'check', 'metrics');
is("$code $said", '0 ', 'promtool accepts what tacho metrics prints');
unlike($text . $once, qr/="(holder|first|second)|pid=|query_id=|UPDATE t/,
	'no name of a session, process or query is in the metrics');

# counters read through a connection lie between the counters of the files before and after
sub counters
{
	my ($printed) = run_command([ $ENV{TACHO_PROGRAM}, 'metrics', @_ ]);
	return { $printed =~ /^(tacho_\w+_total\{.*\}) (\S+)$/mg };
}

SKIP:
{
	skip 'midnight is near', 2 if time % 86400 > 86400 - 60;
	my $before = counters('--tape', "shop=$tape");
	my $through = counters('--dsn', 'shop=' . $node->connstr('postgres'));
	my $after = counters('--tape', "shop=$tape");
	my @outside = grep { !defined $through->{$_} || $through->{$_} < $before->{$_} } keys %$before;
	push @outside, grep { !defined $after->{$_} || $through->{$_} > $after->{$_} } keys %$through;
	cmp_ok(scalar keys %$through, '>', 50, 'a connection has counters');
	is(join(' ', @outside), '', 'counters of a connection equal the files');
}

$prometheus->stop;
$web->stop;
$holder->run('ROLLBACK');
$_->finish for $holder, @waiters;
$node->stop;
done_testing();
