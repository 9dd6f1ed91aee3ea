# Scripted lock waits: each sampled session names its blocker, also if the blocker is
# idle, or only ahead in the queue, or part of a cycle.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoLocks qw(blocked_pairs session settle wait_until_locked);
use PostgreSQL::Test::Utils;
use TachoTest qw(at tacho_cluster wait_for_marker);
use Test::More;

my $node = tacho_cluster('locks', conf => q{
deadlock_timeout = 600s
max_prepared_transactions = 5
});
$node->safe_psql('postgres', q{
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g});

# a holds a row, b waits for a and holds another row, c waits for b.
{
	my ($a, $b, $c) = map { session($node, $_) } qw(a b c);

	$a->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
	$b->run('BEGIN; UPDATE t SET v = 1 WHERE id = 2');
	$b->send('UPDATE t SET v = 1 WHERE id = 1');
	$c->send('UPDATE t SET v = 1 WHERE id = 2');
	wait_until_locked($node, 'b', 'c');
	is(blocked_pairs($node, settle($node)), 'b<a c<b', 'each of a chain of three has its blocker');
	$a->run('ROLLBACK');
	$b->run('ROLLBACK');
	$_->finish for $a, $b, $c;
}

# An idle session holds an advisory lock: it is recorded and not counted.
{
	my ($holder, $waiter) = map { session($node, $_) } qw(idler waiter);

	$holder->run('SELECT pg_advisory_lock(7)');
	$waiter->send('SELECT pg_advisory_lock(7)');
	wait_until_locked($node, 'waiter');
	my $since = settle($node);
	is(blocked_pairs($node, $since), 'waiter<[idler]', 'an idle session is recorded as a blocker');
	is( $node->safe_psql('postgres', qq{
			SELECT DISTINCT state, query_text FROM tacho.samples(
			  since => @{[at($since)]}, scope => 'all', n => null, application => 'idler')}),
		'idle|SELECT pg_advisory_lock($1)',
		'the idle blocker has its state and last statement');
	is( $node->safe_psql('postgres', qq{
			SELECT peak_sessions FROM tacho.aas(
			  since => @{[at($since)]}, scope => 'all', application => 'idler')}),
		'0', 'the idle blocker does not count as load');
	$holder->run('SELECT pg_advisory_unlock(7)');
	$_->finish for $holder, $waiter;
}

# ALTER TABLE waits for a reader. A second reader waits behind ALTER TABLE, although no
# session holds a conflicting lock.
{
	my ($reader, $alter, $late) = map { session($node, $_) } qw(reader alter late);

	$reader->run('BEGIN; SELECT count(*) FROM t');
	$alter->send('ALTER TABLE t ADD COLUMN w int');
	wait_until_locked($node, 'alter');
	$late->send('SELECT count(*) FROM t');
	wait_until_locked($node, 'alter', 'late');
	is(blocked_pairs($node, settle($node)), 'alter<reader late<alter',
		'the order of the queue decides who blocks');
	$reader->run('ROLLBACK');
	$_->finish for $reader, $alter, $late;
}

# Two sessions wait for each other, and the server has not noticed yet.
{
	my ($one, $two) = map { session($node, $_) } qw(one two);

	$one->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
	$two->run('BEGIN; UPDATE t SET v = 1 WHERE id = 2');
	$one->send('UPDATE t SET v = 1 WHERE id = 2');
	$two->send('UPDATE t SET v = 1 WHERE id = 1');
	wait_until_locked($node, 'one', 'two');
	is(blocked_pairs($node, settle($node)), 'one<two two<one', 'a cycle has a blocker for each session');
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid)
		FROM pg_stat_activity WHERE application_name = 'one'});
	$one->{harness}->finish;
	$two->run('ROLLBACK');
	$two->finish;
}

# A read-only transaction waits for a snapshot that the running transactions cannot make
# unsafe. It waits for no lock.
{
	my ($writer, $report) = map { session($node, $_) } qw(writer report);

	$writer->run('BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = 1 WHERE id = 1');
	$report->send('BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT count(*) FROM t');
	$node->poll_query_until('postgres',
		q{SELECT wait_event = 'SafeSnapshot' FROM pg_stat_activity WHERE application_name = 'report'});
	is(blocked_pairs($node, settle($node)), 'report<writer', 'a wait for a safe snapshot has its blocker');
	$writer->run('ROLLBACK');
	$_->finish for $writer, $report;
}

# Columns of the newest tick.
sub newest_tick
{
	my (@columns) = @_;
	settle($node);
	my ($csv) = run_command([ $ENV{TACHO_PROGRAM}, 'export', 'sessions', '--tape',
		$node->data_dir . '/tacho' ]);
	my ($head, @lines) = split /\n/, $csv;
	my %tick;

	@tick{ split /,/, $head } = split /,/, $lines[-1], -1;
	return join ' ', @tick{@columns};
}

# A prepared transaction holds back vacuum, and no session does.
{
	my @holder = qw(oldest_xmin_holder oldest_xmin_pid oldest_xmin_name);

	$node->safe_psql('postgres', "BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'payment ü 7'");
	$node->safe_psql('postgres', 'SELECT txid_current()') for 1 .. 3;
	is(newest_tick(@holder), "prepared transaction  payment ü 7",
		'a prepared transaction is the oldest, with its name');
	$node->safe_psql('postgres', "COMMIT PREPARED 'payment ü 7'");
	unlike(newest_tick(@holder), qr/prepared/, 'the wait for the prepared transaction ends with it');
}

# Each sampling interval has its share of requests to the lock manager.
{
	my $holder = session($node, 'holder');
	my @waiters = map { session($node, "waiter $_") } 1 .. 8;

	$holder->run("SELECT pg_advisory_lock($_)") for 1 .. 8;
	$waiters[ $_ - 1 ]->send("SELECT pg_advisory_lock($_)") for 1 .. 8;
	wait_until_locked($node, map { "waiter $_" } 1 .. 8);
	$node->append_conf('postgresql.conf', "tacho.sample_interval = '10ms'");
	$node->reload;
	wait_for_marker($node, 'settings changed', 1);
	cmp_ok(newest_tick('locks_unresolved'), '>=', 5,
		'at 10 ms a tick looks up three locks of eight');
	$holder->run('SELECT pg_advisory_unlock_all()');
	$_->finish for $holder, @waiters;
}

$node->stop;
done_testing();
