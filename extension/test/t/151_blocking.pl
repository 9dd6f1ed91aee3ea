# tacho.blocking(): heads of queues of a window, and the tree of a moment, for
# scripted lock waits.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoLocks qw(session settle wait_until_locked);
use TachoTest qw(at server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $node = tacho_cluster('blocking', conf => q{
deadlock_timeout = 600s
max_prepared_transactions = 5
});
$node->safe_psql('postgres', q{
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g});

# The tree of a moment: one line a person, by application name.
sub tree
{
	my ($columns) = @_;
	my $since = settle($node);
	my $at = $node->safe_psql('postgres',
		"SELECT max(sample_time) FROM tacho.samples(since => @{[at($since)]}, scope => 'all')");

	return $node->safe_psql('postgres', qq{
		SELECT level, coalesce(application, kind), $columns
		FROM tacho.blocking(at => '$at')});
}

# The heads of the queues since a moment.
sub heads
{
	my ($since, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM tacho.blocking(since => @{[at($since)]})");
}

# A chain of three on rows of t.
{
	my ($first, $second, $third) = map { session($node, $_) } qw(first second third);
	$first->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
	$second->run('BEGIN; UPDATE t SET v = 1 WHERE id = 2');
	$second->send('UPDATE t SET v = 1 WHERE id = 1');
	$third->send('UPDATE t SET v = 1 WHERE id = 2');
	wait_until_locked($node, 'second', 'third');
	my $since = server_ms($node) + 300;
	is(tree('waiters, depth, via, locktype, mode, mode_held'), join("\n",
		'0|first|2|2||||',
		'1|second|1|1|lock|transactionid|ShareLock|ExclusiveLock',
		'2|third|0|0|lock|transactionid|ShareLock|ExclusiveLock'),
		'blocking() shows a chain as a tree');
	is(heads($since, 'application, state, waiters, depth, locktype, mode, query_text'),
		'first|idle in transaction|2|2|transactionid|ShareLock|UPDATE t SET v = $1 WHERE id = $2',
		'the first row is the head of the queue');
	is($node->safe_psql('postgres', qq{
			SELECT abs(extract(epoch FROM b.last_seen - b.xact_age - a.xact_start)) <= 0.2
			FROM pg_stat_activity a JOIN tacho.blocking(since => @{[at($since)]}) b USING (pid)
			WHERE a.application_name = 'first'}),
		't', 'the head has the age of its transaction');
	is( $node->safe_psql('postgres', q{
			SELECT count(*) FROM pg_stat_activity a, tacho.blocking(at => now()) b, pg_locks l
			WHERE a.pid = b.pid AND l.pid = b.pid AND NOT l.granted
			  AND b.waited > '0' AND b.last_seen - b.waited <= l.waitstart
			  AND b.last_seen - b.waited > l.waitstart - interval '200 ms'}),
		'2', 'waiting sessions have the time that they have waited');
	my $until = settle($node);
	my ($blocked, $ticks) = split /\|/, $node->safe_psql('postgres', qq{
		WITH w AS (SELECT @{[at($since)]} since, @{[at($until)]} AS until)
		SELECT b.blocked_seconds * 10, 2 * a.ticks_observed
		FROM w, tacho.blocking(since => w.since, until => w.until) b,
		  tacho.aas(since => w.since, until => w.until) a});
	cmp_ok($ticks, '>=', 10, 'the history has some ticks of the wait');
	is($blocked + 0, $ticks, 'each tick has two waiters');
	$first->run('ROLLBACK');
	$second->run('ROLLBACK');
	$_->finish for $first, $second, $third;
}

# Two sessions hold a share lock on t. One is idle in transaction, the other has a
# session-level advisory lock as well. ALTER TABLE waits for both.
{
	my ($one, $two, $alter, $late) = map { session($node, $_) } qw(one two alter late);
	$one->run('BEGIN; LOCK TABLE t IN SHARE MODE');
	$two->run('BEGIN; LOCK TABLE t IN SHARE MODE');
	$alter->send('ALTER TABLE t ADD COLUMN w int');
	wait_until_locked($node, 'alter');
	$late->send('SELECT count(*) FROM t');
	wait_until_locked($node, 'alter', 'late');
	my $since = server_ms($node) + 300;
	my @lines = split /\n/, tree('via, relation, mode, mode_held');
	is_deeply([ sort @lines ], [ sort(
		'0|one||||', '0|two||||',
		('1|alter|lock|public.t|AccessExclusiveLock|ShareLock') x 2,
		'2|late|queue|public.t|AccessShareLock|') ],
		'several holders and the order of the queue are shown');
	is($node->safe_psql('postgres', qq{
		SELECT string_agg(application || ' ' || relation || ' ' || waiters, ', ' ORDER BY application)
		FROM tacho.blocking(since => @{[at($since)]})}),
		'one public.t 2, two public.t 2', 'both holders are heads, with the name of the relation');
	is($node->safe_psql('postgres', qq{
		SELECT string_agg(e ->> 'application' || ' ' || (e ->> 'relation'), ', ' ORDER BY e ->> 'application')
		FROM tacho.report(since => @{[at($since)]}, application => 'late') r,
		  jsonb_array_elements(r.report -> 'blockers') e}),
		'one public.t, two public.t', 'a report shows both heads, which filters let through');
	is($node->safe_psql('postgres', qq{
		SELECT DISTINCT e ->> 'relation'
		FROM tacho.report(at => (@{[at($since)]} + interval '200 ms')::text) r,
		  jsonb_array_elements(r.report -> 'tree') e WHERE e ->> 'via' IS NOT NULL}),
		'public.t', 'the tree of the report has the name of the relation');
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	is($node->safe_psql('other', qq{
		CREATE EXTENSION tacho;
		SELECT DISTINCT relation IS NULL, object
		FROM tacho.blocking(since => @{[at($since)]}) WHERE locktype = 'relation'}),
		't|relation public.t', 'another database has the name from the history');
	$one->run('ROLLBACK');
	$two->run('ROLLBACK');
	$_->finish for $one, $two, $alter, $late;
}

# A prepared transaction holds the row: before and after a restart.
{
	my $prepare = session($node, 'preparer');
	$prepare->run(q{BEGIN; UPDATE t SET v = 1 WHERE id = 1});
	$prepare->run(q{PREPARE TRANSACTION 'it''s stuck'});
	my $xid = $node->safe_psql('postgres', 'SELECT transaction FROM pg_prepared_xacts');
	$prepare->finish;
	for my $when ('', ' after a restart')
	{
		my $waiter = session($node, 'waiter');
		$waiter->send('UPDATE t SET v = 1 WHERE id = 1');
		wait_until_locked($node, 'waiter');
		is(tree('prepared_xid, prepared_gid, waiters, via'), join("\n",
			"0|prepared transaction|$xid|it's stuck|1|",
			'1|waiter|||0|lock'), "a prepared transaction is a head$when");
		my $table = session($node, 'locker');
		$table->send('BEGIN; LOCK TABLE t');
		wait_until_locked($node, 'locker', 'waiter');
		like(tree('prepared_gid, via, relation, mode_held'),
			qr/^1\|locker\|\|lock\|public\.t\|RowExclusiveLock$/m,
			"the prepared transaction has its lock on the table$when");
		$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid)
			FROM pg_stat_activity WHERE application_name IN ('locker', 'waiter')});
		$_->{harness}->finish for $table, $waiter;
		$node->restart if $when eq '';
	}
	$node->safe_psql('postgres', q{ROLLBACK PREPARED 'it''s stuck'});
}

