# Whatever ends a reader function early ends its program too: no process and
# no zombie stays behind.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave has_file stand_in_cluster wait_for_file);
use TachoTest qw(tacho_session);
use Test::More;

my $node = stand_in_cluster('cancel', conf => "log_min_messages = fatal\n");

# Programs that would not end by themselves
my %endless = (
	'a silent program' => q{note('pid', $$); sleep 1000 while 1},
	'a program that prints rows' =>
	  q{note('pid', $$); print "metric\tvalue\n"; print "a\tb\n" x 1000 while 1},
	'a program that writes to standard error' =>
	  q{note('pid', $$); print STDERR "mind\n" x 1000 while 1},
	'a program that ignores signals' =>
	  q{$SIG{$_} = 'IGNORE' for qw(INT TERM HUP QUIT PIPE); note('pid', $$); sleep 1000 while 1},
	'a stopped program' => q{note('pid', $$); kill 'STOP', $$},
	'a program that has closed its output' =>
	  q{answer(); close STDOUT; close STDERR; note('pid', $$); sleep 1000 while 1},
	'a program with a child of its own' =>
	  q{my $pid = fork; if ($pid == 0) { sleep 1000 while 1 } note('pid', $pid); waitpid $pid, 0},
);

# State of a process, empty if it does not exist. A killed process that is not our child
# may take a moment to disappear.
sub state_of
{
	my ($pid) = @_;
	my $status = -e "/proc/$pid/status" ? eval { slurp_file("/proc/$pid/status") } : undef;

	return ($status // '') =~ /^State:\s+(.*)$/m ? $1 : '';
}

sub wait_until_gone
{
	my ($pid) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if state_of($pid) eq '';
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

sub error_of
{
	my ($sql) = @_;
	my $stderr;

	$node->psql('postgres', $sql, stderr => \$stderr);
	$stderr =~ s/^psql:<stdin>:\d+: //mg;
	return (split /\n/, $stderr)[0];
}

# The error of a statement that runs into its timeout. On a busy machine that
# may be before its program has begun; then it runs once more.
sub error_of_timeout
{
	my ($sql) = @_;
	my $error;

	for (1 .. 10)
	{
		$error = error_of($sql);
		last if has_file($node, 'pid');
	}
	return $error;
}

# A session that runs a reader; returns it, its process id and the program's.
sub busy_session
{
	my ($sql) = @_;
	my $session = tacho_session($node, app => 'reader');

	$session->send($sql // 'SELECT * FROM tacho.summary();');
	my $program = wait_for_file($node, 'pid');
	my $backend = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'reader' AND state = 'active'");
	return ($session, $backend, $program);
}

# When the error is reported, the backend has reaped the program. Children of the
# program are killed at the same time.
for my $name (sort keys %endless)
{
	behave($node, $endless{$name});
	my ($session, $backend, $program) = busy_session();
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($backend)");
	$session->run('SELECT 1;');
	my $state = state_of($program);

	like($session->{out}, qr/canceling statement due to user request/,
		"$name: a cancel ends the reader");
	if ($name =~ /child of its own/)
	{
		ok(wait_until_gone($program), "$name: the program has ended");
	}
	else
	{
		is($state, '', "$name: the program has ended and is reaped");
	}
	$session->finish;
}

behave($node, $endless{'a silent program'});

is( error_of_timeout("SET statement_timeout = '2s'; SELECT * FROM tacho.summary();"),
	'ERROR:  canceling statement due to statement timeout',
	'statement_timeout ends the reader');
is(state_of(wait_for_file($node, 'pid')), '',
	'the program has ended after the timeout');

# The session waits in an event of its own and reads again afterwards.
{
	my ($session, $backend, $program) = busy_session();
	my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

	my $wait = $version >= 170000 ? 'Extension|TachoReader' : 'Extension|Extension';
	ok( $node->poll_query_until('postgres',
			"SELECT wait_event_type || '|' || wait_event FROM pg_stat_activity WHERE pid = $backend",
			$wait),
		'a session that waits for the program has a wait event');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($backend)");
	$session->run('SELECT 1;');
	behave($node, q{answer([ 'a', 'b' ])});
	$session->run('SELECT * FROM tacho.summary();');
	like($session->{out}, qr/^a\|b$/m, 'the session can ask after a cancel');
	$session->finish;
	behave($node, $endless{'a silent program'});
}

# The error is caught: the transaction continues, the program is gone.
{
	my $session = tacho_session($node, app => 'reader');

	$session->run("BEGIN; SET LOCAL statement_timeout = '2s'");
	for (1 .. 10)
	{
		$session->run(q{
DO $$ BEGIN
	PERFORM * FROM tacho.summary();
EXCEPTION WHEN query_canceled THEN
	RAISE NOTICE 'caught';
END $$;});
		last if has_file($node, 'pid');
	}
	like($session->{out}, qr/NOTICE:  caught/, 'an error of the reader can be caught');
	is(state_of(wait_for_file($node, 'pid')), '',
		'the program has ended before the transaction ends');
	$session->finish;
}

# The backend is terminated.
{
	my ($session, $backend, $program) = busy_session();

	$node->safe_psql('postgres', "SELECT pg_terminate_backend($backend)");
	ok(wait_until_gone($backend), 'the backend of a reader is terminated');
	is(state_of($program), '', 'terminating the backend kills the program');
}

# The client goes away.
SKIP:
{
	skip 'needs client_connection_check_interval', 1 if $^O ne 'linux';
	my ($session, $backend, $program) =
	  busy_session("SET client_connection_check_interval = '100ms'; SELECT * FROM tacho.summary();");

	$session->{harness}->kill_kill;
	ok(wait_until_gone($program), 'the end of the client kills the program');
}

# The program is killed from outside: the session continues.
{
	my ($session, $backend, $program) = busy_session();

	kill 'KILL', $program;
	$session->run('SELECT 1;');
	like($session->{out}, qr/was terminated by signal 9/, 'the program of a reader is killed');
	like($session->{out}, qr/^1$/m, 'the session goes on after its program was killed');
	is(state_of($program), '', 'the killed program is reaped');
	$session->finish;
}

# Two programs at once in one backend: a reader called inside a row of
# another. An error ends both.
behave($node, q{note('pid', $$); if (grep { /since/ } @ARGV) { sleep 1000 while 1 } answer([ 'a', 'b' ])});
is( error_of_timeout(q{SET statement_timeout = '2s'; SET client_min_messages = error;
SELECT (SELECT count(*) FROM tacho.summary(since => now() - length(o.value) * interval '1 hour')) FROM tacho.summary() o;}),
	'ERROR:  canceling statement due to statement timeout',
	'a timeout ends a reader within a reader');
ok(wait_until_gone(wait_for_file($node, 'pid')), 'the program of the session has ended');

# The postmaster is killed: the backend notices, and its program goes with it.
behave($node, $endless{'a silent program'});
{
	my ($session, $backend, $program) = busy_session();

	$node->kill9;
	ok(wait_until_gone($backend), 'the backend ends with the postmaster');
	ok(wait_until_gone($program), 'the program ends with the postmaster');
}

done_testing();
