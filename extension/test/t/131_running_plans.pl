# A sample has the id of the plan that its session executes, however the plan
# came to be executed: prepared, by a cursor, in a function, in a parallel worker.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('running_plans');
my $parallel = $node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';

$node->safe_psql('postgres', <<'END');
CREATE TABLE small (id int);
INSERT INTO small SELECT generate_series(1, 20);
CREATE INDEX ON small (id);
CREATE FUNCTION inner_query() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..2 LOOP PERFORM pg_sleep(0.5) FROM small WHERE id = 1; END LOOP;
END $$;
CREATE FUNCTION failing() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 / (id - 1) FROM small;
EXCEPTION WHEN division_by_zero THEN
END $$;
CREATE PROCEDURE inner_call() LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(1) FROM small WHERE id = 1;
END $$;
VACUUM ANALYZE small;
END

my $query = 'SELECT pg_sleep(1) FROM small WHERE id';
my $index = "SET enable_seqscan = off; SET enable_bitmapscan = off;";
my $table = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;';
my $prepared = "SET plan_cache_mode = force_generic_plan; PREPARE q (int) AS $query = \$1; EXECUTE q(0); EXECUTE q(1);";

my $begin = server_ms($node);

# name => script, a session each
my %sessions = (
	table => "$table $query = 1",
	index => "$index $query = 1",
	'another constant' => "$index $query = 2",
	'cached, table' => "$table $prepared",
	'cached, index' => "$index $prepared",
	cursors => "BEGIN; SET LOCAL client_min_messages = error;
		$table DECLARE a CURSOR FOR $query IN (1, 2); $index RESET enable_indexscan; RESET enable_indexonlyscan;
		DECLARE b CURSOR FOR $query = 1; FETCH a; FETCH b; FETCH a; COMMIT",
	constant => 'SELECT pg_sleep(1)',
	function => 'SELECT inner_query()',
	procedure => "$table CALL inner_call()",
	'after an error' => "$table SELECT failing(); SELECT 1 / 0; BEGIN; SELECT 1 / 0; ROLLBACK; $query = 1",
	'two in one message' => "$index $query = 1\\; SELECT pg_sleep(1)",
	parallel => "SET $parallel = on; $table SELECT pg_sleep(2) FROM small WHERE id = 1",
);

# the plans of each session's samples in their order, one after another
sub plans
{
	return map { my ($name, $type, $plans) = split /\|/; ($name . ($type eq 'client backend' ? '' : ", $type") => $plans) }
		split /\n/, $node->safe_psql('postgres', <<"END");
WITH s AS (SELECT *, lag(plan_id) OVER (PARTITION BY application, pid ORDER BY sample_time) AS before
  FROM tacho.samples(since => @{[at($begin)]}, n => 100000) WHERE application LIKE 'p:%' AND wait_event IN ('PgSleep', 'ExecuteGather'))
SELECT substr(application, 3), backend_type, string_agg(coalesce(plan_id::text, 'none'), ' ' ORDER BY sample_time)
  FROM s WHERE plan_id IS DISTINCT FROM before GROUP BY 1, 2
END
}

my @running = map {
	my $session = tacho_session($node, app => "p:$_");
	$session->send("$sessions{$_};\n");
	$session;
} sort keys %sessions;
$_->finish for @running;

wait_for_ticks($node, 3, server_ms($node));

my %is = plans();
my ($by_table, $by_index, $constant) = @is{qw(table index constant)};

like($_, qr/^[1-9][0-9]*$/, "a session has a plan id: $_") for $by_table, $by_index, $constant;
isnt($by_table, $by_index, 'a scan of the table is another plan than one of the index');
is($is{'another constant'}, $by_index, 'another constant is the same plan');
is($is{'cached, table'}, $by_table, 'EXECUTE of a cached plan has the id of the table scan');
is($is{'cached, index'}, $by_index, 'EXECUTE of a cached plan has the id of the index scan');
is($is{cursors}, "$by_table $by_index $by_table", 'two cursors in turns have their plans');
is($is{function}, $constant, 'a sample has the outermost plan, not the plan of a function');
is($is{procedure}, $by_table, 'a procedure has the plan of its statement');
is($is{'after an error'}, $by_table, 'a statement after errors has its plan');
is($is{'two in one message'}, "$by_index $constant", 'two statements of one message have their plans');
like($is{parallel}, qr/^[1-9][0-9]*$/, 'the leader of a parallel query has its plan');
is($is{'parallel, parallel worker'}, $is{parallel}, 'a parallel worker has the plan of its leader');

# EXPLAIN has the same id where it shows one
SKIP:
{
	skip 'EXPLAIN has no id before 18', 1 if $node->pg_version < 18;
	like($node->safe_psql('postgres', "$table EXPLAIN (VERBOSE) $query = 1"),
		qr/Plan Identifier: $by_table$/m, 'EXPLAIN (VERBOSE) shows the plan id');
}

$node->stop;
done_testing();
