# usage: perl bench/sameness.pl TACHO EXTENSION RECORDED LOGS MS SINCE UNTIL REST AFTER
#
# Prints the table of bench/sameness.sh: rows that compare each reader function's
# answers from both directories, about a load from SINCE to UNTIL. The error of sampling
# is the error of the mean of the differences, slot by slot, of slots in which both have
# a tick: whatever the load does, both see the same slot, each at its own moment. A
# difference of more than four such errors says NO. Counters, which are not sampled, are
# compared from REST until AFTER, when the server rests, and must be equal. LOGS has
# copies of both directories (tacho, recorded) from before anything was sealed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../tools";
use Catalog qw(dimensions);
use JSON::PP qw(decode_json);
use List::Util qw(max min sum0 uniq);
use Time::Local qw(timegm);

my ($tacho, $extension, $recorded, $logs, $ms, $since, $until, $rest, $after) = @ARGV;
my @window = ('--since', $since, '--until', $until);
my $others = 0;
# the recorder does not see itself, the extension does not see its own workers
my @filter = ('--application', '!tacho record');

sub output
{
	my @command = ($tacho, @_);
	open my $from, '-|', @command or die "error: @command: $!\n";
	my $out = do { local $/; <$from> };
	close $from or die "error: @command\n";
	return $out;
}

sub rows { my ($tape, $command, @arguments) = @_; return @{ decode_json(output($command, '--tape', $tape, '--json', @arguments)) }; }
sub both { my @arguments = @_; return map { [ rows($_, @arguments) ] } $extension, $recorded; }

# A row of the table; $same: undef if there is nothing to compare.
sub row
{
	my ($function, $what, $one, $other, $difference, $error, $same) = @_;
	$others++ if defined $same && !$same;
	printf "| %s | %s | %s | %s | %s | %s | %s |\n", map { s/\|/\\|/gr } $function, $what, $one, $other, $difference, $error,
	  !defined $same ? 'NULL' : $same ? 'yes' : '**NO**';
	return;
}

sub nothing { my ($function, $what, $reason) = @_; return row($function, $what, '', 'NULL', '', $reason, undef); }

# A row of a sampled value: the difference and its error of sampling.
sub sampled
{
	my ($function, $what, $one, $other, $difference, $error) = @_;
	return row($function, $what, sprintf('%.3f', $one), sprintf('%.3f', $other), sprintf('%+.4f', $difference),
		sprintf('± %.4f', $error), abs $difference <= 4 * $error + 0.5 / 1000);
}

# A row of a value that must be equal.
sub exact { my ($function, $what, $one, $other) = @_; return row($function, $what, $one, $other, $one eq $other ? 'none' : $one - $other, '0', $one eq $other); }

sub mean { return @_ ? sum0(@_) / @_ : 0; }

# Mean of differences, and its error.
sub error_of
{
	my @d = @_;
	my $mean = mean(@d);
	return ($mean, @d < 2 ? 0 : sqrt(sum0(map { ($_ - $mean)**2 } @d) / (@d - 1) / @d));
}

