# tacho.statement_plans: the costs of each plan of a statement. The plans of a statement
# always add up to the statement.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(tacho_session);
use TachoStatements qw(pgbench_script run_pgbench statements_cluster);
use Test::More;

my $node = statements_cluster('plans');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (a int, b int, c int, d text);
INSERT INTO t SELECT n, n % 10, n, 'x' FROM generate_series(1, 1000) n;
CREATE INDEX ON t (a);
CREATE INDEX ON t (b);
VACUUM ANALYZE t;
CREATE ROLE reader;
END

my $by_index = 'RESET ALL; SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $by_bitmap = 'RESET ALL; SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;';
my $by_table = 'RESET ALL; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;';
my $query = 'SELECT count(d) FROM t WHERE a <';

sub run_query { my ($settings, @constants) = @_; $node->safe_psql('postgres', join ' ', $settings, map { "$query $_;" } @constants); return }

# "calls rows known" of each plan of a query, in their order of appearance
sub plans_of
{
	my ($text) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT p.calls || ' ' || p.rows || ' ' || (p.plan_id IS NOT NULL)::text
		  FROM tacho.statement_plans p JOIN tacho.statements s USING (userid, dbid, toplevel, queryid)
		 WHERE s.query LIKE '$text%' ORDER BY p.since NULLS FIRST});
}

# number of statements with plans whose plans do not add up to the statement
my $differences = q{
	SELECT count(*) FROM tacho.statements s JOIN (
		SELECT userid, dbid, toplevel, queryid, sum(calls) AS calls, sum(total_exec_time) AS total_exec_time, sum(rows) AS rows,
		       sum(shared_blks_hit) AS shared_blks_hit, sum(shared_blks_read) AS shared_blks_read, sum(temp_blks_written) AS temp_blks_written, sum(cpu_time) AS cpu_time
		  FROM tacho.statement_plans GROUP BY 1, 2, 3, 4) p USING (userid, dbid, toplevel, queryid)
	 WHERE query NOT LIKE '%tacho.%' AND (
		p.calls <> s.calls OR abs(p.cpu_time - s.user_time - s.system_time) > 1e-6 * (s.user_time + s.system_time) OR abs(p.total_exec_time - s.total_exec_time) > 1e-6 * s.total_exec_time OR p.rows <> s.rows OR
		p.shared_blks_hit <> s.shared_blks_hit OR p.shared_blks_read <> s.shared_blks_read OR p.temp_blks_written <> s.temp_blks_written)};

run_query($by_index, 10, 20, 30);
is(plans_of($query), '3 3 true', 'a statement of one plan has all executions in it');
run_query($by_table, 1 .. 5);
is(plans_of($query), "3 3 true\n5 5 true", 'another plan has its own executions');
run_query($by_index, 40);
run_query($by_table, 50);
is(plans_of($query), "4 4 true\n6 6 true", 'both plans go on counting');
is( $node->safe_psql('postgres', "SELECT count(*) FROM tacho.statement_plans WHERE max_exec_time < mean_exec_time OR max_exec_time IS NULL"),
	0, 'the maximum of each plan is at least its mean');
is( $node->safe_psql('postgres', qq{
		SELECT count(DISTINCT plan_id) FROM tacho.statement_plans JOIN tacho.statements USING (queryid)
		 WHERE query LIKE '$query%'}),
	2, 'each plan has an id of its own');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)
		 WHERE query ~ '^(SET|VACUUM|CREATE)'}),
	0, 'commands without a plan have none');

# the CPU time of parallel workers is their plan's, also when its leader does nothing
$node->safe_psql('postgres', 'CREATE TABLE big AS SELECT n AS a FROM generate_series(1, 300000) n; VACUUM ANALYZE big');
my $cpu = sub { $node->safe_psql('postgres', q{SELECT round(cpu_time::numeric, 3) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)
	WHERE query LIKE 'SELECT sum(sqrt(a))%' ORDER BY since}) };
