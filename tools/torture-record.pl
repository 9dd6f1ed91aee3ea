#!/usr/bin/perl
# usage: tools/torture-record.pl [-m MINUTES] [-s SEED]
#
# Tests tacho record on a stock server under a small mixed load. The recorder connects
# through a proxy of ours and PgBouncer in transaction mode, as a role with pg_monitor.
# The history is on a small volume (tmpfs: root alone can do this). Faults come at
# random:
#   - the recorder is killed or ended;
#   - the server is restarted or crashes, or its sessions are ended;
#   - the pooler is paused, stopped or killed;
#   - bytes are held, delayed or cut, connections are refused;
#   - rights are revoked, settings of server and role are changed;
#   - messages of 20 MB and statements in other encodings are run;
#   - the volume is filled.
#
# The run shows that
#   - recording continues each time, and a marker has a fitting reason;
#   - the recorder ends only on request, and then at once;
#   - no second has two ticks, and every hole of more than 3 s in the whole history
#     has a marker;
#   - the history has the calls that a client counted, less at most the calls
#     around crashes of the server and ends of the recorder;
#   - the server was not harmed: no PANIC, no process ended by a signal;
#   - no statement of a client failed or took 10 s while the server should have
#     been up;
#   - the recorder uses at most two sessions, one of them for texts;
#   - every file can be read.
# The same SEED makes the same faults. The last line is "N passed, N failed".
#
# Environment: PG_CONFIG; TACHO_PROGRAM (target/release/tacho, tacho-record beside
# it). The programs are copied, so that they can be built again during the run.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../extension/test/perl";
use Getopt::Std;
use JSON::PP qw(decode_json);
use List::Util qw(sum0 max min);
use POSIX qw(strftime);
use TachoProxy;
use Time::HiRes qw(sleep time);
use Torture qw(as_server check check_calls check_log choose client counter end_children failed kill_children large_message passed run say_at wait_until);

my $interval = 5;    # between two records of statements, seconds
my $calm = 12;       # between faults, seconds
my $hole = 3;        # seconds without a tick that need no reason
my %opt = (m => 60, s => time() % 10000);
getopts('m:s:', \%opt) && !@ARGV
  or die "usage: tools/torture-record.pl [-m MINUTES] [-s SEED]\n";
$> == 0 or die "error: only root can mount volumes\n";

my $repo = abs_path("$FindBin::RealBin/..");
my $begin = time;
my ($place, $bin, $dsn, $tape, $log, $tacho, $proxy, $recorder, $query_id, @faults);

# --- the server, its pooler, the recorder

