# Plans that are hard to record:
# - very large plans, and cached plans of tables that are gone
# - cursors that are read in turns, functions that run as another role
# - binary parameters, other extensions in the same hooks
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IO::Socket::UNIX;
use TachoTest qw(tacho_cluster);
use Test::More;

my $node = tacho_cluster('plan_attacks', conf => q{
tacho.sample_interval = 50ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
tacho.statements_track = all
max_parallel_workers_per_gather = 0
max_stack_depth = 6MB
jit = off
});
my $major = $node->pg_version->major;

sub sql { return $node->safe_psql('postgres', $_[0]) }

# The trees of the statements with a text, as EXPLAIN prints them without costs, once there
# are as many nodes as expected. `role` asks.
sub trees
{
	my ($text, $lines, $role) = @_;
	my $ids = sql("SELECT string_agg(DISTINCT format('%L, query_id => %L', plan_id, queryid), ';') FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE '%$text%' AND query NOT LIKE '%tacho%'");
	my $shown = '';

	for (1 .. 100)
	{
		$shown = join "\n", grep { $_ ne '' } map { sql(($role ? "SET ROLE $role; " : '') . "SELECT string_agg(explain, E'\\n' ORDER BY node_number) FROM tacho.plan($_)") } split /;/, $ids;
		$shown =~ s/  \(cost=[^)]*\)//g;
		last if ($shown =~ tr/\n//) + 1 >= $lines && $shown ne '';
		select undef, undef, undef, 0.1;
	}
	return $shown;
}

sql(<<'END');
CREATE TABLE docs (id int PRIMARY KEY, owner text, secret int);
INSERT INTO docs SELECT n, 'o' || n % 3, n FROM generate_series(1, 1000) n;
VACUUM ANALYZE docs;
CREATE ROLE alice;
CREATE ROLE bob;
GRANT USAGE ON SCHEMA tacho TO alice, bob;
GRANT EXECUTE ON FUNCTION tacho.plan TO alice, bob;
END

# a plan of 15,000 nodes; of 3,000 on 19, whose planner takes 87 s for the larger one, also
# without tacho
my $most = $major >= 19 ? 1_000 : 5_000;
my $branches = join ' UNION ALL ', map { "(SELECT id FROM docs WHERE secret = $_ LIMIT 1)" } 1 .. $most;
is(sql("SELECT count(*) AS wide FROM ($branches) u"), 1000, 'a plan of thousands of nodes has its result');
my $wide = trees('AS wide FROM', 100);
like($wide, qr/^Aggregate\n  ->  Append\n        ->  Subquery Scan on (?:"\*SELECT\* 1"|unnamed_subquery)\n              ->  Limit\n                    ->  Seq Scan on docs( docs_1)?\n                          Filter: \(secret = \?\)\n        ->  Subquery/, 'the tree of a large plan has its first node');
like($wide, qr/further nodes were not recorded[^\n]*$/, 'the tree of a large plan ends where it was cut');

# cached plans whose table was dropped, and made again in another form
my $again = q{PREPARE kept AS SELECT * FROM gone WHERE a = 1; EXECUTE kept; DROP TABLE gone; CREATE TABLE gone (a int); CREATE INDEX gone_a ON gone (a);
	SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; EXECUTE kept; SELECT 'end'};
is(sql("CREATE TABLE gone (a int); SET plan_cache_mode = force_generic_plan; $again"), 'end', 'a prepared statement runs on a table that was made again');
is(join("\n", sort split /\n/, trees('PREPARE kept', 4)),
	"  Filter: (a = ?)\n  Index Cond: (a = ?)\nIndex Scan using gone_a on gone\nSeq Scan on gone", 'the statement has both plans');
my ($failed, undef, $message) = $node->psql('postgres', 'PREPARE kept AS SELECT a FROM gone WHERE a = 2; EXECUTE kept; DROP TABLE gone; EXECUTE kept');
like($message, qr/ERROR:  relation "gone" does not exist/, 'a table that is gone gives the error of PostgreSQL');

# cursors that are read in turns
is(sql(q{BEGIN; DECLARE a CURSOR FOR SELECT id FROM docs WHERE id > 5 ORDER BY id; DECLARE b CURSOR FOR SELECT secret FROM docs WHERE secret > 7;
	FETCH 1 FROM a; FETCH 1 FROM b; MOVE 5 FROM a; FETCH 1 FROM b; FETCH 1 FROM a; CLOSE b; FETCH 1 FROM a; CLOSE a; COMMIT}), "6\n8\n9\n12\n13", 'cursors in turns');
