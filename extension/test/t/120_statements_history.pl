# The cost of statements over time: the sums of the history equal the executions,
# whatever happens to the statistics in between.
use strict;
use warnings;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStatements qw(pgbench_script);
use TachoStatus qw(metric);
use TachoTest qw(tacho_cluster wait_until_in_history wait_until_recorded);
use Test::More;
use Time::HiRes 'usleep';

# pg_stat_statements for comparison, if it is installed
my $contrib = -e PostgreSQL::Test::Cluster->new('probe')->config_data('--pkglibdir')
  . '/pg_stat_statements.so';
my $libraries = $contrib ? 'tacho, pg_stat_statements' : 'tacho';
my $program = PostgreSQL::Test::Utils::tempdir() . '/tacho';
symlink $ENV{TACHO_PROGRAM}, $program or die "symlink: $!";
my $node = tacho_cluster('history',
	conf => qq{
tacho.program = '$program'
shared_preload_libraries = '$libraries'
tacho.statements_interval = 500ms
tacho.statements_max = 100
tacho.statements_save_interval = 1s
pg_stat_statements.track_planning = off
jit = off
});
my $ever = "since => '2000-01-01', n => null";
my $only = "$ever, database => 'app'";

$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements') if $contrib;

sub record_every
{
	my ($interval) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET tacho.statements_interval = '$interval'");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	return;
}

sub history
{
	my ($what) = @_;
	return $node->safe_psql('postgres',
		"SELECT $what FROM tacho.statements_history($only)");
}

# Transactions of pgbench by several clients; returns its own count.
sub bench
{
	my ($script, $clients, $transactions) = @_;
	my ($out, $err) = run_command(
		[
			'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f',
			$script, '-c', $clients, '-t', $transactions, 'app'
		]);

	$out =~ m{transactions actually processed: (\d+)} or die "pgbench: $out $err";
	return $1;
}

sub start_again
{
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $node->start(fail_ok => 1);
		$node->{_pid} = undef;
		usleep(100_000);
	}
	die 'the server does not start';
}

# pgbench and pg_stat_statements count the same
my $script = pgbench_script($node, 'known',
	"SELECT count(*) FROM pg_class WHERE oid > 0;\n");
my $executed = bench($script, 4, 75);