# Two sessions wait for each other, and a third waits for one of them.
{
	my ($one, $two, $behind) = map { session($node, $_) } qw(one two behind);
	$one->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
	$two->run('BEGIN; UPDATE t SET v = 1 WHERE id = 2');
	$one->send('UPDATE t SET v = 1 WHERE id = 2');
	$two->send('UPDATE t SET v = 1 WHERE id = 1');
	wait_until_locked($node, 'one', 'two');
	$behind->send('ALTER TABLE t ADD COLUMN x int');
	wait_until_locked($node, 'one', 'two', 'behind');
	my $since = server_ms($node) + 300;
	tree('kind');
	is(heads($since, 'kind, waiters, application IN (\'one\', \'two\')'),
		'cycle|3|t', 'a cycle is shown with the session behind it');
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid)
		FROM pg_stat_activity WHERE application_name IN ('one', 'behind')});
	$_->{harness}->finish for $one, $behind;
	$two->run('ROLLBACK');
	$two->finish;
}

# A parallel worker waits for a lock; another session waits for the leader.
{
	my $force = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
	my ($holder, $leader, $other) = map { session($node, $_) } qw(holder leader other);
	$node->safe_psql('postgres', q{
		CREATE TABLE far(x int);
		CREATE FUNCTION look() RETURNS bigint PARALLEL SAFE LANGUAGE plpgsql
		AS 'BEGIN RETURN (SELECT count(*) FROM far); END'});
	$holder->run('BEGIN; LOCK TABLE far');
	$leader->run("SELECT pg_advisory_lock(99); SET $force = on");
	$leader->send('SELECT look()');
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type = 'parallel worker' AND wait_event_type = 'Lock'});
	$other->send('SELECT pg_advisory_lock(99)');
	wait_until_locked($node, 'other');
	my $since = server_ms($node) + 300;
	is(tree('waiters'), join("\n", '0|holder|2', '1|leader|1', '2|other|0'),
		'a parallel worker stands for its leader');
	is(heads($since, 'application, waiters, depth'), 'holder|2|2',
		'the head is behind the worker');
	$holder->run('ROLLBACK');
	$leader->run('SELECT pg_advisory_unlock_all()');
	$_->finish for $holder, $leader, $other;
}

is($node->psql('postgres', q{SELECT FROM tacho.blocking(at => now(), since => now())}),
	3, 'a moment and a window together are refused');

$node->stop;
done_testing();
