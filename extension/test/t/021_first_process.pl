# The postmaster is process 1, as in a container, and a process that the server has
# started is slow to die: a signal ends it after its backend is gone. The server must
# not take such a process for a crashed backend.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoContainer qw(container_missing container_start container_stop gone_from
  parent_of pid_outside processes_of);
use TachoHold qw(hold_missing let_go);
use TachoStandIn qw(behave stand_in_cluster wait_for_file);
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_session);
use Test::More;

my $missing = hold_missing() || container_missing();
plan skip_all => $missing if $missing;

# Two behaviours of the program: it runs the real one, or it never ends.
my $real = q{exec $program, @ARGV};
my $silent = q{note('pid', $$); sleep 1000 while 1};

my $node = stand_in_cluster('first', conf => "restart_after_crash = on\n");
behave($node, $real);
$node->stop;
my $server = container_start($node);
my $crashes = 0;
my $witness = tacho_session($node, app => 'witness');
my $samplers = 1;

sub hold { return TachoHold::hold($_[0]) // die "$@\n"; }

sub recording { return wait_for_metric($node, 'recording', "value = 'on'"); }

# No session or worker has ended, except those that this test ended.
sub unharmed
{
	my ($name) = @_;
	my $log = slurp_file($node->logfile);

	$witness->{out} = '';
	$witness->run('SELECT 1 + 1');
	like($witness->{out}, qr/^2$/m, "$name: other sessions go on");
	is(metric($node, 'sampler_starts'), $samplers, "$name: the sampler goes on");
	is(() = $log =~ /terminating any other active server processes/g, $crashes, "$name: the server does not crash");
	return;
}

# Processes that a reader leaves behind.
my %programs = (
	'a script' => $silent,
	'what a script has started' => q{my $pid = fork; if (!$pid) { sleep 1000 while 1 } note('pid', $pid); waitpid $pid, 0},
	'what a script has started in a session of its own' =>
	  q{my $pid = fork; if (!$pid) { require POSIX; POSIX::setsid(); note('pid', $$); sleep 1000 while 1 } waitpid $pid, 0},
	'what a script has left behind' =>
	  q{my $pid = fork; if (!$pid) { fork and exit; note('pid', $$); sleep 1000 while 1 } waitpid $pid, 0; sleep 1000 while 1});

# A session with a reader whose program runs $code. Also returns the process that $code
# notes, which is held from now on.
sub busy_session
{
	my ($code, $setting) = @_;
	my $session = tacho_session($node, app => 'reader');

	behave($node, $code);
	$session->send(($setting // '') . 'SELECT * FROM tacho.summary()');
	my $program = pid_outside($server, wait_for_file($node, 'pid'));
	hold($program);
	behave($node, $real);
	return ($session, $program);
}

sub backend { return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'reader'"); }

sub without_reader
{
	return $node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'reader'");
}

# The program, whose backend is gone, ends only now, by SIGKILL.
sub ends_late
{
	my ($program, $name) = @_;

	ok(-e "/proc/$program", "$name: the program is slow to die");
	kill 'KILL', $program;
	let_go($program);
	ok(gone_from($program), "$name: the program ends");
	ok(!processes_of($server, qr/^tacho-parent/) || wait_for_parents(), "$name: the parent of the program ends");
	return unharmed($name);
}

# Waits until the writer's parent is the only parent.
sub wait_for_parents
{
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if processes_of($server, qr/^tacho-parent/) <= 1;
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

ok(recording(), 'the server records as process 1');
unharmed('at first');

for my $what (sort keys %programs)
{
	my ($session, $program) = busy_session($programs{$what}, "SET statement_timeout = '3s'; ");
	$session->run('SELECT 1');
	like($session->{out}, qr/canceling statement due to statement timeout/, "$what: the statement times out");
	$session->finish;
	ok(without_reader(), "$what: its session has ended");
	ends_late($program, $what);
}

my ($session, $program) = busy_session($silent);
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend() . ')');
ok(without_reader(), 'a backend is terminated');
ends_late($program, 'the program of a terminated backend');

# A signal of its own ends a program after its backend is gone.
($session, $program) = busy_session($silent);
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend() . ')');
without_reader();
kill 'ABRT', $program;
ends_late($program, 'a program that aborts');

# The writer of a terminated sampler; the next writer waits for it.
sub held_writer { return hold(pid_outside($server, metric($node, 'writer_pid'))); }

ok(wait_until_written($node), 'the writer works');
my $writer = held_writer();
my $sampler = metric($node, 'sampler_pid');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($sampler)");
$samplers++;
ok(wait_for_metric($node, 'sampler_starts', "value = '2'"), 'the sampler is started again');
kill 'KILL', $writer;
let_go($writer);
ok(gone_from($writer), 'the writer of the terminated sampler is killed');
ok(recording(), 'the next writer records');
unharmed('a writer of a terminated sampler');

# This test crashes the server: programs that outlive the crash cause no other.
($session, $program) = busy_session($silent);
$writer = held_writer();
kill 'KILL', pid_outside($server, backend());
$crashes = $samplers = 1;
$node->poll_query_until('postgres',
	"SELECT value = '1' FROM tacho.status() WHERE metric = 'sampler_starts'");
$witness = tacho_session($node, app => 'witness');
ok(-e "/proc/$_", 'a program outlives a crash') for $writer, $program;
kill 'KILL', $writer;
let_go($writer);
ends_late($program, 'the program of a killed backend');
ok(gone_from($writer), 'the program that outlives the crash is killed');
ok(recording(), 'the server records after the crash');
unharmed('after the crash');

# Each stop ends everything, even programs that would not end.
for my $signal (qw(QUIT INT))
{
	behave($node, $silent);
	$session = tacho_session($node, app => 'reader');
	$session->send('SELECT * FROM tacho.summary()');
	wait_for_file($node, 'pid');
	behave($node, $real);
	is(container_stop($server, $signal), 0, "SIG$signal ends the server");
	$server = container_start($node) if $signal eq 'QUIT';
}
is(() = slurp_file($node->logfile) =~ /terminating any other active server processes/g, 1,
	'the server did not crash but for the crash of this test');

done_testing();
