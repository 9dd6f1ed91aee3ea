# increase() of a real Prometheus for storms, the first of their class, before midnight,
# across it and after it. The history is imported step by step, and each step is
# followed by a run of tacho metrics: these are the scrapes.
use strict;
use warnings;
use FindBin;
use POSIX qw(strftime);
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoMetrics qw(checked metric_programs prometheus query);
use TachoRecord qw(wait_until);
use Test::More;

metric_programs();
my $dir = PostgreSQL::Test::Utils::tempdir();
my $midnight = 1772409600;    # 2026-03-02T00:00:00Z
my $sessions = 6;

# Begin and end of the storm of each class, in seconds after midnight.
my %storm = (Lock => [ -300, -288 ], LWLock => [ -10, 10 ], IO => [ 180, 192 ]);
my @classes = sort keys %storm;

sub at { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime($midnight + $_[0])) }

# The rows of a second.
sub tick
{
	my ($second) = @_;
	my @lines;

	for my $class (@classes)
	{
		next unless $second >= $storm{$class}[0] && $second < $storm{$class}[1];
		push @lines, map { at($second) . ",1000,$_,active,$class,x\n" } 1 .. $sessions;
	}
	return @lines ? join('', @lines) : at($second) . ",1000,,,,\n";
}

# Adds the seconds of a window to a history.
sub record
{
	my ($tape, $since, $until) = @_;
	my $csv = "time,interval_ms,pid,state,wait_event_type,wait_event\n";
	my @words = ('--tape', $tape);

	$csv .= tick($_) for $since .. $until - 1;
	push @words, '--append' if -d $tape;
	my $said = '';
	IPC::Run::run([ $ENV{TACHO_PROGRAM}, 'import', 'sessions', '-', @words ],
		'<', \$csv, '>&', \$said)
	  or die "import: $said";
	return;
}

# The counters of a history, as a scrape at some time.
sub scrape
{
	my ($tape, $name, $time) = @_;
	my ($text) = run_command([ $ENV{TACHO_PROGRAM}, 'metrics', '--tape', "$name=$tape" ]);
	my $now = $midnight + $time;

	return join '', map { "$_ $now\n" } $text =~ /^(tacho_\w+_total\{.*\} \S+)$/mg;
}

my $scrapes = '';
# by server: seconds between scrapes, and the time of the first one
my %scraped = (quick => [ 10, -363 ], slow => [ 30, -350 ]);
for my $server (sort keys %scraped)
{
	my ($step, $until) = @{ $scraped{$server} };
	my $since = -400;

	for (; $until < 330; $until += $step)
	{
		record("$dir/$server", $since, $until);
		$scrapes .= scrape("$dir/$server", $server, $until);
		$since = $until;
	}
}
append_to_file("$dir/scrapes", "$scrapes# EOF\n");
my ($code, $said) = checked('', qw(tsdb create-blocks-from openmetrics), "$dir/scrapes", "$dir/data");
is($code, 0, 'promtool makes blocks of the scrapes') or diag $said;

my $prometheus = prometheus(undef, data => "$dir/data");
my $end = $midnight + 330;

# increase() of a counter over all scrapes. It extrapolates by half a step.
sub increase
{
	my ($selector) = @_;
	my $found = [];

	wait_until("Prometheus has $selector",
		sub { @{ $found = query($prometheus, "sum(increase($selector\[900s] \@ $end))") } });
	return $found->[0]{value}[1];
}

# Tests that a figure is true, within the limits of extrapolation.
sub is_about
{
	my ($figure, $true, $name) = @_;

	ok($figure >= 0.99 * $true && $figure <= 1.05 * $true, $name) or diag "$figure is not $true";
	return;
}

for my $server (sort keys %scraped)
{
	for my $class (@classes)
	{
		my $true = $sessions * ($storm{$class}[1] - $storm{$class}[0]);
		is_about(increase(qq(tacho_session_seconds_total{server="$server",wait_event_type="$class"})),
			$true, "$server: increase() has all of the storm of $class");
	}
	my $resets = query($prometheus,
		qq{min(resets(tacho_session_seconds_total{server="$server",state="active",wait_event_type=~"Lock|LWLock"}[900s] \@ $end))});
	is($resets->[0]{value}[1], 1, "$server: midnight counts as a reset");
}
is_about(increase('tacho_observed_seconds_total{server="quick"}'), 363 + 327,
	'the observed time is counted across midnight');
$prometheus->stop;
done_testing();
