# At most tacho.max_readers readers run in the whole server, each with its share of
# tacho.reader_memory. A reader that ends, in whatever way, makes room for another one.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster wait_for_file);
use TachoTest qw(tacho_session);
use Test::More;

my $node = stand_in_cluster('limits',
	conf => "tacho.max_readers = 2\ntacho.reader_memory = '1001MB'\nrestart_after_crash = on\n");
my $silent = q{note('pid', $$); sleep 1000 while 1};
my $share = q{answer(map { [ split /=/ ] } grep { /memory/ } @ARGV)};
my $call = 'SELECT * FROM tacho.summary(until => now())';

sub refused
{
	my ($allowed) = @_;
	return "ERROR:  53400: too many questions to the history at the same time\n"
	  . "DETAIL:  \"tacho.max_readers\" allows $allowed in the whole server.\n"
	  . 'HINT:  Try again later, or raise "tacho.max_readers". Each question then has a smaller share of "tacho.reader_memory".';
}

# The rows of a call, or its error.
sub answer_of
{
	my ($sql) = @_;
	my ($out, $error);

	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql;", stdout => \$out, stderr => \$error,
		on_error_stop => 0);
	$error =~ s/^psql:<stdin>:\d+: //mg;
	$error =~ s/^(LOCATION|CONTEXT):.*\n?//mg;
	chomp $error;
	return $error || $out;
}

# Sessions whose readers run, each with its backend's process id.
sub busy
{
	my ($count) = @_;
	my @sessions;

	behave($node, $silent);
	for (1 .. $count)
	{
		my $session = tacho_session($node, app => 'reader');
		$session->run('SELECT pg_backend_pid()');
		($session->{pid}) = $session->{out} =~ /^(\d+)$/m;
		$session->send($call);
		wait_for_file($node, 'pid');
		push @sessions, $session;
	}
	behave($node, $share);
	return @sessions;
}

sub cancel { my ($session) = @_; return $node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})"); }

# Two readers can run, whatever happened before, and a third cannot.
sub no_place_is_lost
{
	my ($after) = @_;
	my @sessions = busy(2);

	is(answer_of($call), refused(2), "$after: two questions run, a third is refused");
	for my $session (@sessions)
	{
		cancel($session);
		$session->run('SELECT 1');
		$session->finish;
	}
	return is(answer_of($call), '--memory-limit-mb|500', "$after: a cancel makes room at once");
}

behave($node, $share);
is(answer_of($call), '--memory-limit-mb|500', 'each question may use its share of the memory');
no_place_is_lost('at first');

my @sessions = busy(2);
like(answer_of("SELECT * FROM tacho.status() WHERE metric IN ('recording', 'tape_error')"),
	qr/^recording\|\w+\ntape_error\|too many questions to the history at the same time$/,
	'status() answers while all places are taken');
cancel($_) for @sessions;
$_->run('SELECT 1')->finish for @sessions;

# All ends of a reader
behave($node, $share);
$node->safe_psql('postgres', $call) for 1 .. 5;
no_place_is_lost('after answers');

behave($node, q{print STDERR "ERROR\t42704\tno such thing\t\t\n"; exit 1});
answer_of($call) for 1 .. 3;
no_place_is_lost('after errors of the program');

behave($node, q{kill 'KILL', $$});
answer_of($call) for 1 .. 3;
no_place_is_lost('after programs that were killed');

behave($node, q{print "nonsense\n"; sleep 1000 while 1});
answer_of($call) for 1 .. 3;
no_place_is_lost('after answers that make no sense');

behave($node, q{sleep 1000 while 1});
answer_of("SET statement_timeout = '500ms'; DO \$\$ BEGIN PERFORM * FROM tacho.summary();
	EXCEPTION WHEN query_canceled THEN NULL; END \$\$") for 1 .. 3;
no_place_is_lost('after timeouts that were caught');

answer_of("SELECT * FROM tacho.aas(application => repeat('x', 200000))") for 1 .. 3;
no_place_is_lost('after programs that did not start');

@sessions = busy(2);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($_->{pid}, 60000)") for @sessions;
no_place_is_lost('after backends that were terminated');

# Shared memory is made again when the server recovers from a crash.
@sessions = busy(2);
kill 'KILL', $sessions[0]{pid};
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN ($sessions[0]{pid}, $sessions[1]{pid})");
no_place_is_lost('after a crash');

# A reload counts for the next call.
sub set_max
{
	my ($max) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET tacho.max_readers = $max");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('tacho.max_readers') = '$max'");
}

@sessions = busy(2);
set_max(3);
is(answer_of($call), '--memory-limit-mb|333', 'a reload allows one more question, each with less memory');
set_max(1);
is(answer_of($call), refused(1), 'a reload allows fewer questions, those that run go on');
cancel($sessions[0]);
$sessions[0]->run('SELECT 1')->finish;
is(answer_of($call), refused(1), 'questions from before the reload count');
cancel($sessions[1]);
$sessions[1]->run('SELECT 1')->finish;
is(answer_of($call), '--memory-limit-mb|1001', 'a question is refused until those have ended');

# Less memory than 1 MB for each question
$node->safe_psql('postgres', q{ALTER SYSTEM SET tacho.reader_memory = '2MB'});
set_max(3);
is(answer_of($call), qq{ERROR:  53400: questions to the history have no memory\n}
	  . qq{DETAIL:  "tacho.max_readers" (3) questions share "tacho.reader_memory" (2 MB). Each one needs 1 MB at least.\n}
	  . 'HINT:  Raise "tacho.reader_memory", or lower "tacho.max_readers".', 'a question without memory says which settings are the reason');
like(answer_of("SELECT * FROM tacho.status() WHERE metric IN ('recording', 'tape_error')"),
	qr/^recording\|\w+\ntape_error\|questions to the history have no memory$/, 'status() answers without memory for questions');
set_max(2);
is(answer_of($call), '--memory-limit-mb|1', 'a share of 1 MB is a share');

$node->stop;
done_testing();