# Load by key and slot: { key => { slot => load } }, and slots with a tick.
sub slots
{
	my ($tape, @arguments) = @_;
	my (%load, %ticks);
	for (rows($tape, 'timeline', @window, @filter, '--bucket', "${ms}ms", '--n', 'all', @arguments))
	{
		next unless $_->{ticks_observed};
		$ticks{ $_->{bucket_start} } = 1;
		# the recorder has only one kind of on-CPU activity
		my $key = ($_->{key} // '(none)') =~ s/^CPU.*/CPU*/r;
		$load{$key}{ $_->{bucket_start} } += $_->{avg_aas} // 0;
	}
	return (\%load, \%ticks);
}

# Compares the load by key. The row has the key that differs most, relative to its
# error.
sub compare
{
	my ($function, $what, @arguments) = @_;
	my ($x, $ticks_x) = slots($extension, @arguments);
	my ($y, $ticks_y) = slots($recorded, @arguments);
	my @common = grep { $ticks_y->{$_} } sort keys %$ticks_x;
	my @found;
	for my $key (uniq(keys %$x, keys %$y))
	{
		my @one = map { $x->{$key}{$_} // 0 } @common;
		my @other = map { $y->{$key}{$_} // 0 } @common;
		my ($d, $error) = error_of(map { $other[$_] - $one[$_] } 0 .. $#common);
		# the normal distribution holds only for keys with enough samples
		next if sum0(map { $_ > 0 } @one) + sum0(map { $_ > 0 } @other) < 20;
		push @found, [ $key, mean(@one), mean(@other), $d, $error ];
	}
	my ($worst) = sort { abs($b->[3]) * ($a->[4] || 1e-9) <=> abs($a->[3]) * ($b->[4] || 1e-9) } @found;
	return row($function, $what, '0', '0', 'none', '', 1) if !$worst;
	my $keys = @found;
	return sampled($function, @found > 1 ? "$what: the worst of $keys keys, $worst->[0]" : $what, @$worst[ 1 .. 4 ]);
}

sub value { my ($metric, @rows) = @_; my ($row) = grep { $_->{metric} eq $metric } @rows; return $row ? $row->{value} : undef; }

print "| Function | What | Extension | Recorder | Difference | Error of sampling | Same |\n|---|---|--:|--:|--:|--:|---|\n";

# ticks
my @aas = map { $_->[0] } both('aas', @window, @filter);
my $slots = $aas[0]{ticks_expected};
row('status', "ticks of $slots slots", (map { $_->{ticks_observed} } @aas), $aas[1]{ticks_observed} - $aas[0]{ticks_observed},
	'a slot may be missed', min(map { $_->{ticks_observed} } @aas) >= 0.95 * $slots);
exact('status', 'system, timeline', map { join ' ', map { $_ // '' } value('system_identifier', @$_), value('timeline', @$_) } both('status'));

# load
compare('aas', 'load', ());
compare('aas', 'load of all processes that are not idle', '--scope', 'all', '--state', 'active,idle in transaction');
row('aas', 'peak of sessions', (map { $_->{peak_sessions} } @aas), $aas[1]{peak_sessions} - $aas[0]{peak_sessions}, 'a maximum, not a mean',
	abs($aas[1]{peak_sessions} - $aas[0]{peak_sessions}) <= 0.5 * max(map { $_->{peak_sessions} } @aas));
my @periods = map { (grep { $_->{period} eq '5m' } @$_)[0] } both('periods', '--until', $until, @filter);
my (undef, $error) = do {
	my ($x, $y) = map { (slots($_))[0]{'(none)'} } $extension, $recorded;
	my @last = (sort keys %$x)[ -int(min(300_000 / $ms, 0.9 * keys %$x)) .. -1 ];
	error_of(map { ($y->{$_} // $x->{$_}) - $x->{$_} } @last);
};
sampled('periods', 'load of the last 5 minutes', (map { $_->{avg_aas} } @periods), $periods[1]{avg_aas} - $periods[0]{avg_aas}, $error);
compare('timeline', 'load by class', '--by', 'wait_event_type');
compare('chart', 'load by class of foreground, as drawn', '--by', 'wait_event_type', '--scope', 'foreground');
my %without = (wait_event_type => 'compared as timeline', pid => 'as many keys as sessions',
	cpu => 'the server does not tell kinds of on-CPU activity: all is CPU*', plan_id => 'not queried');
compare('top', "by $_", '--by', $_) for grep { !$without{$_} } dimensions();
nothing('top', "by $_", $without{$_}) for qw(cpu plan_id);
nothing('top', 'by progress_command', 'not queried');
compare('compare', 'waits for locks by wait_event', '--by', 'wait_event', '--wait-event-type', 'Lock');

# samples of the same session and state must have the same columns in both; starts may
# differ by this many ms
sub alike
{
	my ($where, $one, $other, $coarse) = @_;
	my ($mine, $theirs) = map { [ rows($_, 'samples', @window, @filter, '--n', 'all') ] } $one, $other;
	my %seen = map { ("$_->{sample_time} $_->{pid}" => $_) } @$mine;
	my @same = grep { my $s = $seen{"$_->{sample_time} $_->{pid}"}; $s && ($s->{state_change} // '') eq ($_->{state_change} // '') } @$theirs;
	my @columns = grep { !/^(tick|weight_ms|cpu|wait_event.*|blocked_by|root_blocker|xmin_age|xid_age|plan_id|progress_.*|query_text|lock.*|via.*)$/ } sort keys %{ $same[0] // {} };
	my ($different, %differ) = (0);
	for my $sample (@same)
	{
		my $s = $seen{"$sample->{sample_time} $sample->{pid}"};
		my @of = grep { !equal($_, $s->{$_}, $sample->{$_}, $coarse) } @columns;
		$differ{$_}++ for @of;
		$different++ if @of;
	}
	row('samples', @same . " of one session in one slot and state, $where: " . join(', ', @columns), scalar(@same), @same - $different,
		(join ', ', map { "$_ $differ{$_}" } sort keys %differ) || 'none', $coarse ? "$coarse ms" : '0', @same && !%differ);
	return;
}

sub equal
{
	my ($column, $one, $other, $coarse) = @_;
	return 1 if ($one // '') eq ($other // '');
	return 0 unless $column =~ /^(query|xact)_start$/ && $one && $other;
	return abs(ms_of($one) - ms_of($other)) <= $coarse;
}

sub ms_of
{
	my ($y, $mon, $d, $h, $min, $s, $ms) = $_[0] =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)(?:\.(\d+))?Z$/ or die "error: no time: $_[0]\n";
	return 1000 * timegm($s, $min, $h, $d, $mon - 1, $y) + substr(($ms // 0) . '00', 0, 3);
}

# logs have exact starts. Sealed files have two ages, of the query and of the
# transaction, each rounded down by at most 999 ms (docs/format.md). The first query
# sampled of a transaction is chance.
alike('from logs', "$logs/tacho", "$logs/recorded", 0);
alike('from sealed files if they are sealed', $extension, $recorded, 1998);
my @spans = map { my %pids = map { ("$_->{pid} $_->{backend_start}" => 1) } grep { $_->{application} } @$_; scalar keys %pids } both('sessions', @window, @filter, '--n', 'all', '--backend-type', 'client backend');
row('sessions', 'client sessions that were met', @spans, $spans[1] - $spans[0], 'short ones may be missed', abs($spans[1] - $spans[0]) <= 2 + 0.02 * $spans[0]);
my @blocked = map { sum0(map { $_->{blocked_seconds} // 0 } grep { !$_->{level} } @$_) } both('blocking', @window, '--n', 'all');
my ($lock_a) = slots($extension, '--wait-event-type', 'Lock');
my ($lock_b) = slots($recorded, '--wait-event-type', 'Lock');
my (undef, $lock_error) = error_of(map { ($lock_b->{'(none)'}{$_} // 0) - ($lock_a->{'(none)'}{$_} // 0) } keys %{ $lock_a->{'(none)'} });
sampled('blocking', 'load that heads of queues hold up', (map { $_ / ($slots * $ms / 1000) } @blocked), ($blocked[1] - $blocked[0]) / ($slots * $ms / 1000), $lock_error);

# counters
my @whole = ('--since', $rest, '--until', $after);
my @counted = map { my %by = map { (join(' ', map { $_ // '' } @$_{qw(query_id database username toplevel)}) => $_) } grep { ($_->{username} // '') ne 'watcher' } @$_; \%by } both('statements-history', @whole, '--n', 'all', '--order-by', 'calls');
my @statements = grep { $counted[1]{$_} } keys %{ $counted[0] };
for my $counter (qw(calls rows shared_blks_hit shared_blks_read shared_blks_dirtied))
{
	my @different = grep { $counted[0]{$_}{$counter} != $counted[1]{$_}{$counter} } @statements;
	row('statements_history', "$counter of " . @statements . ' statements', (map { my $of = $_; sum0(map { $of->{$_}{$counter} } @statements) } @counted),
		scalar(@different) . ' statements differ', '0', !@different);
}
my @time = map { my $of = $_; sum0(map { $of->{$_}{total_exec_time} } @statements) } @counted;
row('statements_history', 'total_exec_time, ms: two clocks, one within the other', (map { sprintf '%.0f', $_ } @time), sprintf('%+.3f %%', 100 * ($time[1] / $time[0] - 1)), '1 %', abs($time[1] / $time[0] - 1) <= 0.01);
nothing('statements_history', 'CPU time, faults, percentiles', 'pg_stat_statements does not count them');
exact('latency_history', 'calls', map { my $of = $_; sum0(map { $of->{$_}{calls} } @statements) } @counted);
nothing('latency_history', 'bands of time', 'pg_stat_statements has no histogram');
my @server = map { my %by = map { ("$_->{metric} " . ($_->{object} // '') => $_) } @$_; \%by } both('server-history', @whole);
my @shared = grep { $server[1]{$_} } sort keys %{ $server[0] };
my @counters = grep { defined $server[0]{$_}{total} } @shared;
my @unequal = grep { my ($x, $y) = map { $_->{total} } $server[0]{$_}, $server[1]{$_}; abs($x - $y) > 0.01 * max(abs $x, abs $y) + 60 } @counters;
row('server_history', scalar(@counters) . ' counters: increase, within 1 % (each history has readings of its own, and the load of reading them)', scalar(@counters), @counters - @unequal,
	(join ', ', map { sprintf '%s %.0f %.0f', $_, $server[0]{$_}{total}, $server[1]{$_}{total} } @unequal) || 'none', '0', !@unequal);
my @missing = uniq(map { (split)[0] } grep { !$server[1]{$_} } sort keys %{ $server[0] });
nothing('server_history', join(', ', @missing), 'the server does not tell of its host') if @missing;
my @kinds = map { my %of; $of{ $_->{kind} }++ for @$_; join(', ', map { "$_ $of{$_}" } sort keys %of) || 'none' } both('markers', @window);
row('markers', 'kinds and numbers', @kinds, $kinds[0] eq $kinds[1] ? 'none' : 'see there', '0', $kinds[0] eq $kinds[1]);
my @metrics = map { join ', ', sort map { $_->{metric} =~ s/_\d+$//r } @$_ } both('summary', @window, @filter);
my @named = map { join ' ', uniq(split /, /) } @metrics;
row('summary', 'names of its lines', (map { scalar split } @named), $named[0] eq $named[1] ? 'none' : 'see there', '0', $named[0] eq $named[1]);
my @parts = map { join ', ', grep { length } map { /^## (.*)/ ? $1 : () } split /\n/, output('report', '--tape', $_, @window, '--format', 'markdown') } $extension, $recorded;
row('report', 'its parts', (map { scalar split /, / } @parts), $parts[0] eq $parts[1] ? 'none' : "$parts[0] / $parts[1]", '0', $parts[0] eq $parts[1]);
nothing('overhead', 'all', 'the extension alone has shared memory to look at; the recorder has /metrics');
printf "\n%s\n", $others ? "$others rows differ." : 'All rows agree.';
exit($others != 0);
