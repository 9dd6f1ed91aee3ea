# Over a window in which every session has ended, the time PostgreSQL counted
# as active equals the sampled time of leader sessions that were active,
# within three standard deviations of the number of samples.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at tacho_cluster server_ms wait_for_ticks);
use Test::More;

my $node = tacho_cluster('agreement', interval => '20ms');
$node->safe_psql('postgres', 'CREATE DATABASE measured');

my $bindir = `$ENV{PG_CONFIG} --bindir`;
chomp $bindir;
my @pgbench = ("$bindir/pgbench", '-h', $node->host, '-p', $node->port);
command_ok([ @pgbench, '-i', '-q', '-s', '1', 'measured' ], 'pgbench tables');

my $script = $node->basedir . '/mixed.sql';
append_to_file($script, q{
\set aid random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT pg_sleep(0.003);
UPDATE pgbench_branches SET bbalance = bbalance + 1;
\sleep 5 ms
});

$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'measured'");
my $active = q{SELECT active_time FROM pg_stat_database WHERE datname = 'measured'};
my $before = $node->safe_psql('postgres', $active);
my $since = server_ms($node);
command_ok([ @pgbench, '-n', '-c', '4', '-T', '10', '-f', $script, 'measured' ],
	'load');
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'measured'");
my $until = server_ms($node);
my $counted = $node->safe_psql('postgres', $active) - $before;
wait_for_ticks($node, 5, $until);

# Ticks that a busy machine missed are no evidence either way, so the sampled
# average stands for the whole window.
my ($aas, $seconds, $coverage) = split /\|/, $node->safe_psql('postgres',
	"SELECT avg_aas, backend_seconds, coverage_pct FROM tacho.aas(
	   since => @{[at($since)]}, until => @{[at($until)]},
	   database => 'measured', scope => 'all', state => 'active,fastpath function call',
	   by_leader => true)");
my $sampled = $aas * ($until - $since);
my $n = $seconds / 0.020;

cmp_ok($n, '>', 100, "$n samples, coverage $coverage %");
cmp_ok(
	abs($sampled - $counted), '<=',
	3 * $counted / sqrt($n),
	"sampled $sampled ms, counted by the server $counted ms");

$node->stop;
done_testing();
