# Rights to the trees of plans; plans that are too large.
use strict;
use warnings;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plan_rights', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
jit = off
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Rows of a question, once there are some.
sub once_there
{
	my ($query, $role) = @_;

	for (1 .. 600)
	{
		my $out = sql(($role ? "SET ROLE $role; " : '') . $query);
		return $out if $out ne '';
		select undef, undef, undef, 0.1;
	}
	return 'nothing';
}

sql(<<'END');
CREATE ROLE alice;
CREATE ROLE bob;
CREATE TABLE docs (id int, alices_secret int, bobs_secret int);
INSERT INTO docs SELECT n, n, n FROM generate_series(1, 100) n;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY a ON docs TO alice USING (alices_secret < 50);
CREATE POLICY b ON docs TO bob USING (bobs_secret > 60);
GRANT SELECT ON docs TO alice, bob;
GRANT USAGE ON SCHEMA tacho TO alice, bob;
GRANT EXECUTE ON FUNCTION tacho.plan TO alice, bob;
END
sql("SET ROLE $_; SELECT id FROM docs") for qw(alice bob);
my $ids = sql("SELECT DISTINCT plan_id FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query = 'SELECT id FROM docs'");
like($ids, qr/^\d+$/, 'both roles have the same plan');
my $condition = "SELECT string_agg(username || ': ' || condition, ', ') FROM tacho.plan('$ids'";

is(once_there("$condition, username => 'alice')"), 'alice: Filter: (alices_secret < ?)', 'the tree of alice has her policy');
is(once_there("$condition, username => 'bob')"), 'bob: Filter: (bobs_secret > ?)', 'the tree of bob has his policy');
is(once_there("$condition)", 'alice'), 'alice: Filter: (alices_secret < ?)', 'alice sees the plan with her policy');
is(once_there("$condition)", 'bob'), 'bob: Filter: (bobs_secret > ?)', 'bob sees the plan with his policy');
is(sql("SET ROLE alice; $condition, username => 'bob')"), 'alice: Filter: (alices_secret < ?)', 'a role cannot ask for the plan of another one');

# a temporary table has no schema that another session knows
sql('CREATE TEMP TABLE scratch (id int); SELECT * FROM scratch WHERE id = 4');
my $temporary = sql("SELECT max(plan_id) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE 'SELECT * FROM scratch%'");
is(once_there("SELECT schema || '.' || relation FROM tacho.plan('$temporary')"), 'pg_temp.scratch', 'the plan of a temporary table is kept');

# most of 1,000 partitions are counted only; a plan that is too large is cut, visibly
sub plan_of { return sql("SELECT max(plan_id) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE '$_[0]%'") }
sql('CREATE TABLE parts (id int) PARTITION BY RANGE (id)');
sql("DO \$\$ BEGIN FOR i IN 0 .. 999 LOOP EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i * 10, i * 10 + 10); END LOOP; END \$\$");
sql('SELECT * FROM parts WHERE id <> 5');
my $large = plan_of('SELECT * FROM parts');
is(once_there("SELECT count(*) || ' ' || max(condition) FILTER (WHERE node_type = 'Append') FROM tacho.plan('$large') HAVING count(*) > 0"),
	'65 Partitions Not Listed: 936', 'the plan of 1,000 partitions is kept');
sql('SELECT count(*) FROM (' . join(' UNION ALL ', map { "SELECT id FROM docs WHERE id = $_" } 1 .. 2_000) . ') u');
my $union = plan_of('SELECT count(*) FROM (SELECT id FROM docs');
is(once_there("SELECT count(*) > 200 AND (array_agg(explain ORDER BY node_number DESC))[1] LIKE '%further nodes were not recorded%' FROM tacho.plan('$union') HAVING count(*) > 0"),
	't', 'the plan of 2,000 parts is cut');
is(sql('SELECT 1'), 1, 'the server goes on after a plan of thousands of nodes');

done_testing();
