# tacho live beside a server: it cancels and ends only what was confirmed, and continues
# by itself when the server comes back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TachoLocks qw(session wait_until_locked);
use TachoTerminal qw(live_program);
use TachoTest qw(tacho_cluster);

my $live = live_program();
my $node = tacho_cluster('live');
$node->safe_psql('postgres', q{
	CREATE ROLE nobody_there LOGIN;
	CREATE ROLE reader LOGIN;
	GRANT pg_read_all_stats TO reader});
my $tape = $node->data_dir . '/tacho';

my ($holder, $first, $second, $third) = map { session($node, "s_$_") } qw(holder first second third);
$holder->run('BEGIN; SELECT pg_advisory_lock(7)');
$_->send('SELECT pg_advisory_lock(7)') for $first, $second, $third;
wait_until_locked($node, qw(s_first s_second s_third));
my %pid = map { split /=/ } split /\n/, $node->safe_psql('postgres',
	q{SELECT application_name || '=' || pid FROM pg_stat_activity WHERE application_name LIKE 's\_%'});

# Names of the sessions that wait for the lock.
sub waiting
{
	return $node->safe_psql('postgres', q{
		SELECT string_agg(application_name, ' ' ORDER BY application_name) FROM pg_stat_activity
		WHERE application_name LIKE 's\_%' AND wait_event_type = 'Lock'});
}

# A terminal on a history that may signal as a role, or not at all.
sub terminal
{
	my ($dir, $role) = @_;
	my $signals = $role ? '--allow-signal "' . $node->connstr('postgres') . " user=$role\"" : '';

	my $terminal =
	  TachoTerminal->new('live', "exec '$live' --tape '$dir' --tz UTC --ascii $signals");
	$terminal->shows(qr/^ wait classes/m, 'the first view is shown');
	return $terminal;
}

# Chooses a session of the list of sessions. On a busy machine the list may show all of them,
# until the answer for the filter is there.
sub choose
{
	my ($terminal, $name) = @_;

	$terminal->keys('x');
	$terminal->line("/application=$name");
	$terminal->keys('s');
	my $others = join '|', grep { $_ != $pid{$name} } values %pid;
	return $terminal->shows(qr/\A(?!.*^ +\d+\.\d\d +(?:$others) ).*^ +\d+\.\d\d +$pid{$name} [^\n]*$name/ms, "$name alone is listed");
}

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $terminal = terminal($tape);
choose($terminal, 's_first');
$terminal->keys('C');
$terminal->shows(qr/start with --allow-signal CONNINFO/, 'without the option no session is signalled');
$terminal->end;

$terminal = terminal($tape, $superuser);
choose($terminal, 's_first');
$terminal->keys('C');
my $screen = $terminal->shows(qr/Cancel the query of this session\?/, 'a signal asks for confirmation');
like($screen, qr/process +$pid{s_first}, since \d{4}-.*user +$superuser, database postgres, application s_first.*state +active, query since \d{4}-.*query +SELECT pg_advisory_lock\(7\)/s,
	'a session is confirmed by process, user, begin and query');
$terminal->keys('n');
$terminal->shows(qr/no signal was sent/, 'another key than y cancels nothing');
is(waiting(), 's_first s_second s_third', 'a key without a confirmation does nothing');
$terminal->keys('C');
$terminal->shows(qr/Cancel the query/, 'the second signal asks for confirmation');
$terminal->keys('y');
$terminal->shows(qr/the query of session $pid{s_first} was canceled/, 'y cancels');
ok($node->poll_query_until('postgres',
		q{SELECT state = 'idle' FROM pg_stat_activity WHERE application_name = 's_first'}),
	'the confirmed query was cancelled');
is(waiting(), 's_second s_third', 'no other query was cancelled');

# the query that was confirmed ends, and the session runs another one
choose($terminal, 's_second');
$terminal->keys('C');
$terminal->shows(qr/Cancel the query/, 'the next signal asks for confirmation');
my $begun = $node->safe_psql('postgres',
	"SELECT query_start FROM pg_stat_activity WHERE pid = $pid{s_second}");