my $sum = 'SELECT sum(sqrt(a)) FROM big WHERE a > 7';
$node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 0; $sum");
my $alone = $cpu->();
cmp_ok($alone, '>', 0, 'a plan without workers has CPU time');
my $by_workers = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;';
like($node->safe_psql('postgres', "$by_workers EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sum"), qr/Workers Launched: [1-9]/, 'workers are launched');
$node->safe_psql('postgres', "$by_workers $sum");
my ($first, $second) = split /\n/, $cpu->();
is($first, $alone, 'the other plan gets nothing of the CPU time of workers');
cmp_ok($second, '>', $alone / 4, 'the plan with workers has their CPU time');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');
$node->safe_psql('postgres', "$by_workers PREPARE s AS $sum; EXECUTE s");
is((split /\n/, $cpu->())[0], $alone, 'the other plan gets nothing of workers of a prepared statement');

# a function's query has workers: the plan of the statement that calls the function has their time
my $perform = $sum =~ s/SELECT/PERFORM/r;
$node->safe_psql('postgres', "CREATE FUNCTION sum_by_workers() RETURNS int LANGUAGE plpgsql AS \$\$BEGIN $perform; RETURN 1; END\$\$");
my $calling = 'SELECT count(d), sum_by_workers() FROM t WHERE a <';
my $cpu_of_calling = sub { split /\n/, $node->safe_psql('postgres', q{SELECT round(cpu_time::numeric, 3) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)
	WHERE query LIKE 'SELECT count(d), sum_by_workers%' ORDER BY since}) };
$node->safe_psql('postgres', "$by_index SET max_parallel_workers_per_gather = 0; $calling 10; $by_table SET max_parallel_workers_per_gather = 0; $calling 10;");
my @alone = $cpu_of_calling->();
$node->safe_psql('postgres', "$by_table $by_workers $calling 10;");
my @helped = $cpu_of_calling->();
is($helped[0], $alone[0], 'the first plan gets nothing of workers that a function of the second one has');
cmp_ok($helped[1] - $alone[1], '>', $alone[1] / 4, 'the second plan has their CPU time');
$node->safe_psql('postgres', "CREATE PROCEDURE p() LANGUAGE plpgsql AS \$\$BEGIN $perform; END\$\$; $by_workers CALL p()");
is( $node->safe_psql('postgres', q{SELECT s.user_time + s.system_time > 0, (SELECT count(*) FROM tacho.statement_plans p WHERE p.queryid = s.queryid) FROM tacho.statements s WHERE query LIKE 'CALL%'}),
	't|0', 'a procedure whose query has workers has no plan');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');

# more than four plans: the least recently executed ones make room
my $many = 'SELECT count(*) FROM t x JOIN t y USING (a) WHERE x.b = ';
my $joins = sub { join ' ', map { 'SET enable_' . ($_ eq $_[0] ? "$_ = on;" : "$_ = off;") } qw(hashjoin mergejoin nestloop) };
$node->safe_psql('postgres', "$_ $many 1; $many 2;")
  for map { my $scan = $_; map { "$scan " . $joins->($_) } qw(hashjoin mergejoin nestloop) } $by_table, $by_bitmap;
my @rows = split /\n/, plans_of('SELECT count(*) FROM t x JOIN');
is(scalar @rows, 5, 'a statement has four plans and a row for the others');
is($rows[0], '4 4 false', 'two plans of two executions each have made room');
is("@rows[1 .. 4]", join(' ', ('2 2 true') x 4), 'the latest four plans have their counters');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');

# a role that may not see the text sees the costs of plans, but neither query nor plan
is( $node->safe_psql('postgres', q{SET ROLE reader;
		SELECT count(*) > 0, count(queryid), count(plan_id) FROM tacho.statement_plans WHERE userid = 10}),
	't|0|0', 'queries and plans of others are hidden');

