# Sessions that are active without a wait event. Four spinners share two CPUs, whatever else
# runs there. The labels must agree with the kernel's counters of running and queued time. A
# stopped process is neither on a CPU nor in its queue, and neither is a process that waits
# for a program. With the setting off there are no kinds.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoLocks qw(session settle);
use TachoTest qw(at tacho_cluster wait_for_ticks server_ms);
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'no /proc/self/schedstat' unless -r '/proc/self/schedstat';

my $node = tacho_cluster('kinds');
my @spinners = map { session($node, 'spinner') } 1 .. 4;

$_->send('DO $$ BEGIN LOOP END LOOP; END $$') for @spinners;
$node->poll_query_until('postgres',
	"SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name = 'spinner' AND query LIKE 'DO%'");

my @pids = split /\n/, $node->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE application_name = 'spinner'");

system("taskset -cp 0,1 $_ >/dev/null 2>&1") for @pids;

# Time on a CPU and in its queue, by spinner.
sub cpu_times
{
	return map { [ split / /, slurp_file("/proc/$_/schedstat") ] } @pids;
}

# The average number of queued spinners between two readings.
sub queued
{
	my ($before, $after) = @_;
	my $sum = 0;

	for my $i (0 .. $#pids)
	{
		my ($ran, $waited) = map { $after->[$i][$_] - $before->[$i][$_] } 0, 1;
		$sum += $waited / ($ran + $waited) if $ran + $waited > 0;
	}
	return $sum;
}

# Number of samples by kind, of 4 spinners in at least $ticks ticks of one window. The
# kernel's counters are read at both ends of the window.
sub kinds
{
	my ($ticks) = @_;
	my $since = server_ms($node) + 300;

	usleep(300_000);
	my @before = cpu_times();
	wait_for_ticks($node, $ticks, $since);
	my @after = cpu_times();
	my $until = server_ms($node);
	wait_for_ticks($node, 1, $until);
	my %count = map { split /\|/ } split /\n/, $node->safe_psql('postgres', qq{
		WITH s AS MATERIALIZED (SELECT tick, cpu FROM tacho.samples(
		  since => @{[at($since)]}, until => @{[at($until)]}, n => null, application => 'spinner'))
		SELECT coalesce(cpu, 'waiting'), count(*) FROM s GROUP BY 1
		UNION ALL SELECT 'ticks', count(DISTINCT tick) FROM s});
	$count{queued} = queued(\@before, \@after);
	return \%count;
}

my $kinds = kinds(40);
note join ', ', map { "$_ $kinds->{$_}" } sort keys %$kinds;
my $running = $kinds->{running} // 0;
my $runnable = $kinds->{runnable} // 0;

# a tick that waited for the CPU may leave some kinds unread
my $labelled = $running + $runnable;
is($labelled + ($kinds->{'CPU*'} // 0), 4 * $kinds->{ticks},
	'no sample sleeps, none waits');
cmp_ok($labelled, '>=', 3 * $kinds->{ticks}, 'most samples are running or runnable');
my $queued = 4 * $runnable / $labelled;
cmp_ok(abs($queued - $kinds->{queued}), '<=', 0.25,
	"$queued of 4 are runnable, $kinds->{queued} as the kernel says");
cmp_ok($queued, '>=', 1.75, 'at most two sessions run at a time');

# Every session has its share of both kinds: no label sticks to a session.
my $shares = $node->safe_psql('postgres', q{
	SELECT count(DISTINCT pid) FROM tacho.samples(n => null, application => 'spinner', cpu => 'running')});
is($shares, 4, 'each session is seen running');
cmp_ok(
	$node->safe_psql('postgres', q{
		SELECT sum(backend_seconds) FROM tacho.top('wait_event', application => 'spinner')
		WHERE key IN ('CPU:running', 'CPU:runnable')}),
	'>', 0, 'readers show the kinds of CPU');

kill 'STOP', @pids;
$kinds = kinds(40);
note join ', ', map { "$_ $kinds->{$_}" } sort keys %$kinds;

my $unread = $kinds->{'CPU*'} // 0;
is($kinds->{uninstrumented} + $unread, 4 * $kinds->{ticks}, 'a stopped process is uninstrumented');
cmp_ok($unread, '<=', $kinds->{ticks}, 'the kind of a stopped process is seldom unread');

# A backend that waits for a program sleeps, and reports no wait event.
{
	my $sleeper = session($node, 'sleeper');
	my $fifo = $node->basedir . '/fifo';

	system('mkfifo', $fifo) == 0 or die "mkfifo: $!";
	$sleeper->send("COPY (SELECT 1) TO PROGRAM 'cat >$fifo'");
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = 'sleeper' AND query LIKE 'COPY%' AND wait_event IS NULL});
	my $since = server_ms($node) + 300;
	wait_for_ticks($node, 10, $since);
	# a tick may have left it unread, as above
	is( $node->safe_psql('postgres', qq{
			SELECT string_agg(DISTINCT cpu, ' ') FILTER (WHERE cpu <> 'CPU*') FROM tacho.samples(
			  since => @{[at($since)]}, n => null, application => 'sleeper')}),
		'uninstrumented', 'a sleep that reports no wait is uninstrumented');
	slurp_file($fifo);
	$sleeper->finish;
}

$node->append_conf('postgresql.conf', 'tacho.cpu_kind = off');
$node->reload;
kill 'CONT', @pids;
$kinds = kinds(10);
is($kinds->{'CPU*'}, 4 * $kinds->{ticks}, 'cpu_kind = off shows CPU*');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'tacho%'}),
	1, 'the sampler still runs');

$node->stop('immediate');
done_testing();