$second->send('SELECT pg_advisory_lock(7)');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid{s_second})");
$node->poll_query_until('postgres', qq{
	SELECT wait_event_type = 'Lock' AND query_start > '$begun'
	FROM pg_stat_activity WHERE pid = $pid{s_second}});
$terminal->keys('y');
$terminal->shows(qr/no signal was sent: session $pid{s_second} no longer runs that query/,
	'a query that began after the confirmation is not cancelled');
is(waiting(), 's_second s_third', 'the other session goes on');

# the session that was confirmed ends
choose($terminal, 's_third');
$terminal->keys('K');
$terminal->shows(qr/End this session\?/, 'the end of a session asks for confirmation');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid{s_third}, 60000)");
$terminal->keys('y');
$terminal->shows(qr/no signal was sent: session $pid{s_third} has ended/, 'a session that has ended is not signalled');
$terminal->end;

# the history says that the process id belongs to another session now
my $other = $node->basedir . '/other';
my $csv = $node->basedir . '/other.csv';
my $now = $node->safe_psql('postgres',
	q{SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});
PostgreSQL::Test::Utils::append_to_file($csv,
	"time,pid,backend_start,application,state,wait_event_type,wait_event,query_id\n" .
	"$now,$pid{s_second},2020-01-01T00:00:00Z,s_second,active,Lock,advisory,7\n");
$node->command_ok([ $ENV{TACHO_PROGRAM}, 'import', 'sessions', $csv, '--tape', $other, '--node', '00000000000000aa' ],
	'a history of another session with that number is imported');
$terminal = terminal($other, $superuser);
choose($terminal, 's_second');
$terminal->keys('K');
$terminal->shows(qr/session $pid{s_second} has ended, and its process ID is in use by another one/, 'a session with the same number is not signalled');
$terminal->end;
is(waiting(), 's_second', 'no session was ended');

# rights
$terminal = terminal($tape, 'nobody_there');
choose($terminal, 's_second');
$terminal->keys('K');
$terminal->shows(qr/role "nobody_there" cannot see session $pid{s_second}\.\s+Grant\s+it\s+pg_read_all_stats/, 'a role that may not see others sees nothing');
$terminal->end;
$terminal = terminal($tape, 'reader');
choose($terminal, 's_second');
$terminal->keys('K');
$terminal->shows(qr/End this session\?/, 'a role that may see others sees them');
$terminal->keys('y');
$terminal->shows(qr/no signal was sent: (permission denied|must be a superuser)/, 'a role that may see others may not signal them');
$terminal->end;

# the root of the tree is ended
$terminal = terminal($tape, $superuser);
$terminal->keys('b');
$terminal->shows(qr/^$pid{s_holder} +1 .*\n +$pid{s_second} /m, 'the tree is shown');
$terminal->keys('C');
$terminal->shows(qr/session $pid{s_holder} runs no query \(idle in transaction\)/, 'the root has no query to cancel');
$terminal->keys('K');
$terminal->shows(qr/End this session\?.*process +$pid{s_holder},/s, 'the root of the tree asks for confirmation');
$terminal->keys('y');
$terminal->shows(qr/session $pid{s_holder} was sent a termination signal/, 'the root of the tree is ended');
ok($node->poll_query_until('postgres',
		q{SELECT wait_event_type = 'Client' FROM pg_stat_activity WHERE application_name = 's_second'}),
	'the session that waited goes on');

# the server is killed, and comes back
$terminal->keys('x', 'End');
$terminal->shows(qr/\* live$/m, 'live');
$node->kill9;
$terminal->shows(qr/no tick for \d+s/, 'the view says since when nothing is recorded');
$terminal->keys('C');
$terminal->shows(qr/could not connect|choose a session/, 'without a sample there is no session to signal');
$node->start;
$terminal->shows(qr/\* live$/m, 'the view goes on by itself');
$terminal->end;

done_testing();