# sessions that execute the same statements by different plans at once
$node->safe_psql('postgres', 'SELECT tacho.statements_reset()');
my @scripts = map { pgbench_script($node, "plan_$_->[0]", "$_->[1]\nSELECT count(d) /* c */ FROM t WHERE a < 10;\n") }
  [ index => $by_index =~ s/; /;\n/gr ], [ table => $by_table =~ s/; /;\n/gr ];
my $executed = run_pgbench($node, $scripts[0], '-f', $scripts[1], '-c', 8, '-j', 2, '-t', 300);
is($executed, 2400, 'eight sessions have executed two plans');
is( $node->safe_psql('postgres', q{SELECT s.calls, sum(p.calls), count(*) FROM tacho.statement_plans p JOIN tacho.statements s USING (userid, dbid, toplevel, queryid)
		 WHERE query LIKE '%/* c */%' GROUP BY 1}),
	'2400|2400|2', 'no execution is lost or counted twice');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');

# many more statements than places: sets of plans go with their statements
$node->append_conf('postgresql.conf', "tacho.statements_max = 100\ntacho.statements_max_reserved = 100");
$node->restart;
my $churn = join '', map { my $n = $_; map { "$_ SELECT count(*) AS n$n FROM t WHERE a < 5;\n" } $by_index, $by_table } 1 .. 300;
$node->safe_psql('postgres', $churn);
is( $node->safe_psql('postgres', q{SELECT plans_missing FROM tacho.statements_info}), 0, 'new statements get sets of plans');
is( $node->safe_psql('postgres', q{SELECT count(*) FROM tacho.statements s WHERE query ~ 'AS n2[5-9][0-9] ' AND
		(SELECT count(*) FROM tacho.statement_plans p WHERE p.queryid = s.queryid AND p.calls = 1) <> 2}),
	0, 'the latest statements have their two plans');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');

# counts from before the server's start have no plan
$node->safe_psql('postgres', 'SELECT tacho.statements_reset()');
run_query($by_index, 1 .. 3);
$node->restart;
is(plans_of($query), '', 'a restored statement has none before it is executed');
run_query($by_table, 1 .. 2);
is(plans_of($query), "3 3 false\n2 2 true", 'executions before the restart have no plan, later ones have');
run_query($by_index, 7);
is(plans_of($query), "3 3 false\n2 2 true\n1 1 true", 'another plan after the restart is counted separately');
is($node->safe_psql('postgres', $differences), 0, 'plans add up to their statements');

# the workers of a statement end before it is cancelled, then the server is restarted
my $locks = tacho_session($node);
$locks->run('SELECT pg_advisory_lock(1)');
my $cancelled = tacho_session($node);
$cancelled->send("$by_workers SELECT pg_advisory_xact_lock(1) FROM (SELECT sum(sqrt(a)) AS s FROM big OFFSET 0) x WHERE s > 0");
$node->poll_query_until('postgres', q{SELECT count(*) FILTER (WHERE wait_event = 'advisory') = 1 AND count(*) FILTER (WHERE backend_type = 'parallel worker') = 0 FROM pg_stat_activity}) or die 'workers do not end';
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'});
$_->finish for $cancelled, $locks;
my $left = $node->safe_psql('postgres', q{SELECT calls, user_time + system_time > 0 FROM tacho.statements WHERE query ~ '^SELECT pg_advisory_xact_lock'});
is($left, '0|t', 'a cancelled statement has the CPU time of workers that had ended');
is($node->safe_psql('postgres', $differences), 0, 'plans without a call add up to their statements');
$node->restart;
$node->safe_psql('postgres', "$by_workers SELECT pg_advisory_xact_lock(1) FROM (SELECT sum(sqrt(a)) AS s FROM big OFFSET 0) x WHERE s > 0");
is($node->safe_psql('postgres', $differences), 0, 'CPU time without a call from before a restart has a row');

$node->stop;
done_testing();
