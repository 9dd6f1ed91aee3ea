# The worker that reads the catalog leaves: no CREATE DATABASE ... TEMPLATE and no DROP DATABASE fails beside it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

# rounds without a pause
my $node = tacho_cluster('catalog_leaves', conf => q{
tacho.tables_interval = 100ms
tacho.catalog_interval = 1ms
log_min_messages = debug1
});
my $read = "SELECT count(*) > 0 FROM tacho.indexes_history(since => '2000-01-01', n => null)";

sub read_databases { return scalar(() = slurp_file($node->logfile) =~ /registering background worker "tacho catalog"/g) }

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q{DO $$ BEGIN
	FOR i IN 1 .. 300 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', i); END LOOP; END $$});
# Work on the tables, so that the database is read.
sub touch
{
	my ($database, $round) = @_;

	$node->safe_psql($database, "INSERT INTO t$_ SELECT max(id) + 1 FROM t$_; SELECT count(*) FROM t$_;") for 1 .. 3;
	$node->safe_psql($database, "INSERT INTO t$_ VALUES ($round * 1000 + $_)") for 4 .. 6;
	return;
}
$node->safe_psql('source', "INSERT INTO t$_ VALUES (0)") for 1 .. 6;
touch('source', 1);
$node->poll_query_until('postgres', "$read WHERE database = 'source'") or die 'source is not read';

my ($failed, $before) = (0, read_databases());
for my $round (2 .. 30)
{
	touch('source', $round);
	for my $statement ('CREATE DATABASE copy TEMPLATE source', 'ALTER DATABASE copy RENAME TO copied', 'DROP DATABASE copied')
	{
		my ($status, undef, $error) = $node->psql('postgres', $statement);
		next if $status == 0;
		$failed++;
		diag($error);
	}
}
is($failed, 0, 'no statement failed');
cmp_ok(read_databases() - $before, '>', 3, 'meanwhile databases were read');

# A database that is worked in is dropped.
for my $round (1 .. 5)
{
	$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE source');
	touch('copy', $round + 100);
	$node->poll_query_until('postgres', "$read WHERE database = 'copy'") or die 'copy is not read' if $round == 1;
	my ($status, undef, $error) = $node->psql('postgres', 'DROP DATABASE copy');
	is($status, 0, 'a database that is read is dropped') or diag($error);
}
# A worker may find its database dropped or locked when it connects. It has no other error.
my $log = slurp_file($node->logfile);
my @failed = $log =~ /"tacho catalog" \(PID (\d+)\) exited with exit code 1/g;
my @errors = map { $log =~ /\[$_\] .*?((?:ERROR|FATAL):.*)/g } @failed;
is(join("\n", grep { !/does not exist|lock timeout/ } @errors), '', 'the worker raises no error');
unlike($log, qr/PANIC|"tacho catalog".*was terminated/, 'the worker does not crash');
done_testing();
