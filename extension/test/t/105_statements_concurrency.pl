# Many backends on few entries: nothing lost, nothing invented.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster pgbench_script run_pgbench);

my $node = statements_cluster('concurrency', conf => "max_connections = 100\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

my $one = pgbench_script($node, 'one', "SELECT 1 AS hot;\n");
my $counts = q{select calls, rows, (select sum(b) from unnest(histogram) b) from tacho.statements where query ~* '^select .1 as hot$'};

# all clients execute one statement, while two sessions read
sql('select tacho.statements_reset()');
my $read = pgbench_script($node, 'read', 'select max(calls) from tacho.statements; select tacho.statements_reset(0, 1, 0);');
my $reader = IPC::Run::start(
	[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $read, '-c', 2, '-t', 150, 'postgres' ],
	'>', \my $out, '2>', \my $err);
my $done = run_pgbench($node, $one, '-c', 32, '-j', 2, '-t', 1000);
$reader->finish;
my $skipped = sql('select skipped from tacho.statements_info');
is(sql($counts), join('|', ($done - $skipped) x 3), 'calls, rows and histogram have all of 32,000 executions');
cmp_ok($skipped, '<', $done / 1000, 'few executions were skipped');
is(sql(q{select total_exec_time >= max_exec_time and min_exec_time > 0 and min_exec_time <= mean_exec_time
	and abs(mean_exec_time - total_exec_time / calls) < 1e-9 from tacho.statements where query ~* '^select .1 as hot$'}),
	't', 'total, mean, minimum and maximum agree');
is(sql(q{select n_sampled > 100 and n_sampled < calls / 4 from tacho.statements where query ~* '^select .1 as hot$'}),
	't', 'a frequent short statement has its CPU time sampled');

# how many: all up to 16, then of the next 48 one in four and of 960 one in
# sixteen on average. Distances are 16 to 112 parts of 64, and every second
# sample is of the usage
my $paced = pgbench_script($node, 'paced', "select pg_sleep(0.0004), 1 as paced;\n");
my $sampled = q{select n_sampled from tacho.statements where query ~* '^select pg_sleep.* as paced$'};
# ... and whatever has become long on a busy machine is measured, too. If the mean is long, each
# execution is: then the upper limits say nothing.
my $long = $sampled =~ s/n_sampled/(select coalesce(sum(n), 0) from unnest(histogram[13:]) n)/r;
my $longs = 0;
my $session = sub {
	my $before = sql($long) || 0;

	run_pgbench($node, $paced, '-c', 1, '-t', shift);
	$longs = sql($long) - $before;
	return sql($sampled);
};
sub at_most
{
	my ($measured, $limit, $name) = @_;
  SKIP: {
		skip "$name: $longs executions took more than 4 ms", 1 if $longs > 0;
		cmp_ok($measured, '<=', $limit, $name);
	}
	return;
}
is(my $exact = $session->(16), 16, 'the first executions of a statement are all measured');
my $quarter = $session->(48) - $exact;
cmp_ok($quarter, '>=', int(int(48 * 16 / 112) / 2), 'a quarter of the next executions is measured');
at_most($quarter, 48 * 16 / 16 / 2, 'at most half of the next executions is measured');
my $rest = $session->(960) - $exact - $quarter;
cmp_ok($rest, '>=', int(int(960 * 4 / 112) / 2), 'a sixteenth of later executions is measured');
at_most($rest, 960 * 4 / 16 / 2, 'at most an eighth of later executions is measured');

# sessions that end before a sample is due are sampled as long ones are: one
# execution in 128, wherever in its session it is
for my $n (16, 32)
{
	my $short = pgbench_script($node, "short$n", "select pg_sleep(0.0004), 1 as paced;\n" x $n);
	my ($before, $long_before) = (sql($sampled), sql($long));
	run_pgbench($node, $short, '-C', '-c', 1, '-t', 200);
	my ($some, $mean) = (sql($sampled) - $before, 200 * $n / 128);
	$longs = sql($long) - $long_before;
	cmp_ok($some, '>', $mean / 5, "some executions of sessions with $n executions are measured");
	at_most($some, 2.5 * $mean, 'at most two and a half times the mean of a long session is measured');
}

# where an execution takes next to nothing, it counts for four: of eight the
# first four are measured, and a quarter of the others
my $tiny = pgbench_script($node, 'tiny', join('', map { "with tiny$_ as (select 1) select from tiny$_;\n" } 1 .. 200));
run_pgbench($node, $tiny, '-c', 1, '-t', 8);
my ($all, $least, $total) = split /\|/,
	sql(q{select sum(calls), min(n_sampled), sum(n_sampled) from tacho.statements where query ~* '^with tiny'});
is($all, 1600, '200 tiny statements are executed eight times');
cmp_ok($least, '>=', 4, 'each of the tiny statements is measured four times at first');
cmp_ok($total, '<', 1300, 'later executions of the tiny statements are measured less often');

# two processes on one CPU: a statement has waited for it, and not for longer than
# the kernel says
my ($cpu) = qx(taskset -cp $$) =~ /: (\d+)/;
my $pinned = $node->background_psql('postgres');
my $pid = $pinned->query_safe('select pg_backend_pid()');
my $other = IPC::Run::start([ 'taskset', '-c', $cpu, 'perl', '-e', '1 while 1' ]);
system_log('taskset', '-cp', $cpu, $pid);
my $waited = sub { (split ' ', slurp_file("/proc/$pid/schedstat"))[1] / 1e6 };
my $already = $waited->();
$pinned->query_safe('select sum(i) as waits from generate_series(1, 300000) i') for 1 .. 10;
my $by_kernel = $waited->() - $already;
$other->kill_kill;
$pinned->quit;
my ($counted, $wait) = split /\|/, sql(q{select n_sampled, run_queue_time from tacho.statements where query ~ 'as waits'});
is($counted, 10, 'each execution is measured if there are few');
cmp_ok($wait, '>', 0, 'a wait for the CPU is counted');
cmp_ok($wait, '<=', $by_kernel, 'the wait for the CPU is at most the wait of the session');

# extremes reset under load: an old extreme must not come back
sql('select pg_sleep(0.3) as slow') for 1 .. 2;
my $mixed = pgbench_script($node, 'mixed', "select pg_sleep(0.0001) as slow;\n");
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $mixed, '-c', 8, '-T', 3600, 'postgres' ],
	'>', \my $out2, '2>', \my $err2);
