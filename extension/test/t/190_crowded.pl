# A server without room: a thousand connections, all in use, the lock table full, the
# writer stopped, no slot for another background worker. The server works, the sampler
# samples, and nothing is lost.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TachoStatements qw(pgbench_script);
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(at refusal server_ms tacho_cluster tacho_session wait_for_marker wait_for_ticks);
use Test::More;

my $node = tacho_cluster('crowded', conf => q{
max_connections = 1010
superuser_reserved_connections = 3
max_locks_per_transaction = 10
max_prepared_transactions = 0
max_worker_processes = 1
max_logical_replication_workers = 0
shared_buffers = 16MB
max_parallel_workers = 0
});

ok(wait_for_metric($node, 'recording', "value = 'on'"), 'the sampler has the last place for a process');

# The writer is stopped during all of the rest.
wait_for_metric($node, 'frames_written', 'value::bigint > 0');
my $writer = metric($node, 'writer_pid');
my $stopped = server_ms($node);
kill 'STOP', $writer;

# A thousand sessions, all active; none ends within the test.
$node->safe_psql('postgres', 'CREATE ROLE crowd LOGIN');
my $script = pgbench_script($node, 'sleep', 'SELECT pg_sleep(3600);');
my ($in, $out) = ('', '');
my $crowd = IPC::Run::start(
	[ 'bash', '-c', 'ulimit -n 4096; exec pgbench -n -M simple -c 1000 -j 1 -T 3600 -f "$0" '
		  . '-h "$1" -p "$2" -U crowd postgres', $script, $node->host, $node->port ],
	'<', \$in, '>', \$out, '2>&1');
my $all = q{SELECT count(*) = 1000 FROM pg_stat_activity
	WHERE usename = 'crowd' AND wait_event = 'PgSleep'};
ok($node->poll_query_until('postgres', $all), 'a thousand sessions are active')
  or diag($out);
my $crowded = server_ms($node);

# Ticks continue with a thousand rows each. If a session is descheduled while it changes
# its entry, the entry cannot be read; that is rare, and counted.
my $rows = metric($node, 'rows_taken');
ok(wait_for_metric($node, 'rows_taken', "value::bigint >= $rows + 10000"),
	'ticks of a thousand rows are taken');
my $still_crowded = server_ms($node);
cmp_ok(metric($node, 'rows_failed'), '<=', 20, 'nearly every row could be read');

# All connections are in use. Connections of earlier queries may not have ended yet.
my $watcher = tacho_session($node, app => 'watcher');
$watcher->run(q{DO $$ BEGIN WHILE 1001 < (SELECT count(*) FROM pg_stat_activity
	WHERE backend_type = 'client backend') LOOP
	PERFORM pg_sleep(0.05), pg_stat_clear_snapshot(); END LOOP; END $$});
my @more = map { tacho_session($node, user => 'crowd', app => "more $_")->run('SELECT 1') } 1 .. 6;
like(refusal($node, 'crowd'),
	qr/FATAL:  (sorry, too many clients already|remaining connection slots are reserved for .*)/,
	'another client is refused');
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 5"),
	'the sampler goes on, as a superuser can see');
$_->finish for $watcher, @more;

# The lock table is full: no new session can connect.
my $locker = tacho_session($node, app => 'locker');
my $sampler = metric($node, 'sampler_pid');
$locker->run(q{DO $$ BEGIN FOR i IN 1 .. 1000000 LOOP PERFORM pg_advisory_lock(i);
	END LOOP; END $$});
like($locker->{out}, qr/ERROR:  out of shared memory/, 'the lock table is full');
like(refusal($node), qr/FATAL:  out of shared memory/, 'no new session can connect');
$locker->run(q{DO $$ DECLARE now bigint; before bigint; BEGIN LOOP
	SELECT value INTO now FROM tacho.status() WHERE metric = 'ticks_taken';
	before := coalesce(before, now);
	EXIT WHEN now >= before + 5;
	PERFORM pg_sleep(0.05);
	END LOOP; RAISE WARNING 'five more ticks'; END $$});
like($locker->{out}, qr/five more ticks/, 'the sampler goes on without room in the lock table');
$locker->finish;

# The writer has now not answered for half a minute.
ok(wait_for_metric($node, 'reason',
		"value = 'the tape writer (process $writer) does not answer'"),
	'status() says that the writer does not answer');
is(metric($node, 'recording'), 'off', 'status() says that recording is off');
my $stderr;
$node->psql('postgres', 'SELECT count(*) FROM tacho.samples()', stderr => \$stderr);
like($stderr, qr/NOTICE:  history is not being recorded: the tape writer \(process $writer\) does not answer/,
	'an answer has a notice of it');
note metric($node, 'bytes_buffered'), ' bytes are waiting';
kill 'CONT', $writer;
ok(wait_for_metric($node, 'recording', "value = 'on'"), 'the writer goes on');
ok(wait_until_written($node), 'all frames are written');
is(metric($node, 'writer_pid'), $writer, 'the writer is the same process');
is(metric($node, 'frames_lost'), '0', 'no frame is lost');
is(metric($node, 'sampler_pid'), $sampler, 'the sampler is the same process');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');

# The history of that time is complete.
is( $node->safe_psql('postgres', qq{
		SELECT DISTINCT count(*) FROM tacho.samples(since => @{[at($crowded)]}, until => @{[at($still_crowded)]},
			n => NULL, username => 'crowd', wait_event => 'PgSleep') GROUP BY tick}),
	'1000', 'each tick has a thousand sessions');
is( $node->safe_psql('postgres', qq{
		SELECT count(*) FROM tacho.markers(since => @{[at($stopped)]}) WHERE kind IN ('gap', 'frames lost')}),
	'0', 'the ticks have no gap');

$crowd->kill_kill;
$node->stop('immediate');

# The launcher of logical replication takes the last slot.
$node->append_conf('postgresql.conf', 'max_logical_replication_workers = 4');
$node->start;
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'a server without a place for the sampler accepts queries');
is(metric($node, 'recording'), 'off', 'a server without a place for the sampler does not record');
is( metric($node, 'reason'),
	'the sampler has not started (check "max_worker_processes")',
	'status() says what is missing');
like(slurp_file($node->logfile), qr/LOG:  too many background workers/, 'the log says what is missing');
is( $node->safe_psql('postgres', qq{
		SELECT count(*) > 0 FROM tacho.samples(since => @{[at($crowded)]}, until => @{[at($still_crowded)]}, username => 'crowd')}),
	't', 'the history from before can be read');
$node->stop;

done_testing();
