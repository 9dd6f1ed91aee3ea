# A recorded plan says whether it was made for given values of its parameters (custom) or for
# any values (generic): EXECUTE, the extended protocol, PL/pgSQL, SPI and SQL functions.
use strict;
use warnings;
use TachoStatements qw(pgbench_script run_pgbench);
use TachoTest qw(tacho_cluster wait_until_in_history);
use Test::More;

my $node = tacho_cluster('plan_types', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.statements_interval = 500ms
tacho.statements_track = all
tacho.plan_text_rate = 10000
autovacuum = off
jit = off
enable_bitmapscan = off
max_parallel_workers_per_gather = 0
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(q{CREATE TABLE t (a int, b text);
	INSERT INTO t SELECT CASE WHEN n <= 50000 THEN 0 ELSE n END, 'x' FROM generate_series(1, 200000) n ORDER BY md5(n::text);
	CREATE INDEX t_a ON t (a); VACUUM ANALYZE t});

# The types of the recorded plans of the statements with this text, the first execution first.
sub types
{
	my ($like, $plans) = @_;
	my $types = '';

	for (1 .. 100)
	{
		$types = sql("SELECT string_agg(coalesce(plan_type, 'not known'), ' ' ORDER BY since) FROM tacho.statement_plans p JOIN tacho.statements s USING (userid, dbid, toplevel, queryid), "
			. "tacho.plan(p.plan_id::text, query_id => queryid::text) WHERE query LIKE '$like' AND query NOT LIKE '%tacho%' AND node_number = 1");
		last if split(/ (?!known)/, $types) == $plans;
		select undef, undef, undef, 0.1;
	}
	return $types;
}

# A condition that gives a query an identifier of its own.
my $conditions = 0;
sub own { return ' AND b IS NOT NULL' x ++$conditions }

sub function { return "CREATE FUNCTION $_[0](v int) RETURNS bigint LANGUAGE plpgsql AS \$\$ DECLARE r bigint; c refcursor; BEGIN $_[1] RETURN r; END \$\$" }

my %mode = map { $_ => "SET plan_cache_mode = force_${_}_plan;" } qw(custom generic);

sql('SELECT count(*) AS plain FROM t WHERE a = 7');
is(types('SELECT count(*) AS plain%', 1), 'not known', 'a query without parameters has no type');
for my $type (qw(custom generic))
{
	sql("$mode{$type} PREPARE p (int) AS SELECT count(*) AS executed_$type FROM t WHERE a = \$1" . own() . '; EXECUTE p(60000); EXECUTE p(60000)');
	is(types("%AS executed_$type%", 1), $type, "EXECUTE of a $type plan");
	sql(function("f_$type", "SELECT count(*) INTO r FROM t AS in_$type WHERE a = v" . own() . ';'));
	sql("$mode{$type} SELECT f_$type(60000); SELECT f_$type(60000)");
	is(types("SELECT count(*) % t AS in_$type%", 1), $type, "PL/pgSQL with a $type plan");
	sql(function("c_$type", "FOR r IN SELECT a FROM t AS loop_$type WHERE a = v" . own() . ' LOOP NULL; END LOOP;'));
	sql("$mode{$type} SELECT c_$type(60000)");
	is(types("SELECT a FROM t AS loop_$type%", 1), $type, "a loop of PL/pgSQL with a $type plan");
	my $script = pgbench_script($node, "q_$type", "\\set a random(60000, 70000)\nSELECT count(*) AS bound_$type FROM t WHERE a = :a" . own() . ";\n");
	local $ENV{PGOPTIONS} = "-c plan_cache_mode=force_${type}_plan";
	run_pgbench($node, $script, '-M', 'prepared', '-t', 3);
	is(types("%AS bound_$type%", 1), $type, "the extended protocol with a $type plan");
	# Bind plans these, Execute starts them
	my %change = (INSERT => "INSERT INTO changed_$type SELECT a FROM t WHERE a = :a", UPDATE => "UPDATE changed_$type SET a = a WHERE a < :a",
		RETURNING => "UPDATE changed_$type SET a = 1 WHERE a > :a RETURNING a", DELETE => "DELETE FROM changed_$type WHERE a <> :a");
	sql("CREATE TABLE changed_$type (a int)");
	for my $change (sort keys %change)
	{
		run_pgbench($node, pgbench_script($node, "${change}_$type", "\\set a random(60000, 70000)\n$change{$change};\n"), '-M', 'prepared', '-t', 3);
		is(types($change{$change} =~ s/:a|= 1/%/gr, 1), $type, "the extended protocol with a $type plan of $change");
	}
}
sql(function('dynamic', q{EXECUTE 'SELECT count(*) AS dynamic FROM t WHERE a = $1} . own() . q{' INTO r USING v;}));
sql('SELECT dynamic(60000)');
is(types('SELECT count(*) AS dynamic%', 1), 'custom', 'EXECUTE USING plans for its values');
sql(function('unused', "SELECT count(*) INTO r FROM t AS unused WHERE a = 5" . own() . ';'));
sql('SELECT unused(1)');
is(types('SELECT count(*) % t AS unused%', 1), 'not known', 'a statement of PL/pgSQL that uses no variable has no type');
sql("SET plan_cache_mode = force_generic_plan; PREPARE o (int) AS SELECT a + \$1 AS output FROM t WHERE a = 9; EXECUTE o(1)");
is(types('%AS output%', 1), 'not known', 'a generic plan without a parameter in its conditions is not known');

# an error between planning and execution leaves nothing for the next plan
sql(q{CREATE ROLE nobody; CREATE FUNCTION denied(v int) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r bigint; BEGIN
	BEGIN SELECT count(*) INTO r FROM t AS denied WHERE a = v} . own() . q{; EXCEPTION WHEN insufficient_privilege THEN r := -1; END; RETURN r; END $$});
is(sql("$mode{custom} SET ROLE nobody; SELECT denied(1); RESET ROLE; $mode{generic} SELECT denied(60000)"), "-1\n1", 'an execution is refused, the next one is not');
is(types('SELECT count(*) % t AS denied%', 1), 'generic', 'the plan of the execution that was not refused');

# a query that turns from a custom to a generic plan, and is slower since
my $turned = pgbench_script($node, 'turned', "\\set a random(199975, 199985)\nSELECT count(b) AS turned FROM t WHERE a > :a;\n");
my @times = sql('SELECT now()');
for my $type (qw(custom generic))
{
	local $ENV{PGOPTIONS} = "-c plan_cache_mode=force_${type}_plan";
	run_pgbench($node, $turned, '-M', 'prepared', '-c', 2, '-R', 20, '-t', 50);
	wait_until_in_history($node);
	push @times, sql('SELECT now()');
}
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM tacho.plan_changes() WHERE query_text LIKE '%AS turned%' AND inputs IS NOT NULL}) or die 'no change of plans';
is(sql(q{SELECT inputs FROM tacho.plan_changes() WHERE query_text LIKE '%AS turned%'}), 'plan: custom -> generic; setting plan_cache_mode: force_custom_plan -> force_generic_plan', 'plan_changes() says that the plan is generic now');
is(sql(q{SELECT string_agg(plan_type, ' ' ORDER BY first_seen) FROM tacho.plan_changes() c, tacho.plans(query_id => c.query_id::text) WHERE c.query_text LIKE '%AS turned%'}), 'custom generic', 'plans() has the type of each plan');
SKIP:
{
	my $version = sql('SHOW server_version_num');
	skip 'samples of prepared statements have no query identifier before 16.5', 1 if $version >= 160000 && $version < 160005;

	my $windows = "before_since => '$times[0]', before_until => '$times[1]', since => '$times[1]', until => '$times[2]'";
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.changes($windows) WHERE rule = 'planner input'") or die 'no input of the planner';
	like(sql("SELECT explanation FROM tacho.changes($windows) WHERE rule = 'planner input'"), qr/^other inputs of the planner: plan: custom -> generic; setting plan_cache_mode/, 'the generic plan is the cause of the slower query');
}
$node->stop;
done_testing();
