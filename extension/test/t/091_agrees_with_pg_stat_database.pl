# The window has only sessions that ended in it. So the active time that PostgreSQL
# counted equals the sampled time of active leader sessions. The load of one moment
# resembles the load of the moment before (sessions queue for a row, the machine
# pauses), so samples are not independent. The error of the average is therefore
# computed from the differences between whole seconds. A sampler that waits for a CPU
# sees the state after others have run: any state that can come about during its wait.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric);
use TachoTest qw(at tacho_cluster server_ms wait_for_ticks);
use Test::More;
use List::Util 'sum';

my $node = tacho_cluster('agreement', interval => '10ms');
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
# Time that the sampler has waited for a CPU.
my $sampler = metric($node, 'sampler_pid');

sub queued_ms
{
	return 0 unless -r "/proc/$sampler/schedstat";
	return (split / /, slurp_file("/proc/$sampler/schedstat"))[1] / 1e6;
}

my $active = q{SELECT active_time FROM pg_stat_database WHERE datname = 'measured'};
my $before = $node->safe_psql('postgres', $active);
my $since = server_ms($node);
my $waited = queued_ms();
my ($load, $trouble) =
  run_command([ @pgbench, '-n', '-c', '4', '-T', '15', '-f', $script, 'measured' ]);
$waited = queued_ms() - $waited;
ok($load =~ /actually processed: (\d+)/, 'pgbench runs its load') or diag($load, $trouble);
my $transactions = $1;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'measured'");
my $until = server_ms($node);
my $counted = $node->safe_psql('postgres', $active) - $before;
wait_for_ticks($node, 5, $until);

my $window = q{database => 'measured', scope => 'all',
	state => 'active,fastpath function call', by_leader => true};
my ($aas, $missed, $ticks) = split /\|/, $node->safe_psql('postgres',
	"SELECT avg_aas, 1 - coverage_pct / 100, ticks_observed FROM tacho.aas(
	   since => @{[at($since)]}, until => @{[at($until)]}, $window)");
my @seconds = split /\n/, $node->safe_psql('postgres',
	"SELECT avg_aas FROM tacho.timeline(bucket => '1 second',
	   since => @{[at($since)]}, until => @{[at($until)]}, $window)");

# The seconds in which the load began and ended show nothing about its variation; nor do
# seconds without a tick.
@seconds = grep { $_ ne '' } @seconds[2 .. $#seconds - 2];
my $mean = sum(@seconds) / @seconds;
my $error = sqrt(sum(map { ($_ - $mean)**2 } @seconds) / (@seconds - 1) / @seconds);

# The activity of four clients in slots without a tick, on a busy machine, is unknown.
# So is the activity that began (three statements a transaction) and ended while a tick
# waited for its CPU: the tick may have seen the state before or after.
my $span = $until - $since;
my $changed = $waited / $ticks * 2 * 3 * $transactions / $span;
my $allowed = $span * (5 * $error + 4 * $missed + $changed);
cmp_ok(@seconds, '>=', 8, "@{[scalar @seconds]} whole seconds of load are sampled");
cmp_ok(abs($aas * $span - $counted), '<=', $allowed,
	"sampled @{[$aas * $span]} ms, counted by the server $counted ms, within $allowed ms, $changed changed");

$node->stop;
done_testing();