wait_until_in_history($node);
is(history('sum(calls)'), $executed, "history has the $executed calls that pgbench made");
my $columns = 'calls, rows, shared_blks_hit + shared_blks_read';
SKIP:
{
	skip 'pg_stat_statements is not installed', 1 unless $contrib;
	is( history("query_id, $columns"),
		$node->safe_psql('postgres',
			"SELECT queryid, $columns FROM pg_stat_statements s
			 JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'app'"),
		'calls, rows and blocks equal pg_stat_statements');
}

# the mean is shown with 4 places
is( history('abs(total_exec_time - calls * mean_exec_time) <= calls * 0.00005,
	 p95_exec_time > 0, query_text, username = current_user'),
	't|t|SELECT count(*) FROM pg_class WHERE oid > $1|t',
	'a row has times, percentile, text and user');
for my $times ('total_exec_time', 'user_time + system_time')
{
	my $counted = $node->safe_psql('postgres', "SELECT $times FROM tacho.statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'app'");

	# each is stored in units of 10 us
	cmp_ok(abs(history($times) - $counted), '<', 0.02, "$times of the history equals the statistics");
}
is( $node->safe_psql('postgres',
		"SELECT sum(calls), min(calls) >= 0, count(*) > 1 FROM tacho.statements_history(
		 since => now() - interval '10 minutes', bucket => '1 second', database => 'app')"),
	"$executed|t|t", 'the buckets of a window add up to the window');

# the cost of a statement, beside the waits of its sessions
$node->safe_psql('app', 'SELECT pg_sleep(1.5)');
$executed++;
wait_until_in_history($node);
is( $node->safe_psql('postgres', "SELECT t.avg_aas > 0, t.query_text, calls, rows, mean_exec_time >= 1500
		FROM tacho.top('query_id', database => 'app') t
		JOIN tacho.statements_history($only) h USING (key)
		WHERE h.query_text ~ 'pg_sleep'"),
	't|SELECT pg_sleep($1)|1|1|t', 'top by query joins the history of statements');

# the load of an EXECUTE belongs to its statement
$node->safe_psql('app', 'PREPARE later AS SELECT pg_sleep($1), 2; EXECUTE later(1.5)');
$executed++;
wait_until_in_history($node);
is( $node->safe_psql('postgres', "SELECT t.avg_aas > 0, calls FROM tacho.top('query_id', database => 'app') t
		JOIN tacho.statements_history($only) h USING (key) WHERE h.query_text ~ 'later'"),
	't|1', 'an EXECUTE is seen executing its statement');
# functions in its arguments, and functions that the planner folds, start statements
# first
$node->safe_psql('postgres', q{
CREATE FUNCTION folded(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'WITH inner_of_folded AS MATERIALIZED (SELECT $1) SELECT * FROM inner_of_folded';
PREPARE folding AS SELECT pg_sleep($1), folded(2), 3, 4, 5;
EXECUTE folding(1.5 + folded(0))});
$node->poll_query_until('postgres', q{
	SELECT count(*) > 0 FROM tacho.samples(n => 10000) WHERE query_text ~ '^PREPARE folding'});
is($node->safe_psql('postgres', q{SELECT count(*) FROM tacho.samples(n => 10000) WHERE query_text ~ '^EXECUTE folding|inner_of_folded'}),
	'0', 'no sample has the EXECUTE or a statement that starts before its own');

# many more statements than there are entries
my $statements = join '', map { 'SELECT ' . join(', ', (1) x $_) . ";\n" } 1 .. 400;
# most statements of the first round are evicted before a record, however slow the
# machine is
record_every('1min');
for my $round (1 .. 3)
{
	$node->safe_psql('app', $statements);
	$executed += 400;
	record_every('500ms') if $round == 1;
	wait_until_in_history($node) if $round == 2;
}
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'evicted statements are in the sum, each once');
is( history('sum(calls)'),
	$node->safe_psql('postgres', "SELECT sum(calls) FROM tacho.statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'app'"),
	'the sum equals the statistics');
cmp_ok($node->safe_psql('postgres', 'SELECT evicted FROM tacho.statements_info'),
	'>', 600, 'hundreds were evicted');
cmp_ok(history("sum(calls) FILTER (WHERE key = '(evicted)')"),
	'>', 0, 'evicted statements that no row names are a row of their own');

# a reset takes nothing away and repeats nothing
$executed += bench($script, 2, 25);
wait_until_in_history($node);
$node->safe_psql('postgres', 'SELECT tacho.statements_reset()');
$executed += bench($script, 2, 35);
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'a reset makes no difference to the history');

# and it loses nothing that was counted just before
my $other = pgbench_script($node, 'other', "SELECT count(*) FROM pg_proc WHERE oid > 0;\n");
my $others = 0;
for (1 .. 8)
{
	$others += bench($other, 2, 10);
	$node->safe_psql('postgres', 'SELECT tacho.statements_reset()');
}
$executed += $others;
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'executions before a reset are in the history');
is(history("sum(calls) FILTER (WHERE query_text ~ 'FROM pg_proc')"), $others, 'executions before a reset have their statement');
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.markers(since => '2000-01-01')
	WHERE kind = 'statistics reset' AND detail = 'statistics of all statements were reset'"), 'a reset is marked');
$executed += bench($other, 2, 10);
$node->safe_psql('postgres', q{SELECT tacho.statements_reset(0, 0, queryid) FROM tacho.statements WHERE query ~ 'FROM pg_proc'});
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.markers(since => '2000-01-01')
	WHERE kind = 'statistics reset' AND detail = 'statistics of some statements were reset'"), 'a reset of one statement is marked as such');
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'a reset of one statement loses nothing');

# resets of a full table, with more unrecorded entries than free slots
for (1 .. 5)
{
	$node->safe_psql('app', $statements);
	$node->safe_psql('postgres', 'SELECT tacho.statements_reset()');
	$executed += 400;
}
$node->safe_psql('app', $statements);
$executed += 400;
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'resets of a full table lose nothing');

