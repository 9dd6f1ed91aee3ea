# tacho.changes() names the planner's input that gave a query another plan: a setting of its
# sessions has no marker.
use strict;
use warnings;
use TachoStatements qw(pgbench_script run_pgbench);
use TachoTest qw(tacho_cluster wait_until_in_history);
use Test::More;

my $node = tacho_cluster('planner_input_cause', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.statements_interval = 1s
tacho.plan_text_rate = 10000
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql('CREATE TABLE t (a int, b text); INSERT INTO t SELECT n, n FROM generate_series(1, 300000) n; CREATE INDEX t_a ON t (a); VACUUM ANALYZE t');
my $lookup = pgbench_script($node, 'lookup', "\\set a random(1, 300000)\nSELECT b FROM t WHERE a = :a;\n");
my @times = sql('SELECT now()');
for my $options ('', '-c enable_indexscan=off -c enable_bitmapscan=off')
{
	local $ENV{PGOPTIONS} = $options;
	run_pgbench($node, $lookup, '-c', 2, '-R', 20, '-t', 50);
	wait_until_in_history($node);
	push @times, sql('SELECT now()');
}
my $windows = "before_since => '$times[0]', before_until => '$times[1]', since => '$times[1]', until => '$times[2]'";
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.changes($windows) WHERE rule = 'planner input'") or die 'no input of the planner';
my $id = sql(q{SELECT queryid FROM tacho.statements WHERE query LIKE 'SELECT b FROM t%'});
my $inputs = 'setting enable_bitmapscan: default -> off; setting enable_indexscan: default -> off';
is( sql("SELECT kind, dimension, key, explains, split_part(explanation, ',', 1), split_part(next, ' --since', 1) FROM tacho.changes($windows) WHERE rule = 'planner input'"),
	"cause|planner|$inputs|$id|other inputs of the planner: $inputs|tacho plan-changes --query-id=$id",
	'the settings of the sessions are the cause of the slower query');
sql('CREATE ROLE reader; GRANT USAGE ON SCHEMA tacho TO reader; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO reader');
is(sql("SET ROLE reader; SELECT count(*) FROM tacho.changes($windows) WHERE rule = 'planner input'"), 0, 'a role that may not read texts sees no input of the planner');
$node->stop;
done_testing();
