# The recording of a plan never harms the query that is recorded. Memory is refused at
# each allocation; a cancel and a termination arrive there. The query has its result, or
# the error of the cancel, and the next execution is recorded.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $library = PostgreSQL::Test::Utils::tempdir() . '/faults.so';

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -O1 -g -fPIC -shared -o $library -I '" . config('--includedir-server')
	  . "' '$FindBin::RealBin/../unit/faults.c' -ldl") == 0
  or die 'could not build the library of faults';

my $node = tacho_cluster('plan_faults', start => 0, conf => q{
tacho.sample_interval = 50ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
tacho.plan_actuals = off
tacho.statements_track = all
jit = off
});
{
	local $ENV{LD_PRELOAD} = $library;
	$node->start;
}

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(qq{
	CREATE EXTENSION tacho;
	CREATE FUNCTION faults_arm(fault int, number int) RETURNS void LANGUAGE c AS '$library';
	CREATE FUNCTION faults_left() RETURNS int LANGUAGE c AS '$library'});

my $scan = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on;';
my $index = 'SET enable_seqscan = off; SET enable_indexonlyscan = on;';

# The scans of the recorded plans that read a table, recorded until a moment.
sub recorded
{
	my ($table, $until_ms) = @_;

	return sql(qq{
		SELECT string_agg(DISTINCT node_type, ', ' ORDER BY node_type)
		  FROM (SELECT DISTINCT plan_id FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)
		     WHERE query LIKE 'SELECT count(*) FROM $table WHERE%') p, tacho.plan(p.plan_id::text)
		  WHERE relation = '$table' AND recorded_at <= @{[at($until_ms)]}});
}

# Executes the plan again. Returns the plans that were recorded before, and afterwards.
sub recorded_before_and_after
{
	my ($table) = @_;

	wait_for_ticks($node, 3, server_ms($node));
	my $before = server_ms($node);
	# a tree has the time of its tick, which is before the execution if the sampler had to wait
	wait_for_ticks($node, 2, $before);
	sql("$index SELECT count(*) FROM $table WHERE a = 5");
	for (1 .. 100)
	{
		last if recorded($table, server_ms($node)) =~ /Index/;
		select undef, undef, undef, 0.1;
	}
	return recorded($table, $before) . '; ' . recorded($table, server_ms($node));
}

# Executes a plan that is not recorded yet, with a fault at an allocation. Returns the
# table, the output and the message. The output ends with the allocations that were left.
my $tables = 0;
sub with_fault
{
	my ($fault, $number) = @_;
	my $table = 'faults_' . ++$tables;
	my $query = "SELECT count(*) FROM $table WHERE a = 5";

	sql("CREATE TABLE $table (a int); INSERT INTO $table SELECT generate_series(1, 50); CREATE INDEX ON $table (a); VACUUM ANALYZE $table; $scan $query");
	my ($status, $out, $message) = $node->psql('postgres',
		"SELECT faults_left() + 1; $index SELECT faults_arm($fault, $number); $query; SELECT faults_left()", on_error_stop => 0);
	return ($table, join(' ', split /\s+/, $out), $message);
}

my ($refuse, $cancel, $terminate) = 0 .. 2;
my ($seen, $unseen) = ('Index Only Scan, Seq Scan; Index Only Scan, Seq Scan', 'Seq Scan; Index Only Scan, Seq Scan');

for my $allocation (1, 2)
{
	my ($table, $out, $message) = with_fault($refuse, $allocation);
	is("$out$message", '1 1 0', "allocation $allocation was refused, and the query has its result");
	is(recorded_before_and_after($table), $unseen, 'the plan is recorded at the next execution');

	($table, $out, $message) = with_fault($cancel, $allocation);
	is($out, '1 0', 'a cancelled query has no result');
	like($message, qr/^psql:.*ERROR:  canceling statement due to user request$/, 'the cancelled query has the error of the cancel');
	is(recorded_before_and_after($table), $seen, 'the plan of the cancelled query is recorded');

	($table, $out, $message) = with_fault($terminate, $allocation);
	is($out, '1', 'a terminated session has no result');
	like($message, qr/FATAL:  terminating connection due to administrator command/, 'the terminated session has the error of the termination');
	is(recorded_before_and_after($table), $seen, 'the plan of the terminated session is recorded');
}
my ($table, $out, $message) = with_fault($refuse, 3);
is("$out$message", '1 1 1', 'a query has no third allocation to refuse');
is(recorded_before_and_after($table), $seen, 'the plan is recorded');

# Executes a slow plan of 32 nodes once, then with a fault while its rows are counted. The
# allocations are: the counts, and the two of the tree at the end.
sub counted_with_fault
{
	my ($fault, $number) = @_;
	my $table = 'faults_' . ++$tables;
	my $query = "SELECT (SELECT pg_sleep(0.01)) AS s, count(*) FROM $table";

	sql("CREATE TABLE $table (a int) PARTITION BY LIST (a);"
		  . join '', map { "CREATE TABLE ${table}_$_ PARTITION OF $table FOR VALUES IN ($_); INSERT INTO $table VALUES ($_);" } 1 .. 28);
	sql("SET tacho.plan_actuals = on; ANALYZE $table; $query");
	my ($status, $out, $message) = $node->psql('postgres',
		"SELECT faults_left() + 1; SET tacho.plan_actuals = on; SELECT faults_arm($fault, $number); $query; SELECT faults_left()", on_error_stop => 0);
	return ($table, $query, join(' ', split /\s+/, $out), $message);
}

# The counted rows of the root, and whether they are a lower bound, once they are recorded.
sub counted
{
	my ($table) = @_;
	my $ids = sql("SELECT format('%L, query_id => %L', plan_id, queryid) FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)"
		  . " WHERE query LIKE '%count(*) FROM $table' AND query NOT LIKE '%tacho%'");

	for (1 .. 100)
	{
		my $found = sql("SELECT actual_rows || ' ' || is_lower_bound FROM tacho.plan($ids) WHERE node_number = 1 AND measured_at IS NOT NULL");
		return $found if $found ne '';
		select undef, undef, undef, 0.1;
	}
	return 'none';
}

my $query;
($table, $query, $out, $message) = counted_with_fault($refuse, 1);
is("$out$message", '1 |28 0', 'memory for the counts was refused, and the query has its result');
sql("SET tacho.plan_actuals = on; $query");
is(counted($table), '1.0000 false', 'the rows of the next execution are counted');
my @refused = map { [ counted_with_fault($refuse, $_) ] } 2, 3;
is("$_->[2]$_->[3]", '1 |28 0', 'memory for the tree was refused, and the query has its result') for @refused;
($table, $query, $out, $message) = counted_with_fault($cancel, 1);
is($out, '1 0', 'a cancelled query has no result');
is(counted($table), '0.0000 true', 'the rows of a cancelled query are lower bounds');
($table, $query, $out, $message) = counted_with_fault($terminate, 1);
like($message, qr/FATAL:  terminating connection due to administrator command/, 'the terminated session has the error of the termination');
($table, $query, $out, $message) = counted_with_fault($refuse, 4);
is("$out$message", '1 |28 1', 'an execution has no fourth allocation to refuse');
is(counted($table), '1.0000 false', 'the rows are counted');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|reference leak|was not closed|not owned/, 'no process of the server died, no reference is left');
done_testing();
