# Shared by the long runs with random faults: lines with their time, counted checks,
# child processes, random faults by weight.
package Torture;

use strict;
use warnings;
use Exporter 'import';
use IPC::Open2;
use IO::Handle;
use List::Util qw(sum0);
use POSIX qw(strftime);
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(as_server check check_calls check_log choose client counter end_children failed kill_children large_message passed run say_at wait_until);

my ($passed, $failed) = (0, 0);
my @children;

sub say_at { printf "%s  %s\n", strftime('%H:%M:%S', gmtime), "@_"; return }

sub passed { return $passed }
sub failed { return $failed }

# Prints the result of a check, and why it failed.
sub check
{
	my ($good, $name, $why) = @_;
	$good ? $passed++ : $failed++;
	say_at(($good ? 'ok      ' : 'NOT OK  ') . $name . ($good || !defined $why ? '' : ": $why"));
	return $good;
}

sub run { system(@_) == 0 or die "error: @_ failed ($?)\n"; return }

# Runs as the user that servers run as; the exit status.
sub as_server { return system((__FILE__ =~ s{[^/]*$}{}r) . 'as-server.sh', @_) }

sub wait_until
{
	my ($what, $seconds, $true) = @_;
	my $end = time + $seconds;
	while (time < $end)
	{
		return 1 if $true->();
		sleep 0.2;
	}
	return check(0, $what, "not within $seconds s");
}

# A child that runs $body again and again until it is killed.
sub client
{
	my ($body) = @_;
	my $pid = fork // die "error: fork: $!\n";
	if ($pid) { push @children, $pid; return; }
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = sub { POSIX::_exit(0) };
	while (1) { $body->(); sleep 0.2; }
}

# Calls the server in a loop, with a pause after each call and one while there is no
# connection. Writes a line per call to a file: the time when it was sent, and when it
# was answered ("-": never).
sub counter
{
	my ($psql, $dsn, $file, $pause, $refused) = @_;
	local @ENV{qw(PGAPPNAME TORTURE_PSQL TORTURE_DSN)} = ('torture-counter', $psql, $dsn);
	my $pid = open2(my $from, my $to, 'exec "$TORTURE_PSQL" -XAtq -v ON_ERROR_STOP=1 -d "$TORTURE_DSN" 2>/dev/null') or return;
	open my $out, '>>', $file or die "error: $file: $!\n";
	$_->autoflush(1) for $out, $to;
	# a connection that fails is no call
	print $to "select 'there';\n";
	if (defined(my $line = <$from>))
	{
		while (1)
		{
			my $sent = time;
			print $to "select length('torture');\n" or last;
			my $answer = <$from>;
			printf $out "%.3f %s\n", $sent, defined $answer ? sprintf('%.3f', time) : '-';
			last if !defined $answer;
			sleep $pause;
		}
	}
	else { printf $out "%.3f refused\n", time; sleep $refused; }
	close $to;
	waitpid $pid, 0;
	return;
}

sub kill_children { kill 'KILL', @children if @children; return }

# Sends four thousand new statements and one of 20 MB in one message, by way of a
# file in $directory.
sub large_message
{
	my ($psql, $dsn, $directory) = @_;
	my $file = "$directory/message.sql";
	my $name = int rand 1e9;
	open my $f, '>', $file or die "error: $file: $!\n";
	print $f map({ "select $_ as c${name}_$_ \\; " } 1 .. 4000), "select length('", 'x' x 20_000_000, "');\n";
	close $f or die "error: $file: $!\n";
	my $failed = system("'$psql' -Xq -v ON_ERROR_STOP=1 -o /dev/null -d \"$dsn\" -f '$file' 2>'$directory/message.log'");
	check(!$failed, 'a message of 4,001 statements is answered', qx(head -n 1 '$directory/message.log'));
	unlink $file;
	return;
}

# Ends the clients; $meanwhile ends the work that they wait for.
sub end_children
{
	my ($meanwhile) = @_;
	kill 'TERM', @children if @children;
	$meanwhile->();
	waitpid $_, 0 for splice @children;
	return;
}

# The log of a server has no PANIC, and no more processes ended by a signal than this
# run has killed.
sub check_log
{
	my ($log, $ours) = @_;
	open my $f, '<', $log or die "error: $log: $!\n";
	my @lines = <$f>;
	# a process that we kill ends the others by quickdie(), not by a signal
	my @signals = grep { /was terminated by signal/ } @lines;
	check(@signals <= $ours, "no process ended by a signal but $ours of ours", join '', @signals);
	my @panic = grep { /PANIC:/ } @lines;
	check(!@panic, 'no PANIC', join '', @panic);
	return;
}

# Checks the file of counter(). Each call was answered, except in outages (faults that
# are "down"). The history has the answered calls, except at most those at times for
# which $lost is true, and no more than were sent.
sub check_calls
{
	my ($file, $faults, $lost, $recorded, $why) = @_;
	my $outage = sub { my ($at) = @_; return grep { $_->{down} && $at >= $_->{since} - 1 && $at <= $_->{until} + 1 } @$faults; };
	open my $f, '<', $file or die "error: $file: $!\n";
	my ($answered, $sent, $maylack, @bad) = (0, 0, 0);
	while (<$f>)
	{
		my ($at, $end) = split;
		my $bad = $end !~ /^\d/ || $end - $at > 10;
		push @bad, $_ if $bad && !$outage->($at) && !($end =~ /^\d/ && $outage->($end));
		next if $end eq 'refused';
		$sent++;
		next if $end eq '-';
		$answered++;
		$maylack++ if $lost->($end);
	}
	check(!@bad, "$answered statements of a client while the server was up", scalar(@bad) . ' failed or took 10 s: ' . ($bad[0] // ''));
	my $least = $answered - $maylack;
	check($recorded >= $least && $recorded <= $sent,
		"calls in the history: $recorded of $answered, $maylack of them near faults that lose some", $why // "from $least to $sent are right");
	return;
}

# Chooses one element at random, by weight.
sub choose
{
	my @kinds = @_;
	my $at = rand sum0(map { $_->{weight} } @kinds);
	for (@kinds) { $at -= $_->{weight}; return $_ if $at < 0; }
	return $kinds[-1];
}

1;
