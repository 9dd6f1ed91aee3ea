# tacho-record: the counts of statements are exactly the differences of
# pg_stat_statements, also across resets.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoRecord qw(ask markers record record_program wait_until);

record_program();
my $node = PostgreSQL::Test::Cluster->new('statements');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	CREATE ROLE stranger LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g;
	SELECT v FROM t WHERE id = 3});
my $tape = $node->basedir . '/recorded';
my $recorder =
  record($node->connstr('postgres') . ' user=watcher', $tape, args => [ '--statements-interval', 1000 ]);

# The whole history of the statement.
sub recorded
{
	my ($row) = grep { ($_->{query_text} // '') eq 'SELECT v FROM t WHERE id = $1' }
	  ask($tape, 'statements-history', '--since', '1h', '--n', 'all');

	return $row;
}

sub run_times
{
	my ($times) = @_;
	$node->safe_psql('postgres', 'SELECT v FROM t WHERE id = 1;' x $times);
	return $node->safe_psql('postgres', q{
		SELECT total_exec_time FROM pg_stat_statements WHERE query = 'SELECT v FROM t WHERE id = $1'});
}

my ($before) = $node->safe_psql('postgres', q{
	SELECT total_exec_time FROM pg_stat_statements WHERE query = 'SELECT v FROM t WHERE id = $1'});
# the first pass reads the counters so far, the second one records
wait_until('a pass', sub { ask($tape, 'statements-history', '--since', '1h') > 0 });
my $after = run_times(137);
wait_until('calls', sub { my $row = recorded(); $row && $row->{calls} >= 137 });
my $row = recorded();
is($row->{calls}, 137, 'calls of the window are counted, without earlier ones');
is($row->{rows}, 137, 'rows are counted');
is($row->{username}, $node->safe_psql('postgres', 'SELECT current_user'), 'the role is recorded');
cmp_ok(abs($row->{total_exec_time} - ($after - $before)), '<=', 0.05, 'time is counted, but for rounding');

$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
run_times(5);
wait_until('calls after a reset', sub { recorded()->{calls} >= 142 });
is(recorded()->{calls}, 142, 'executions after a reset are added');
wait_until('a marker', sub { markers($tape, 'statistics reset') > 0 });
is((markers($tape, 'statistics reset'))[0], 'statistics of all statements were reset', 'the reset is a marker');

# A recorder that cannot read the name of a role records the counters without it.
$node->safe_psql('postgres', q{
	CREATE ROLE late;
	GRANT SELECT ON t TO late;
	REVOKE SELECT ON pg_catalog.pg_roles FROM PUBLIC});
$node->safe_psql('postgres', 'SET ROLE late;' . 'SELECT v FROM t WHERE id = 1;' x 9);

sub calls_of_all
{
	my $sum = 0;
	$sum += $_->{calls} // 0 for grep { ($_->{query_text} // '') eq 'SELECT v FROM t WHERE id = $1' }
	  ask($tape, 'statements-history', '--since', '1h', '--n', 'all');
	return $sum;
}
wait_until('calls of a role without a name', sub { calls_of_all() >= 151 });
is(calls_of_all(), 151, 'counters are recorded also if names are refused');
$node->safe_psql('postgres', 'GRANT SELECT ON pg_catalog.pg_roles TO PUBLIC');
is($recorder->end('TERM'), 0, 'the recorder ends');

# A role without rights sees only its own executions. Counters of others, which it sees
# after it gets the rights, were counted before.
run_times(400);
$tape = $node->basedir . '/strange';
$recorder =
  record($node->connstr('postgres') . ' user=stranger', $tape, args => [ '--statements-interval', 1000 ]);
wait_until('a pass', sub { ask($tape, 'statements-history', '--since', '1h') > 0 });
is_deeply([ grep { $_ ne 'stranger' } map { $_->{username} // () } ask($tape, 'statements-history', '--since', '1h', '--n', 'all') ],
	[], 'a role without rights has its own entries alone');
$node->safe_psql('postgres', 'GRANT pg_monitor TO stranger');
my $runs = 0;
wait_until('calls of another role', sub { run_times(1); $runs++; my $row = recorded(); $row && $row->{calls} > 0 });
cmp_ok(recorded()->{calls}, '<=', $runs, 'executions from before a grant are not counted after it');
is($recorder->end('TERM'), 0, 'the second recorder ends');

done_testing();