# The rows of a query, each as a string; or undef and the error.
sub ask
{
	my ($sql, $seconds, $where) = @_;
	my $out = do {
		local $ENV{PGCONNECT_TIMEOUT} = 10;
		local $ENV{PGOPTIONS} = $where ? '' : '-c statement_timeout=' . 1000 * ($seconds // 60);
		local $ENV{SQL} = $sql;
		my $to = $where // $dsn;
		qx("$bin/psql" -XAtq -v ON_ERROR_STOP=1 -d "$to" -c "\$SQL" 2>&1);
	};
	return (undef, $out) if $?;
	chomp $out;
	return $out;
}

sub must { my ($sql) = @_; my ($out, $why) = ask($sql); defined $out or die "error: $sql: $why\n"; return $out; }

sub pooler { my ($order) = @_; return ask($order, 10, "host=$place/run port=6432 dbname=pgbouncer user=admin"); }

sub write_file
{
	my ($name, @lines) = @_;
	open my $f, '>', "$place/$name" or die "error: $place/$name: $!\n";
	print $f "$_\n" for @lines;
	close $f or die "error: $place/$name: $!\n";
	return;
}

sub build
{
	my $program = $ENV{TACHO_PROGRAM} // ($ENV{CARGO_TARGET_DIR} // "$repo/target") . '/release/tacho';
	$place = tempdir('/var/tmp/tacho-torture-record.XXXXXX');
	chmod 0755, $place;
	mkdir "$place/$_" for qw(bin data run volume);
	run('cp', $program, "$program-record", "$place/bin");
	$tacho = "$place/bin/tacho";
	chomp($bin = qx("\${PG_CONFIG:-pg_config}" --bindir));
	chomp(my $user = qx('$repo/tools/as-server.sh' --user));
	chmod 0700, "$place/data";
	run('chown', $user, "$place/data", "$place/run");
	# the writer leaves 1,024 MB free
	run(qw(mount -t tmpfs -o), 'size=1200M,mode=700', 'tmpfs', "$place/volume");
	$tape = "$place/volume/tape";
	($dsn, $log) = ("host=$place/run port=5432 user=postgres dbname=postgres", "$place/data/server.log");
	as_server('sh', '-c', "'$bin/initdb' -D '$place/data' -U postgres -A trust -N --locale=C -E UTF8 >/dev/null") == 0
	  or die "error: initdb failed\n";
	write_file('settings', "listen_addresses = ''", "unix_socket_directories = '$place/run'", 'shared_buffers = 32MB',
		"shared_preload_libraries = 'pg_stat_statements'", 'compute_query_id = on', 'fsync = off', "log_line_prefix = '%m [%p] '");
	as_server('sh', '-c', "cat '$place/settings' >>'$place/data/postgresql.conf'") == 0 or die "error: no settings\n";
	start_server();
	must($_) for 'create extension pg_stat_statements', 'create role watcher login', 'grant pg_monitor to watcher',
	  'create table queue(id int primary key, n int)', 'insert into queue values (1, 0)',
	  q{create database latin1 encoding 'LATIN1' template template0}, q{create database bytes encoding 'SQL_ASCII' template template0};
	run("'$bin/pgbench' -i -q -s 2 '$dsn' >/dev/null 2>&1");
	write_file('users', '"watcher" ""', '"admin" ""', '"postgres" ""');
	write_file('pgbouncer.ini', '[databases]', "postgres = host=$place/run port=5432", '[pgbouncer]', 'listen_port = 6432',
		"unix_socket_dir = $place/run", 'auth_type = trust', "auth_file = $place/users", 'admin_users = admin',
		'pool_mode = transaction', 'default_pool_size = 3', 'server_login_retry = 1', "pidfile = $place/run/pooler",
		"logfile = $place/run/pooler.log");
	start_pooler();
	$proxy = TachoProxy->start("$place/run/.s.PGSQL.6432");
	start_recorder();
	return;
}

sub start_server
{
	# the last process of a killed server may still be ending
	for (1 .. 60)
	{
		return if as_server("$bin/pg_ctl", qw(-s -w -D), "$place/data", '-l', $log, 'start') == 0;
		sleep 1;
	}
	die "error: the server does not start, see $log\n";
}

sub restart
{
	my ($how) = @_;
	check(as_server("$bin/pg_ctl", qw(-s -w -t 120 -D), "$place/data", '-m', $how, 'stop') == 0, "a stop ($how) ends");
	sleep rand 8;
	start_server();
	return;
}

sub start_pooler
{
	as_server('sh', '-c', "rm -f '$place/run/pooler'; PATH=\$PATH:/usr/sbin exec pgbouncer -d -q '$place/pgbouncer.ini'") == 0
	  or die "error: the pooler does not start\n";
	return;
}

sub signal_pooler
{
	open my $f, '<', "$place/run/pooler" or return;
	kill $_[0], <$f> =~ /(\d+)/;
	return;
}

sub start_recorder
{
	$recorder = fork // die "error: fork: $!\n";
	return if $recorder;
	open STDERR, '>>', "$place/recorder.log";
	open STDOUT, '>&', \*STDERR;
	exec "$place/bin/tacho-record", 'host=127.0.0.1 port=' . $proxy->port . ' dbname=postgres user=watcher', '--tape', $tape,
	  '--statements-interval', $interval * 1000, '--flush-interval', 1000
	  or POSIX::_exit(1);
}

# Ends the recorder and starts another one; returns the exit status.
sub end_recorder
{
	my ($signal) = @_;
	kill $signal, $recorder;
	my $ended = wait_until('the recorder ends', 30, sub { waitpid($recorder, POSIX::WNOHANG()) == $recorder });
	my $status = $?;
	if (!$ended) { kill 'KILL', $recorder; waitpid $recorder, 0; }
	sleep rand 6;
	start_recorder();
	return $status;
}

# --- clients, which continue when the server comes back

sub quietly { my ($name, $command) = @_; system("PGAPPNAME=torture-$name exec $command >/dev/null 2>&1"); return; }

# Waits for a lock that an idle transaction holds.
sub locker
{
	quietly('locker', "'$bin/psql' -Xq -d '$dsn' -c 'begin' -c 'update queue set n = n + 1' -c '\\! sleep 20' -c 'commit'");
	return;
}

sub load
{
	client(sub { quietly('sleeper', "'$bin/psql' -Xq -d '$dsn' -c 'select pg_sleep(100000)'") }) for 1 .. 2;
	client(sub { counter("$bin/psql", $dsn, "$place/calls", 0.2, 0.5) });
	client(\&locker) for 1 .. 2;
	my $pooled = "host=$place/run port=6432 dbname=postgres user=postgres";
	client(sub { quietly('bench', "'$bin/pgbench' -n -c 2 -R 4 -T 60 '$_'"); sleep 1 }) for $dsn, $pooled;
	return;
}

# --- the history

sub rows
{
	my ($command, @arguments) = @_;
	open my $from, '-|', 'sh', '-c', 'exec "$0" "$@" 2>/dev/null', $tacho, $command, '--tape', $tape, '--json', @arguments
	  or die "error: $tacho: $!\n";
	my $out = do { local $/; <$from> };
	close $from;
	return $? || !length $out ? () : @{ decode_json($out) };
}

sub stamp { my ($at) = @_; return strftime('%Y-%m-%dT%H:%M:%S', gmtime $at) . sprintf '.%03dZ', 1000 * ($at - int $at); }

# Time from an answer, in seconds since 1970.
sub moment
{
	my ($text) = @_;
	my @parts = ($text // '') =~ /^(\d+)-(\d+)-(\d+)[T ](\d+):(\d+):(\d+(?:\.\d+)?)/ or return;
	require Time::Local;
	return Time::Local::timegm_modern(0, $parts[4], $parts[3], $parts[2], $parts[1] - 1, $parts[0]) + $parts[5];
}

# Seconds of a window with the number of their ticks: [second, ticks].
sub seconds
{
	my ($since, $until) = @_;
	my @rows = rows('timeline', '--since', stamp($since), '--until', stamp($until), '--bucket', '1s');
	return map { [ moment($_->{bucket_start}), $_->{ticks_observed} // 0 ] } @rows;
}

# Holes of a window that need a reason: [first second, end].
sub holes
{
	my ($since, $until) = @_;
	my (@holes, $from);
	for (seconds($since, $until), [ int $until, 1 ])
	{
		my ($second, $ticks) = @$_;
		if (!$ticks) { $from //= $second; next; }
		push @holes, [ $from, $second ] if defined $from && $second - $from > $hole;
		undef $from;
	}
	return @holes;
}

sub markers { return rows('markers', '--since', stamp($begin - 60), '--until', stamp(time + 60)); }

# Markers that explain a hole: a gap that spans it, or a begin at its end.
sub reasons
{
	my ($hole, @markers) = @_;
	my ($from, $to) = @$hole;
	return grep {
		my ($at, $since, $until) = map { moment($_) } @$_{qw(marker_time period_start period_end)};
		$_->{kind} eq 'gap' ? ($since // $at) <= $from + 2 && ($until // $at) >= $to - 2
		  : $_->{kind} =~ /start/ && $at >= $from - 2 && $at <= $to + 2
	} @markers;
}

sub observed { my ($since) = @_; return sum0(map { $_->[1] } seconds($since, time + 1)); }

# --- faults. "down": clients may be refused; "lost": counters may be lost; "gap":
# pattern of the marker if there is a hole.

my $silence = qr/did not answer|did not connect|timeout|timed out/;
my $broken = qr/$silence|could not connect|connection|server conn|closed|answered after|was delayed/;
my $restarted = qr/$broken|shut|server restarted|starting up|terminating|recovery/;

my @kinds = (
	{ name => 'the recorder is killed', weight => 3, lost => 1, gap => qr/did not run|recorder started/, do => sub { end_recorder('KILL') } },
	{ name => 'the recorder is ended', weight => 2, lost => 1, gap => qr/did not run|recorder st/,
		do => sub { my $status = end_recorder('TERM'); check($status == 0, 'SIGTERM ends the recorder with 0', $status) } },
	{ name => 'restart, fast', weight => 2, down => 1, gap => $restarted, do => sub { restart('fast') } },
	{ name => 'restart, immediate', weight => 2, down => 1, lost => 1, gap => $restarted, do => sub { restart('immediate') } },
	{ name => 'the pooler is paused', weight => 2, gap => qr/$silence|answered after/,
		do => sub { pooler('PAUSE'); sleep 2 + rand 15; pooler('RESUME') } },
	{ name => 'the pooler is stopped', weight => 2, gap => qr/$silence|answered after/,
		do => sub { signal_pooler('STOP'); sleep 2 + rand 15; signal_pooler('CONT') } },
	{ name => 'the pooler is killed', weight => 1, gap => $broken,
		do => sub { signal_pooler('KILL'); sleep rand 10; start_pooler() } },
	{ name => 'bytes are held', weight => 3, gap => $broken, do => sub { meanwhile(2 + rand 15, 'stall') } },
	{ name => 'bytes are delayed', weight => 2, gap => $broken, do => sub { meanwhile(5 + rand 15, 'delay', int 100 + rand 2000) } },
	{ name => 'bytes come one by one', weight => 2, gap => $broken, do => sub { meanwhile(5 + rand 15, 'trickle') } },
	{ name => 'an answer is cut', weight => 2, gap => $broken, do => sub { meanwhile(3 + rand 5, 'cut', int rand 1000) } },
	{ name => 'connections are refused', weight => 2, gap => $broken, do => sub { meanwhile(2 + rand 10, 'refuse') } },
	{ name => "the recorder's session is ended", weight => 2, gap => $broken,
		do => sub { ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'watcher'") } },
	{ name => 'the role may not log in', weight => 2, gap => qr/not permitted to log in|login failed|$broken/,
		do => sub { by_role('nologin', 'login', 1) } },
	{ name => 'a text has bytes of another encoding', weight => 1, gap => $broken, do => \&other_encoding },
	{ name => 'a message of 20 MB', weight => 2, gap => $broken, do => sub { large_message("$bin/psql", $dsn, $place); sleep 2 * $interval } },
	{ name => 'the role has other settings', weight => 2, gap => $broken, do => \&other_settings },
	{ name => 'settings of the server change', weight => 2, gap => $broken, do => \&change_settings },
	{ name => 'the role has no rights', weight => 2, gap => qr/hidden|$broken/,
		do => sub { must('revoke pg_monitor from watcher'); sleep 5 + rand 15; must('grant pg_monitor to watcher') } },
	{ name => 'the volume is full', weight => 3, gap => $broken, do => \&fill },
);

sub meanwhile
{
	my ($seconds, @how) = @_;
	$proxy->set(@how);
	sleep $seconds;
	$proxy->set('pass');
	return;
}

sub by_role
{
	my ($one, $other) = @_;
	must("alter role watcher $one");
	ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'watcher'");
	sleep 2 + rand 10;
	must("alter role watcher $other");
	return;
}

# Settings that change the form of values, for the recorder's next sessions.
my %shown = (TimeZone => [qw(Asia/Kathmandu America/St_Johns UTC)], DateStyle => [ 'SQL, DMY', 'German', 'Postgres, MDY' ],
	IntervalStyle => [qw(sql_standard iso_8601 postgres_verbose)], extra_float_digits => [ -15, 0, 3 ], bytea_output => [qw(escape hex)]);

sub other_settings
{
	must("alter role watcher set $_ = '" . $shown{$_}[ rand @{ $shown{$_} } ] . "'") for sort keys %shown;
	ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'watcher'");
	sleep 2 * $interval;
	return;
}

sub change_settings
{
	must($_) for 'alter system set work_mem = ' . int(1000 + rand 5000), 'alter system set log_min_duration_statement = ' . int(5000 + rand 1000);
	must('select pg_reload_conf()');
	sleep 2 * $interval;
	return;
}

# Statements that pg_stat_statements cannot convert, and others that it can.
sub other_encoding
{
	for my $database (qw(latin1 bytes))
	{
		(my $to = $dsn) =~ s/dbname=\w+/dbname=$database/;
		local $ENV{PGCLIENTENCODING} = $database eq 'latin1' ? 'LATIN1' : 'SQL_ASCII';
		ask(sprintf(qq{select 1 as "gr\xf6\xdfe %d"}, rand 1e9), 10, $to);
	}
	sleep 5 + rand 10;
	return;
}

sub fill
{
	my $full = "$place/volume/full";
	my ($free) = qx(df --output=avail -k '$place/volume' | tail -n 1) =~ /(\d+)/;
	# sometimes leaves less space than the writer's limit, else none
	my $leave = rand() < 0.5 ? 0 : int rand 1_000_000;
	system("fallocate -l " . max(1, $free - $leave) . "K '$full' 2>/dev/null");
	system("dd if=/dev/zero of='$full.2' bs=4k 2>/dev/null") if !$leave;
	sleep 5 + rand 25;
	unlink $full, "$full.2";
	return;
}

sub one_fault
{
	my $kind = choose(@kinds);
	say_at($kind->{name});
	my %fault = (%$kind, since => time);
	$kind->{do}->();
	if ($kind->{down}) { wait_until('the server answers', 120, sub { defined((ask('select 1', 10))[0]) }); }
	my $over = time;
	wait_until('recording goes on', 180, sub { sleep 0.5; observed($over) >= 3 });
	$fault{until} = time;
	push @faults, \%fault;
	check(waitpid($recorder, POSIX::WNOHANG()) == 0, 'the recorder goes on') or start_recorder();
	sleep $calm + rand 5;
	my @told = markers();
	for my $hole (holes(int($fault{since}) - 1, int $fault{until}))
	{
		my @reasons = reasons($hole, @told);
		my $found = join ', ', map { "$_->{kind}: $_->{detail}" } @reasons;
		check(scalar(grep { $_->{detail} =~ $kind->{gap} } @reasons),
			sprintf('%d s without a tick: %s', $hole->[1] - $hole->[0], substr $found, 0, 120),
			$found || 'no marker from ' . stamp($hole->[0]));
	}
	# The pooler keeps, for ten minutes, an unused session that a client has left.
	my ($sessions) = ask("select count(*) from pg_stat_activity where application_name = 'tacho record' "
		  . "and (state <> 'idle' or state_change > now() - interval '3 s')");
	check(($sessions // 0) <= 2, 'at most two sessions', $sessions);
	return;
}

# --- checks at the end

# True if calls of this time may be missing: from the last record before a fault to the
# first record after it.
sub may_lack
{
	my ($at) = @_;
	return $at <= $begin + 60 || grep { $_->{lost} && $at <= $_->{until} + 2 * $interval && $at >= $_->{since} - 2 * $interval } @faults;
}

sub check_history
{
	my ($since, $until) = @_;
	my @seconds = seconds($since, $until);
	my @twice = grep { $_->[1] > 1 } @seconds;
	check(!@twice, scalar(@seconds) . ' seconds, none with two ticks', scalar(@twice) . ' have, the first ' . stamp($twice[0] ? $twice[0][0] : 0));
	my @told = markers();
	my @holes = holes($since, $until);
	my @silent = grep { !reasons($_, @told) } @holes;
	check(!@silent, sprintf('%d holes, %d s without a tick in all: each has a marker', scalar @holes, sum0(map { $_->[1] - $_->[0] } @holes)),
		join ', ', map { stamp($_->[0]) . ' to ' . stamp($_->[1]) } @silent);
	my @others = grep { my $h = $_; !grep { $h->[1] >= $_->{since} - 2 && $h->[0] <= $_->{until} + 2 } @faults } @holes;
	say_at(sprintf '%d holes beside no fault of ours: %s', scalar @others, join '; ', map { map { $_->{detail} } reasons($_, @told) } @others) if @others;
	check(system("'$tacho' inspect '$tape' >'$place/inspect.log' 2>&1") == 0, 'every file can be read', qx(tail -n 3 '$place/inspect.log'));
	return;
}

$SIG{INT} = $SIG{TERM} = sub { exit 1 };
my $owner = $$;
END {
	my $status = $?;
	if ($$ == $owner && $place)
	{
		kill_children();
		kill 'KILL', $recorder if $recorder;
		$proxy->stop if $proxy;
		signal_pooler('KILL');
		as_server("$bin/pg_ctl", qw(-s -D), "$place/data", qw(-m immediate stop)) if $bin && -e "$place/data/postmaster.pid";
		if (failed() == 0 && $status == 0) { system("umount '$place/volume' && rm -rf '$place'"); }
		else { print "Its files stay: $place. To remove them: umount $place/volume && rm -r $place\n"; }
	}
	$? = $status;
}

STDOUT->autoflush(1);
say_at("$opt{m} minutes, seed $opt{s}");
srand $opt{s};
build();
load();
wait_until('recording begins', 60, sub { observed($begin) >= 3 });
my $recorded = time;
wait_until('the client counts', 60, sub {
	($query_id) = ask(q{select queryid from pg_stat_statements where query = 'select length($1)' limit 1});
	return $query_id;
});
sleep 2 * $interval + 2;
my $end = time + 60 * $opt{m};
one_fault() while time < $end;
end_children(sub { ask("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'torture-%'") });
sleep 3 * $interval;
my $until = time - 2;
check(do { kill 'TERM', $recorder; waitpid $recorder, 0; $? } == 0, 'the recorder ends');
undef $recorder;
check_log($log, 0);
my @calls = rows('statements-history', '--since', stamp($begin - 60), '--until', stamp(time + 60), '--query-id', $query_id);
check_calls("$place/calls", \@faults, \&may_lack, sum0(map { $_->{calls} // 0 } @calls));
check_history(int($recorded) + 1, int $until);
my %count;
$count{ $_->{name} }++ for @faults;
say_at("$count{$_} x $_") for sort keys %count;
printf "%d passed, %d failed\n", passed(), failed();
exit(failed() != 0);
