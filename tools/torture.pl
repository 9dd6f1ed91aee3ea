#!/usr/bin/perl
# usage: tools/torture.pl [-c] [-m MINUTES] [-s SEED]
#
# The demo's server under the demo's load, with its history on a small volume of
# its own (a loop device: root alone can do this). Faults come at random:
#   - processes are killed, stopped, and slow to die;
#   - the volume is filled or mounted again;
#   - the server is restarted or crashed;
#   - settings change;
#   - messages of 20 MB and texts in other encodings come in.
#
# With -c the postmaster is process 1, as in a container: then it adopts each process
# whose parent has ended.
#
# The run shows that
#   - the server was not harmed: no process ended by a signal that is not ours,
#     no PANIC;
#   - no statement of a client failed or took 10 s while the server should have
#     been up;
#   - ticks that were observed once are all there at the end, and every tick has
#     the two sessions that sleep all the time;
#   - between faults every second is covered, except ticks that status() counts as
#     missed;
#   - the history has the calls that a client counted, less at most the calls
#     of one tacho.statements_interval before each crash;
#   - every file can be read.
# The same SEED makes the same faults. The last line is "N passed, N failed".
# "make program" comes first; .demo of this repository is used.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../extension/test/perl";
use Getopt::Std;
use List::Util qw(sum0 max);
use POSIX ();
use TachoHold qw(hold hold_missing let_go);
use Time::HiRes qw(sleep time);
use Torture qw(as_server check check_calls check_log choose client counter end_children failed kill_children large_message passed run say_at wait_until);

my $interval = 5;    # tacho.statements_interval, seconds
my $calm = 12;       # between faults, seconds
my %opt = (m => 60, s => time() % 10000);
getopts('cm:s:', \%opt) && !@ARGV
  or die "usage: tools/torture.pl [-c] [-m MINUTES] [-s SEED]\n";
$> == 0 or die "error: only root can mount volumes\n";
die 'error: ' . hold_missing() . "\n" if hold_missing();

my $repo = abs_path(dirname($0) . '/..');
my ($demo, $bin, $dsn, $volume, $tape, $postgres);
my ($log, $query_id, @faults, @calms);
my %contained;    # with -c: process ids of the name space's own process and of the postmaster

# --- helpers