# the server is killed: counters loaded from the file were recorded before
$executed += bench($script, 2, 20);
wait_until_in_history($node);
$node->poll_query_until('postgres',
	"SELECT modification > now() - interval '5 seconds'
	 FROM pg_stat_file('pg_stat_tmp/tacho_statements.stat')");
$node->kill9;
start_again();
cmp_ok(
	$node->safe_psql('postgres', "SELECT sum(calls) FROM tacho.statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'app'"),
	'>', 0, 'the saved statistics are loaded');
$executed += bench($script, 2, 15);
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'loaded statistics make no difference to the history');

# a clean stop records the rest
$executed += bench($script, 2, 12);
$node->restart;
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'a restart loses no execution');
is( $node->safe_psql('postgres', "SELECT min(calls) >= 0 AND min(total_exec_time) >= 0
	 AND min(shared_blks_hit) >= 0 FROM tacho.statements_history($only)"),
	't', 'no counter is negative');

# rows that no writer has taken reach the history later, after a new start of the
# sampler or of the server
sub recorded_by_nobody
{
	rename $program, "$program.away" or die "rename: $!";
	kill 'KILL', metric($node, 'writer_pid');
	$node->poll_query_until('postgres',
		"SELECT value IS NULL OR value = '0' FROM tacho.status() WHERE metric = 'writer_pid'")
	  or die 'there is a writer';
	$executed += bench($script, 2, 10);
	wait_until_recorded($node);
	return;
}
wait_until_in_history($node);
recorded_by_nobody();
my $sampler = metric($node, 'sampler_pid');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($sampler)");
$node->poll_query_until('postgres', "SELECT value IS NOT NULL AND value <> '$sampler'
	FROM tacho.status() WHERE metric = 'sampler_pid'") or die 'no sampler';
rename "$program.away", $program or die "rename: $!";
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'a sampler that ends gives back the rows not written');
recorded_by_nobody();
$node->stop;
rename "$program.away", $program or die "rename: $!";
$node->start;
wait_until_in_history($node);
is(history('sum(calls)'), $executed, 'a restarted server gives back the rows not written');

# rights
$node->safe_psql('postgres', q{
CREATE ROLE guest LOGIN;
GRANT EXECUTE ON FUNCTION tacho.statements_history TO guest;
});
$node->safe_psql('app', 'SELECT 1, 2, 3, 4', extra_params => [ '-U', 'guest' ]);
wait_until_in_history($node);
$executed++;
is( $node->safe_psql('postgres',
		"SELECT username, calls FROM tacho.statements_history($only)",
		extra_params => [ '-U', 'guest' ]),
	'guest|1', 'a role without pg_read_all_stats sees its own statements');
my (undef, undef, $error) = $node->psql('postgres',
	"SELECT * FROM tacho.statements_history(order_by => 'beauty')");
like($error, qr/invalid order_by "beauty".*HINT:  Available orders are time, /s,
	'an order that does not exist is refused');

# the files alone give the same answer
my $tape = $node->data_dir . '/tacho';
$node->stop;
my ($json) = run_command(
	[
		$ENV{TACHO_PROGRAM}, 'statements-history', '--tape', $tape, '--since',
		'2000-01-01', '--n', 'all', '--database', 'app', '--json'
	]);
my $sum = 0;
$sum += $_->{calls} for @{ decode_json($json) };
is($sum, $executed, 'the command line finds the same without a server');

done_testing();
