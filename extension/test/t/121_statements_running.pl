# An execution of many intervals: the history of statements shows that it runs, and for
# how long, in each bucket until the one that has its call.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_until_in_history);
use Test::More;

my $node = tacho_cluster('running', conf => "tacho.statements_interval = 1s\n");
my $begin = server_ms($node);

sub sql { return $node->safe_psql('postgres', $_[0]) }
sql('CREATE DATABASE app');

# Rows of the statement that waits for a lock: of the window, or of each second of it.
sub rows
{
	my ($columns, $bucket) = @_;

	return sql("SELECT $columns FROM tacho.statements_history(since => @{[at($begin)]}, n => null,
		bucket => " . ($bucket ? "'1 second'" : 'null') . ", database => 'app')
		WHERE query_text ~ 'pg_advisory_lock'");
}

# Starts an execution that waits for a lock of another session, so that this test
# decides when it ends. Returns its start and both sessions.
sub waiting
{
	my ($statement, $query) = @_;
	my $holder = tacho_session($node, db => 'app', app => 'holder');
	my $waiter = tacho_session($node, db => 'app', app => 'waiter');

	$holder->run('SELECT pg_try_advisory_lock(1)');
	$waiter->send($statement);
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory'
		FROM pg_stat_activity WHERE application_name = 'waiter'") or die 'it does not wait';
	my $started = sql(q{SELECT query_start FROM pg_stat_activity WHERE application_name = 'waiter'});
	ok( $node->poll_query_until('postgres', "SELECT count(*) >= 3
			FROM tacho.statements_history(since => '$started', bucket => '1 second', n => null, database => 'app')
			WHERE query_text ~ 'pg_advisory_lock' AND running = 1 AND coalesce(calls, 0) = 0"),
		"$query runs in several buckets and is a call in none of them");
	return ($started, $holder, $waiter);
}

my ($started, $locker, $waiter) = waiting('SELECT pg_advisory_lock(1)', 'a statement');
my $begun = "(extract(epoch FROM period_start) - extract(epoch FROM timestamptz '$started')) * 1000";
my $running = "bool_and(running_time BETWEEN $begun AND $begun + 1000) FILTER (WHERE running = 1)";
is(rows($running, 1), 't', 'the time of the running execution is that since its start');
is(rows('running, running_time > 2000, coalesce(calls, 0), toplevel, database, username = current_user'),
	'1|t|0|t|app|t', 'the window has a row of the execution without a call');
is(sql(qq{SELECT query_text ~ 'pg_advisory_lock' FROM tacho.statements_history(since => '$started',
	order_by => 'running_time', n => 1) LIMIT 1}), 't', 'the running execution comes first in order of running_time');

$locker->finish;
$waiter->finish;
wait_until_in_history($node);
is(rows('running, running_time = 0, calls, total_exec_time > 2000, count(*) OVER ()'), '0|t|1|t|1',
	'when it ends the row has a call and its time, and nothing runs');
is(rows('sum(calls), count(*) FILTER (WHERE calls = 1), count(*) FILTER (WHERE running = 1) >= 3', 1),
	'1|1|t', 'one bucket has the call, earlier buckets still say that it ran');
# the query starts before its execution, by parsing and planning
is(rows('sum(total_exec_time) + 1000 > max(running_time)', 1), 't', 'the execution ran no longer than the call took');

# a sealed file has seconds of long queries
$node->restart;
is(rows('sum(calls), count(*) FILTER (WHERE calls = 1), count(*) FILTER (WHERE running = 1) >= 3', 1),
	'1|1|t', 'a sealed file gives the same answer');
$running = "bool_and(running_time BETWEEN $begun - 1000 AND $begun + 2000) FILTER (WHERE running = 1)";
is(rows($running, 1), 't', 'a sealed file gives the same time to a second');

# an EXECUTE runs its statement
$begin = server_ms($node);
(undef, $locker, $waiter) = waiting('PREPARE later AS SELECT pg_advisory_lock($1), 2; EXECUTE later(1)', 'an EXECUTE');
$locker->finish;
$waiter->finish;
wait_until_in_history($node);
is(rows('sum(running), sum(calls), count(*)'), '0|1|1', 'the execution is one call of the same row');
$node->stop;
done_testing();