# The rows of a query, each as a string; or undef and the error.
sub ask
{
	my ($sql, $seconds) = @_;
	my $out = do {
		local $ENV{PGOPTIONS} = '-c statement_timeout=' . 1000 * ($seconds // 60);
		local $ENV{SQL} = $sql;
		qx("$bin/psql" -XAtq -v ON_ERROR_STOP=1 -d "$dsn" -c "\$SQL" 2>&1);
	};
	return (undef, $out) if $?;
	chomp $out;
	return $out;
}

sub status { my ($v) = ask("select value from tacho.status() where metric = '$_[0]'"); return $v // ''; }
sub moment { return sprintf 'to_timestamp(%.3f)', $_[0]; }

# --- clients, which continue when the server comes back

sub sleeper
{
	system("PGAPPNAME=torture-sleeper exec '$bin/psql' -Xq -d \"$dsn\" -c 'select pg_sleep(100000)' >/dev/null 2>&1");
	return;
}

sub play    # the demo's load, over and over
{
	system("'$repo/demo/load.sh' '$bin' \"$dsn\" >/dev/null 2>&1");
	return;
}

# --- the cluster

sub mount_volume
{
	run("mount -o loop '$demo/volume.img' '$volume'");
	return;
}

sub build
{
	local $ENV{TACHO_DEMO_SECONDS} = 6;
	run("cd '$repo' && demo/run.sh >/dev/null");
	$demo = abs_path("$repo/.demo");
	chomp($bin = qx(cat '$demo/bin'));
	chomp($dsn = qx('$repo/demo/run.sh' --dsn));
	chomp($postgres = qx('$repo/tools/as-server.sh' --user));
	($volume, $log) = ("$demo/volume", "$demo/data/server.log");
	$tape = "$volume/tape";
	mkdir $volume;
	run("truncate -s 1M '$demo/other.img' && truncate -s 192M '$demo/volume.img' && mkfs.ext4 -q -m 0 '$demo/volume.img'");
	mount_volume();
	run("chown $postgres '$volume'");
	for my $setting ("tacho.directory = '$tape'", 'tacho.sample_interval = 1000',
		"tacho.statements_interval = '${interval}s'", 'tacho.min_free_space = 4', "log_line_prefix = '%m [%p] %b '",
		'tacho.retention_size = 0', 'tacho.flush_interval = 1000')
	{
		my ($done, $why) = ask("alter system set $setting");
		defined $done or die "error: $setting: $why\n";
	}
	for my $database (q{latin1 encoding 'LATIN1'}, q{bytes encoding 'SQL_ASCII'})
	{
		my ($done, $why) = ask("create database $database template template0");
		defined $done or die "error: create database $database: $why\n";
	}
	restart('fast');
	return;
}

sub start_server
{
	# the last process of a killed server may still be ending
	for (1 .. 60)
	{
		return if $opt{c} ? start_as_first() : pg_ctl(qw(-w -l), $log, 'start') == 0;
		sleep 1;
	}
	die "error: the server does not start, see $log\n";
}

sub pg_ctl { return as_server("$bin/pg_ctl", '-s', '-D', "$demo/data", @_); }

# Starts the postmaster as process 1 of a name space. True if it accepts connections.
sub start_as_first
{
	my $pid = fork // die "error: fork: $!\n";
	if (!$pid)
	{
		open STDOUT, '>>', $log;
		open STDERR, '>&', \*STDOUT;
		exec qw(unshare --pid --fork --mount-proc), "$repo/tools/as-server.sh", "$bin/postgres", '-D', "$demo/data"
		  or POSIX::_exit(1);
	}
	for (1 .. 100)
	{
		sleep 0.2;
		last if waitpid($pid, POSIX::WNOHANG()) == $pid;
		my ($first) = children($pid);
		%contained = (space => $pid, postmaster => $first);
		return 1 if $first && defined((ask('select 1', 10))[0]);
	}
	%contained = ();
	return 0;
}

sub children
{
	my ($pid) = @_;
	open my $f, '<', "/proc/$pid/task/$pid/children" or return;
	return split ' ', <$f> // '';
}

sub stop_server
{
	my ($mode) = @_;
	return pg_ctl(qw(-w -t 120 -m), $mode, 'stop') if !%contained;
	kill { fast => 'INT', immediate => 'QUIT' }->{$mode}, $contained{postmaster};
	return !wait_until("a stop ($mode)", 120, \&has_ended);
}

# True if the contained server has ended, with all its processes.
sub has_ended
{
	return 0 if waitpid($contained{space}, POSIX::WNOHANG()) == 0;
	%contained = ();
	return 1;
}

sub restart
{
	check(stop_server($_[0]) == 0, "a stop ($_[0]) ends") or kill_postmaster();
	start_server();
	return;
}

sub postmaster
{
	return $contained{postmaster} if %contained;
	open my $f, '<', "$demo/data/postmaster.pid" or return;
	chomp(my $pid = <$f>);
	return $pid;
}

sub kill_postmaster
{
	kill 'KILL', postmaster() // return;
	wait_until('a killed server ends', 60, \&has_ended) if %contained;
	return;
}

# Processes of this server whose title or program matches.
sub processes
{
	my ($pattern) = @_;
	my $of = postmaster() // return;
	my (%parent, %title);
	for (qx(ps -eo pid=,ppid=,args=))
	{
		my ($pid, $ppid, $args) = /^\s*(\d+)\s+(\d+)\s+(.*)/ or next;
		($parent{$pid}, $title{$pid}) = ($ppid, $args);
	}
	return grep {
		my $at = $_;
		$at = $parent{$at} while $at > 1 && $at != $of && exists $parent{$at};
		$at == $of && $title{$_} =~ $pattern;
	} keys %title;
}

sub pause_processes
{
	my ($pattern, $seconds) = @_;
	my @pids = processes($pattern);
	kill 'STOP', @pids;
	sleep $seconds;
	kill 'CONT', @pids;
	return;
}

# --- faults. "gap": ticks may be missing; "crash": counters may be lost; "down":
# clients may be refused.

my @kinds = (
	{ name => 'the writer is killed', weight => 4, do => sub { kill 'KILL', processes(qr/^tacho tape-writer/) } },
	{ name => 'the writer is ended', weight => 2, do => sub { kill 'TERM', processes(qr/^tacho tape-writer/) } },
	{ name => 'the writer is stopped', weight => 3, gap => 1,
		do => sub { pause_processes(qr/^tacho tape-writer/, 1 + rand 20) } },
	{ name => 'the sampler is ended', weight => 2, gap => 1, do => sub { ask("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'tacho sampler'") } },
	{ name => 'the sampler is stopped', weight => 2, gap => 1, do => sub { pause_processes(qr/tacho sampler/, 1 + rand 15) } },
	{ name => 'the saver is ended', weight => 1, do => sub { kill 'TERM', processes(qr/tacho .*sav/) } },
	{ name => 'a reader is killed', weight => 3, do => \&kill_reader },
	{ name => 'a reader is slow to die', weight => 3, do => \&slow_reader },
	{ name => 'the writer is slow to die', weight => 2, gap => 1, crash => 1, do => \&slow_writer },
	{ name => 'a message of 20 MB', weight => 2, do => sub { large_message("$bin/psql", $dsn, $demo) } },
	{ name => 'texts in other encodings', weight => 2, do => \&other_encodings },
	{ name => 'settings change', weight => 2, do => \&change_settings },
	{ name => 'the volume is full', weight => 3, gap => 1, do => \&fill },
	{ name => 'the volume is mounted elsewhere', weight => 2, gap => 1, down => 1, do => \&remount },
	{ name => 'restart, fast', weight => 2, gap => 1, down => 1, do => sub { restart('fast') } },
	{ name => 'restart, immediate', weight => 2, gap => 1, down => 1, crash => 1, do => sub { restart('immediate') } },
	{ name => 'a backend is killed', weight => 2, gap => 1, down => 1, crash => 1, signals => 1, do => \&kill_backend },
	{ name => 'the sampler is killed', weight => 1, gap => 1, down => 1, crash => 1, signals => 1,
		do => sub { kill 'KILL', processes(qr/tacho sampler/) } },
	{ name => 'the postmaster is killed', weight => 1, gap => 1, down => 1, crash => 1,
		do => sub { kill_postmaster(); sleep 1; start_server() } },
);

sub kill_reader
{
	my $pid = fork // die "error: fork: $!\n";
	if (!$pid)
	{
		my ($rows) = ask("do \$\$ begin for i in 1..200 loop begin perform tacho.top('query_id', by => 'wait_event');
			exception when others then null; end; end loop; end \$\$; select 'alive'");
		POSIX::_exit(defined $rows && $rows eq 'alive' ? 0 : 1);
	}
	my $killed = 0;
	my $end = time + 30;
	while ($killed < 3 && time < $end)
	{
		$killed += kill 'KILL', processes(qr/^tacho query top/);
		sleep 0.05;
	}
	waitpid $pid, 0;
	check($? == 0, "a session whose reader is killed ($killed times) goes on");
	return;
}

# A reader's program is held, its backend is terminated, then it ends by a signal.
sub slow_reader
{
	my $again = q{do $$ begin loop perform count(*) from tacho.samples(since => '2000-01-01', n => 10000000); end loop; end $$};
	my $pid = fork // die "error: fork: $!\n";
	if (!$pid) { $ENV{PGAPPNAME} = 'torture-reader'; ask($again); POSIX::_exit(0); }
	my $held;
	my $end = time + 30;
	($held) = grep { defined } map { hold($_) } processes(qr/^tacho query samples/) while !$held && time < $end;
	# on a busy machine each one may have ended before it could be held
	say_at($held ? 'the program is held' : 'no program was held within 30 s');
	ask(q{select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'torture-reader'});
	waitpid $pid, 0;
	wait_until('the session of a reader that is slow to die ends', 30, sub {
		my ($n) = ask(q{select count(*) from pg_stat_activity where application_name = 'torture-reader'});
		return ($n // '') eq '0';
	});
	ends_by_signal($held) if $held;
	return;
}

# The writer is held, its sampler is terminated, then the writer ends by a signal.
# Counters of frames in its pipe are lost, because no other process has them.
sub slow_writer
{
	my ($held) = grep { defined } map { hold($_) } processes(qr/^tacho tape-writer/);
	check($held, 'the writer is held') or return;
	ask("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'tacho sampler'");
	sleep 1 + rand 10;
	ends_by_signal($held);
	return;
}

sub ends_by_signal
{
	my ($pid) = @_;
	kill 'KILL', $pid;
	let_go($pid);
	wait_until('a process that was held ends', 30, sub { !-e "/proc/$pid" });
	return;
}

# Texts that this database cannot show must not stop it from showing the others.
sub other_encodings
{
	for my $database (qw(latin1 bytes))
	{
		(my $to = $dsn) =~ s/dbname=\w+/dbname=$database/;
		local $ENV{PGCLIENTENCODING} = $database eq 'latin1' ? 'LATIN1' : 'SQL_ASCII';
		local $ENV{SQL} = sprintf qq{select 1 as "gr\xf6\xdfe %d"}, rand 1e9;
		system("'$bin/psql' -Xq -o /dev/null -d \"$to\" -c \"\$SQL\" 2>/dev/null");
	}
	my ($texts, $why) = ask('select count(query) from tacho.statements(true)');
	check(defined $texts, 'statements are shown', $why);
	return;
}

sub change_settings
{
	for ('work_mem = ' . int(1000 + rand 5000), 'tacho.max_readers = ' . int(4 + rand 8), 'log_min_duration_statement = ' . int(5000 + rand 1000))
	{
		my ($done, $why) = ask("alter system set $_");
		check(defined $done, "alter system set $_", $why);
	}
	ask('select pg_reload_conf()');
	sleep 1 + rand 3;
	return;
}

sub fill
{
	my $full = "$volume/full";
	my ($free) = qx(df --output=avail -k '$volume' | tail -n 1) =~ /(\d+)/;
	# sometimes leaves less space than the limit, which pauses recording before the disk
	# is full
	my $leave = rand() < 0.5 ? 0 : int rand 4000;
	system("fallocate -l " . max(1, $free - $leave) . "K '$full' 2>/dev/null");
	system("dd if=/dev/zero of='$full.2' bs=4k 2>/dev/null") if !$leave;
	sleep 5 + rand 25;
	unlink $full, "$full.2";
	return;
}

sub remount
{
	check(stop_server('fast') == 0, 'a stop (fast) ends') or kill_postmaster();
	wait_until('the volume is let go', 30, sub { system("umount '$volume' 2>/dev/null") == 0 });
	# another device gets the number that this one had
	chomp(my $other = qx(losetup -f --show '$demo/other.img'));
	mount_volume();
	run("losetup -d '$other'");
	start_server();
	return;
}

sub kill_backend
{
	my ($pid) = ask("select pid from pg_stat_activity where backend_type = 'client backend' and application_name in ('shop', 'reports', 'checkout', 'torture-sleeper') order by random() limit 1");
	kill 'KILL', $pid if $pid;
	return;
}

# Waits until recording continues: ticks since the given time exist.
sub recovered
{
	my $since = moment($_[0]);
	return wait_until('recording goes on', 120, sub {
		my ($n) = ask("select ticks_observed >= 3 from tacho.aas(since => $since, until => now() + interval '1 s', bucket => '1 day')", 10);
		return defined $n && $n eq 't';
	});
}

# Observed ticks of a window, of all sessions, and seconds of the sleepers.
sub observed
{
	my ($since, $until) = @_;
	my ($all, $why) = ask(sprintf q{select ticks_observed, coverage_pct,
		(select round(backend_seconds) from tacho.aas(since => %1$s, until => %2$s, bucket => '1 day', scope => 'all', application => 'torture-sleeper'))
		from tacho.aas(since => %1$s, until => %2$s, bucket => '1 day')}, moment($since), moment($until));
	check(0, 'a question is answered', $why) if !defined $all;
	return $all // '';
}

sub seconds_of_calm
{
	my ($since) = @_;
	my $missed = status('ticks_missed');
	sleep $calm + rand 5;
	# the window ends before frames that may still be on their way
	my ($from, $to) = (int($since) + 2, int(time) - 3);
	return if $to - $from < 4;
	my $seen = observed($from, $to);
	push @calms, { since => $from, until => $to, seen => $seen };
	my ($ticks, undef, $seconds) = split /\|/, $seen;
	# a machine too busy for a tick is no fault; status() counts the tick as missed
	$missed = status('ticks_missed') - $missed;
	check($to - $from - $ticks <= $missed, sprintf('%d s of calm are covered, %d ticks missed', $to - $from, $missed), $seen);
	check($seconds == 2 * $ticks, 'both sleepers are in every tick', $seen);
	return;
}

sub one_fault
{
	my $kind = choose(@kinds);
	say_at($kind->{name});
	my %fault = (%$kind, since => time);
	$kind->{do}->();
	if ($kind->{down}) { wait_until('the server answers', 120, sub { my ($x) = ask('select 1', 10); defined $x }); }
	recovered(time);
	wait_until('the sleepers are back', 30, sub {
		my ($n) = ask("select count(*) from pg_stat_activity where application_name = 'torture-sleeper' and state = 'active'");
		return ($n // '') eq '2';
	});
	$fault{until} = time;
	push @faults, \%fault;
	seconds_of_calm($fault{until});
	return;
}

# --- checks at the end

# True if calls of this time may be missing: since the last record before a crash.
sub may_lack
{
	my ($at) = @_;
	return grep { $_->{crash} && $at <= $_->{until} && $at >= $_->{since} - $interval - 5 } @faults;
}

sub check_history
{
	my @changed = grep { observed($_->{since}, $_->{until}) ne $_->{seen} } @calms;
	check(!@changed, scalar(@calms) . ' calm windows say what they said first',
		join '; ', map { "$_->{since}: $_->{seen}" } @changed);
	check(system("'$bin/tacho' inspect '$tape' >'$demo/inspect.log' 2>&1") == 0, 'every file can be read', qx(tail -n 3 '$demo/inspect.log'));
	my ($gaps) = ask(q{select count(*) from tacho.markers(since => '2000-01-01') where kind = 'gap'});
	say_at("$gaps gaps are marked");
	return;
}

sub finish
{
	end_children(sub {
		ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'torture-%'") if $dsn;
	});
	return;
}

$SIG{INT} = $SIG{TERM} = sub { exit 1 };
END {
	my $status = $?;
	kill_children();
	if ($volume && failed() == 0 && $status == 0)
	{
		stop_server('immediate');
		system("umount -l '$volume'");
		system("'$repo/demo/run.sh' --stop");
	}
	elsif ($demo)
	{
		my $first = %contained ? "kill $contained{postmaster}, " : '';
		print "The server stays: $demo. To end it: ${first}umount $volume, make demo-stop\n";
	}
	$? = $status;
}

STDOUT->autoflush(1);
say_at("$opt{m} minutes, seed $opt{s}");
srand $opt{s};
build();
my $calls = "$demo/calls";
client(\&sleeper) for 1 .. 2;
client(sub { counter("$bin/psql", $dsn, $calls, 0.02, 0.3) });
client(\&play);
recovered(time);
wait_until('the client counts', 30, sub {
	($query_id) = ask(q{select queryid from tacho.statements(true) where query = 'select length($1)' limit 1});
	return $query_id;
});
seconds_of_calm(time);
my $end = time + 60 * $opt{m};
one_fault() while time < $end;
finish();
sleep 3 * $interval;
check_log($log, sum0(map { $_->{signals} // 0 } @faults));
my ($recorded, $why) = ask("select sum(calls) from tacho.statements_history(since => '2000-01-01', query_id => '$query_id')");
check_calls($calls, \@faults, \&may_lack, $recorded || 0, $why);
check_history();
my %count;
$count{ $_->{name} }++ for @faults;
say_at("$count{$_} x $_") for sort keys %count;
printf "%d passed, %d failed\n", passed(), failed();
exit(failed() != 0);