$node->poll_query_until('postgres', q{select calls > 100 from tacho.statements where query ~ 'as slow$' and query !~ 'tacho'});
my ($before, $slow) = split /\|/, sql(q{select calls, max_exec_time from tacho.statements where query ~ 'as slow$' and query !~ 'tacho'});
cmp_ok($slow, '>=', 300, 'a slow execution is the maximum');
sql('select tacho.statements_reset(0, 0, 0, true)');
$node->poll_query_until('postgres', qq{select calls > $before + 500 from tacho.statements where query ~ 'as slow\$' and query !~ 'tacho'});
# on a busy machine another one may be slow, but not as slow to the last digit
is(sql(qq{select max_exec_time <> $slow and min_exec_time > 0 and total_exec_time > 600 from tacho.statements where query ~ 'as slow\$' and query !~ 'tacho'}),
	't', 'after a reset under load the maximum is gone, the total is not');
$bench->kill_kill;

# resets of everything while 16 backends count and evict
$node->append_conf('postgresql.conf', 'tacho.statements_max = 100');
$node->reload;
my $storm = pgbench_script($node, 'storm', "select tacho.statements_reset();\n");
my $churn = pgbench_script($node, 'churn', "\\set n random(1, 300)\nwith q:n as (select 1) select from q:n;\n");
my $resets = IPC::Run::start(
	[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $storm, '-c', 2, '-t', 250, 'postgres' ],
	'>', \my $out3, '2>', \my $err3);
run_pgbench($node, $churn, '-c', 16, '-j', 2, '-t', 500);
$resets->finish;
sql('select tacho.statements_reset()');
is(sql('select entries, evicted, skipped, text_bytes from tacho.statements_info'), '1|0|0|128',
	'after a storm of resets no count is left over');
run_pgbench($node, $one, '-c', 8, '-j', 2, '-t', 500);
is(sql(q{select calls from tacho.statements where query ~* '^select .1 as hot$'}), 4000, 'counts after a storm of resets are exact');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process of the server died');
done_testing();