SKIP:
{
	skip 'the query of a cursor has no identifier before 18', 2 if $major < 18;
	is(trees('DECLARE a', 2), "Index Only Scan using docs_pkey on docs\n  Index Cond: (id > ?)", 'the first cursor has its plan');
	is(trees('DECLARE b', 2), "Seq Scan on docs\n  Filter: (secret > ?)", 'the second cursor has its plan');
}

# a function that runs as another role: its plans belong to that role
sql(q{
	ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
	CREATE POLICY a ON docs TO alice USING (owner = 'o1');
	CREATE POLICY b ON docs TO bob USING (secret > 990);
	GRANT SELECT ON docs TO alice, bob;
	CREATE FUNCTION of_bob() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN (SELECT count(owner) FROM docs); END';
	ALTER FUNCTION of_bob() OWNER TO bob});
is(sql('SET ROLE alice; SELECT of_bob()'), 10, 'the function sees the rows of its owner');
like(trees('count(owner)', 2, 'bob'), qr/Filter: \(secret > \?\)/, 'the owner of the function sees the plan');
my $inner = sql("SELECT max(plan_id) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE '%count(owner)%' AND query NOT LIKE '%tacho%'");
is(sql("SET ROLE alice; SELECT count(*) FROM tacho.plan('$inner')"), 0, 'the caller of the function does not see its plan');
is(sql('SET ROLE alice; SELECT count(owner) FROM docs'), 334, 'the caller gets her own rows from the same statement');
is(trees('count(owner)', 3, 'alice'), "Aggregate\n  ->  Seq Scan on docs\n        Filter: (owner = ?)", 'the caller sees her own plan alone');

# parameters in binary form
sub message { return $_[0] . pack('N', 4 + length $_[1]) . $_[1] }

sub asked
{
	my ($query, $value) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "connect: $!";
	my $user = (getpwuid $<)[0];
	my $start = pack('N', 196608) . "user\0$user\0database\0postgres\0\0";

	print $socket pack('N', 4 + length $start) . $start;
	print $socket message('P', "\0$query\0" . pack('nN', 1, 23));
	print $socket message('B', "\0\0" . pack('nnnNNnn', 1, 1, 1, 4, $value, 1, 1));
	print $socket message('E', "\0" . pack('N', 0)) . message('S', '') . message('X', '');
	$socket->flush;
	local $/ = undef;
	return <$socket>;
}
my $answer = asked('SELECT id FROM docs WHERE 3 < secret AND secret = $1', 77);
like($answer, qr/D\0\0\0\x0e\0\x01\0\0\0\x04\0\0\0\x4d/, 'a query with a binary parameter gets its row');
is(trees('< secret AND secret', 2), "Seq Scan on docs\n  Filter: ((? < secret) AND (secret = ?))", 'a query with a binary parameter has its plan');

# texts as they are, and no texts: plans have no values either way
for my $texts (qw(raw off))
{
	sql("ALTER SYSTEM SET tacho.query_text = $texts");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('tacho.query_text') = '$texts'");
	sql("CREATE TABLE of_$texts (v text); SELECT * FROM of_$texts WHERE v = 'a value'");
	is(trees("FROM of_$texts WHERE", 2), "Seq Scan on of_$texts\n  Filter: (v = ?)", "a plan is kept while texts are $texts");
}
sql('ALTER SYSTEM RESET tacho.query_text');

# another extension explains each plan from its own hooks, inside and outside of tacho's
SKIP: {
	skip 'auto_explain is not installed', 4 unless -e $node->config_data('--pkglibdir') . '/auto_explain.so';
	for my $order ('tacho, auto_explain', 'auto_explain, tacho')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = '$order'\nauto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\nauto_explain.log_nested_statements = on\n");
		$node->restart;
		my $table = 'logged_' . ($order =~ /^tacho/ ? 'inside' : 'outside');
		sql("CREATE TABLE $table (a int); SELECT * FROM $table WHERE a = 5");
		is(trees("FROM $table WHERE", 2), "Seq Scan on $table\n  Filter: (a = ?)", "a plan is kept with $order");
		like(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/Query Text: SELECT \* FROM $table WHERE a = 5;?\n\s*Seq Scan on $table .*\n\s*Filter: \(a = 5\)/, 'the log has the plan too');
	}
}
$node->stop;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/PANIC|terminated by signal|reference leak|was not closed/, 'no process of the server died');
done_testing();
