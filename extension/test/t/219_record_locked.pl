# tacho-record while a catalog is locked: the measurements that need it wait, and no count is
# lost.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoRecord qw(ask markers record record_program wait_until);
use TachoTest qw(tacho_session);

record_program(texts => 0);
my $node = PostgreSQL::Test::Cluster->new('locked');
$node->init;
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;
my $tape = $node->basedir . '/recorded';

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Sum of a counter since a moment.
sub total
{
	my ($metric, $since, $object) = @_;
	my @rows = ask($tape, 'server-history', '--metric', $metric, '--since', $since,
		$object ? ('--object', $object) : ());

	return @rows ? int($rows[0]{total}) : 0;
}

# A counter equals the view, once a reading has caught up.
sub same
{
	my ($metric, $question, $since, $object) = @_;
	my ($recorded, $expected);
	my $equal = eval {
		wait_until($metric, sub {
			$expected = sql($question);
			$recorded = total($metric, $since, $object);
			return $recorded == $expected;
		});
	};

	ok($equal, "$metric has all counts") or diag("view $expected, recorded $recorded");
	return;
}

my $recorder = record($node->connstr('postgres'), $tape, args => [ '--server-interval', 200 ]);
wait_until('a reading', sub { ask($tape, 'server-history', '--metric', 'oldest_xid_age') });
sql('CREATE DATABASE shop');
my ($worker, $locker) = map { tacho_session($node, db => $_) } qw(shop postgres);
$worker->run('CREATE TABLE item(id int)');
sql(q{SELECT pg_stat_reset_shared('wal')});
wait_until('a reset', sub { markers($tape, 'statistics reset') == 1 });
wait_until('a reading of rest', sub { total('transaction_ids', '1s') == 0 });
my $iso = q{AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'};
my ($reset, $since, $xid) = split /\|/, sql(qq{
	SELECT to_char(stats_reset $iso), to_char(clock_timestamp() $iso), pg_snapshot_xmax(pg_current_snapshot())
	FROM pg_stat_wal});

$locker->run('BEGIN; LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE');
my $refused = sub { return $recorder->log =~ /could not read measurements of $_[0]: canceling statement due to lock timeout$/m };
wait_until('a locked source', sub { $refused->('databases') });
ok($refused->('transactions'), 'the log names each source that waits for a lock');
$worker->run('INSERT INTO item VALUES (1)') for 1 .. 50;
my $before = total('wal_records', $reset);
$worker->run('INSERT INTO item VALUES (1)') for 1 .. 50;
wait_until('a reading beside the lock', sub { total('wal_records', $reset) > $before });
ok(1, 'other sources are read in the meantime');
$locker->run('COMMIT');

same('wal_records', 'SELECT wal_records FROM pg_stat_wal', $reset);
same('transaction_ids', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 - $xid", $since);
same('xact_commit', q{SELECT xact_commit FROM pg_stat_database WHERE datname = 'shop'}, '2000-01-01T00:00:00Z', 'shop');

$_->finish for $worker, $locker;
is($recorder->end('TERM'), 0, 'the recorder ends');
done_testing();
