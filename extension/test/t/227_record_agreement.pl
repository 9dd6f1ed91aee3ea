# Extension and tacho-record on one server, beside sessions that measure by the
# server's clock how long they sleep, wait for a lock, and compute. The seconds of
# each kind by samples are the measured ones, within the error of sampling.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use List::Util qw(sum0);
use PostgreSQL::Test::Utils;
use Test::More;
use TachoRecord qw(ask moment record record_program ticks wait_until);
use TachoTest qw(tacho_cluster);

record_program();
my $interval = 0.1;    # between two ticks of both, seconds
my $node = tacho_cluster('agreement', conf => "shared_preload_libraries = 'pg_stat_statements, tacho'\ndeadlock_timeout = 600s\n");
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE EXTENSION pg_stat_statements');
my %recorded = (extension => $node->data_dir . '/tacho', 'tacho-record' => $node->basedir . '/recorded');
my $recorder = record($node->connstr('postgres') . ' user=watcher', $recorded{'tacho-record'});
wait_until('the recorder', sub { ticks($recorded{'tacho-record'}, '1m') >= 3 });

# A statement of each kind, which shows how many seconds each of its parts took.
my $clock = 'extract(epoch FROM clock_timestamp() - statement_timestamp())';
my %statement = (
	sleeps => "SELECT pg_sleep(%s), $clock",
	computes => "SELECT (SELECT sum(sqrt(i)) FROM generate_series(1, 1e6 * %s) i) AS n, $clock",
	queues => "SELECT pg_advisory_lock(1), $clock, pg_sleep(%s), pg_advisory_unlock(1), $clock");

# Durations from 0.02 to 0.30 s, others for each session, the same in each run.
my $jobs = 30;
sub script
{
	my ($kind, $session) = @_;
	return join '', map {
		my $job = sprintf "$statement{$kind};\n", 0.02 + 0.28 * (($_ * 37 + $session * 11) % 41) / 40;
		$_ % 4 == 0 ? "$job\\! sleep 0.05\n" : $job;
	} 1 .. $jobs;
}

my %sessions = (sleeps => 3, computes => 1, queues => 3);
my $since = moment($node);
my @running;
for my $kind (sort keys %sessions)
{
	for my $session (1 .. $sessions{$kind})
	{
		my $script = script($kind, $session);
		my $out = '';
		local $ENV{PGAPPNAME} = $kind;
		push @running, { kind => $kind, out => \$out, harness => IPC::Run::start(
			[ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$script, '>', \$out) };
	}
}
$_->{harness}->finish for @running;
my $until = moment($node);
for my $who (sort keys %recorded)
{
	wait_until("ticks of $who", sub { ticks($recorded{$who}, $until) >= 3 });
}

# Seconds by the server's clock for each kind, and the part of them before a lock.
my (%seconds, %locked);
for my $run (@running)
{
	my @rows = map { [ split /\|/ ] } split /\n/, ${ $run->{out} };
	is(scalar @rows, $jobs, "$run->{kind}: each statement has ended");
	$seconds{ $run->{kind} } += sum0(map { $_->[-1] } @rows);
	$locked{ $run->{kind} } += sum0(map { $_->[1] } @rows) if $run->{kind} eq 'queues';
}

# Tolerance: five standard deviations, plus what missed ticks did not see. Each end of
# an interval that samples see adds at most a quarter of a tick squared to the variance.
sub agrees
{
	my ($who, $kind, $expected, @filter) = @_;
	my ($row) = ask($recorded{$who}, 'aas', '--since', $since, '--until', $until, '--bucket', '1d', '--application', $kind, @filter);
	my $missed = $row->{ticks_expected} - $row->{ticks_observed};
	my $error = $interval * (5 * sqrt(0.5 * $jobs * $sessions{$kind}) + $missed * $sessions{$kind});

	cmp_ok(abs($row->{backend_seconds} - $expected), '<=', $error,
		sprintf('%s: %s%s for %.2f s, by samples %.2f s, %d ticks missed', $who, $kind, "@filter" ? ' (lock)' : '', $expected, $row->{backend_seconds}, $missed));
	return;
}

for my $who (sort keys %recorded)
{
	agrees($who, $_, $seconds{$_}) for sort keys %sessions;
	agrees($who, 'queues', $locked{queues}, '--wait-event-type', 'Lock');
}

$node->stop;
done_testing();
