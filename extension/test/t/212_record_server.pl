# tacho-record: measurements of the server equal its views and the extension's history
# of the same time, on a standby too. A refused view leaves the other measurements
# unchanged.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoRecord qw(ask markers record record_program run_record wait_until);
use TachoTest qw(tacho_cluster);

record_program(texts => 0);
my $node = tacho_cluster('measured',
	init => { allows_streaming => 'logical' },
	conf => q{
tacho.server_interval = 200ms
archive_mode = on
archive_command = '/bin/true'
});
my $own = $node->data_dir . '/tacho';
my $tape = $node->basedir . '/recorded';
my @often = (args => [ '--server-interval', 200, '--vcpus', 3 ]);

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Sum of a counter in a tape, since a moment.
sub total
{
	my ($dir, $metric, $since, $object) = @_;
	my @rows = ask($dir, 'server-history', '--metric', $metric, '--since', $since,
		$object ? ('--object', $object) : ());

	return @rows ? int($rows[0]{total}) : 0;
}

# The newest reading of a gauge in a tape.
sub state
{
	my ($dir, $metric, $object) = @_;
	my @rows = ask($dir, 'server-history', '--metric', $metric, '--since', '1s',
		$object ? ('--object', $object) : ());

	return @rows ? int($rows[0]{max}) : undef;
}

# A counter equals the view in both histories, once readings have caught up.
sub same
{
	my ($metric, $question, $since, $object) = @_;
	my ($recorded, $expected, $extension);

	my $equal = eval {
		wait_until($metric, sub {
			$expected = sql($question);
			$recorded = total($tape, $metric, $since, $object);
			$extension = total($own, $metric, $since, $object);
			return $recorded == $expected && $extension == $expected;
		});
	};
	ok($equal, "$metric is that of the view and of the extension")
	  or diag("view $expected, recorded $recorded, extension $extension");
	return;
}

sql('CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher');
my $recorder = record($node->connstr('postgres') . ' user=watcher', $tape, @often);
wait_until('a reading', sub { defined state($tape, 'oldest_xid_age') });
wait_until('CPUs', sub { (state($tape, 'vcpus') // 0) == 3 });
ok(1, 'the number of CPUs is the one that was given');
wait_until('an age', sub { (state($tape, 'oldest_xid_age') // -1) == sql('SELECT max(age(datfrozenxid)) FROM pg_database') });
ok(1, 'the age of the oldest transaction id equals the extension');

# Databases: one that is made between two readings counts from its begin.
sql('CREATE DATABASE shop');
$node->safe_psql('shop', q{
	CREATE TABLE item AS SELECT g AS id FROM generate_series(1, 1000) g;
	UPDATE item SET id = id + 1 WHERE id <= 10;
	DELETE FROM item WHERE id > 995;
	SET work_mem = '64kB';
	SELECT count(*) FROM (SELECT g FROM generate_series(1, 50000) g ORDER BY g DESC) s;
	BEGIN; SELECT 1; ROLLBACK});
same($_, "SELECT $_ FROM pg_stat_database WHERE datname = 'shop'", '2000-01-01T00:00:00Z', 'shop')
  foreach qw(xact_commit xact_rollback blks_read blks_hit tup_returned tup_fetched tup_inserted
  tup_updated tup_deleted temp_files temp_bytes deadlocks conflicts sessions sessions_fatal);

# The cluster's counters: a reset is a marker, and later counts are complete.
my $is_new = $node->pg_version >= 17;
my $checkpoints = $is_new ? 'checkpointer' : 'bgwriter';
sql("SELECT pg_stat_reset_shared('wal'), pg_stat_reset_shared('archiver'), pg_stat_reset_shared('$checkpoints')");
wait_until('resets', sub { markers($tape, 'statistics reset') == 3 && markers($own, 'statistics reset') == 3 });
my $resets = sub {
	my ($dir) = @_;
	return [ sort map { "$_->{marker_time} $_->{detail}" } grep { $_->{kind} eq 'statistics reset' }
		  ask($dir, 'markers', '--since', '2000-01-01T00:00:00Z') ];
};
is_deeply($resets->($tape), $resets->($own), 'resets are the markers that the extension has');
my $reset = sql(q{SELECT to_char(stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM pg_stat_archiver});
sql('CREATE TABLE filler AS SELECT repeat(md5(g::text), 10) FROM generate_series(1, 10000) g');
sql('CHECKPOINT');
sql('SELECT pg_switch_wal()');
same($_, "SELECT $_ FROM pg_stat_wal", $reset) foreach qw(wal_records wal_fpi wal_buffers_full);
same('wal_archived', 'SELECT archived_count FROM pg_stat_archiver', $reset);
same('checkpoints_requested', $is_new ? 'SELECT num_requested FROM pg_stat_checkpointer'
	: 'SELECT checkpoints_req FROM pg_stat_bgwriter', $reset);
same('checkpoint_buffers', $is_new ? 'SELECT buffers_written FROM pg_stat_checkpointer'
	: 'SELECT buffers_checkpoint FROM pg_stat_bgwriter', $reset);

# I/O by kind of process, object and context; only this test causes it.
SKIP:
{
	skip 'this version does not count I/O by kind of process', 15 if $node->pg_version < 16;
	sql(q{SELECT pg_stat_reset_shared('io')});
	wait_until('a reset of I/O', sub { markers($tape, 'statistics reset') == 4 && markers($own, 'statistics reset') == 4 });
	is_deeply($resets->($tape), $resets->($own), 'a reset of I/O is one marker');
	my $from = sql(q{SELECT to_char(max(stats_reset) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM pg_stat_io});
	sql(q{
		CREATE TABLE wide AS SELECT repeat(md5(g::text), 10) FROM generate_series(1, 20000) g;
		DELETE FROM wide;
		SET temp_buffers = '1MB';
		CREATE TEMP TABLE own AS SELECT repeat(md5(g::text), 10) FROM generate_series(1, 10000) g;
		SELECT count(*) FROM own});
	sql('SET track_io_timing = on; VACUUM wide');
	my $view = sub {
		my ($value, $what) = @_;
		return "SELECT coalesce(max($value), 0) FROM pg_stat_io WHERE concat_ws('/', backend_type, object, context) = '$what'";
	};
	my $is_in_bytes = $node->pg_version >= 18;
	my %by = (
		'client backend/relation/bulkwrite' => [qw(extends hits writes extend_bytes write_bytes)],
		'client backend/temp relation/normal' => [qw(reads extends evictions read_bytes)],
		'client backend/relation/vacuum' => [ qw(hits reads reuses), [ 'read_time', 'round(read_time * 1000)' ] ]);
	for my $what (sort keys %by)
	{
		for my $each (@{ $by{$what} })
		{
			my ($name, $value) = ref $each ? @$each : ($each, $each);
			$value =~ s/(\w+)_bytes/$1s * op_bytes/ if !$is_in_bytes;
			same("io_$name", $view->($value, $what), $from, $what);
		}
	}
	cmp_ok(total($tape, 'io_extend_bytes', $from, 'client backend/temp relation/normal'), '>', 1_000_000, 'bytes of I/O are counted');
}

# The WAL and transaction ids have no statistics: they are compared from a quiet moment
# on.
wait_until('readings of rest', sub {
	return !grep { total($_, 'wal_bytes', '1s') || total($_, 'transaction_ids', '1s') } $tape, $own;
});
my $since = sql(q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')});
my ($lsn, $xid) = split /\|/, sql('SELECT pg_current_wal_insert_lsn(), pg_snapshot_xmax(pg_current_snapshot())');
sql('DO $$ BEGIN FOR i IN 1 .. 50 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$');
same('transaction_ids', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 - $xid", $since);
same('wal_bytes', "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$lsn')", $since);

# Slots.
sql(q{SELECT pg_create_physical_replication_slot('kept', true);
	SELECT pg_create_logical_replication_slot('decoder', 'pgoutput')});
sql('DO $$ BEGIN FOR i IN 1 .. 50 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$');
wait_until('slots', sub {
	my @states = map { my $dir = $_; map { state($dir, @$_) // '' } [ 'slot_active', 'kept' ], [ 'slot_retained', 'kept' ],
		[ 'slot_xmin_age', 'decoder' ] } $tape, $own;
	my @expected = split /\|/, sql(q{SELECT 0, pg_wal_lsn_diff(pg_current_wal_lsn(), k.restart_lsn)::int8, age(d.catalog_xmin)
		FROM pg_replication_slots k, pg_replication_slots d WHERE k.slot_name = 'kept' AND d.slot_name = 'decoder'});
	return "@states" eq "@expected @expected";
});
ok(1, 'slots have the use, kept log and age of the view and of the extension');

# A refused view is reported once, and everything else is measured.
sql('REVOKE EXECUTE ON FUNCTION pg_stat_get_wal() FROM PUBLIC');
my ($code, $out) = run_record('--check', $node->connstr('postgres') . ' user=watcher');
like($out, qr/^part measurements: all but write-ahead log \(permission denied for function pg_stat_get_wal\)$/m,
	'a check names the view that is refused');
my $refused = qr/could not read measurements of write-ahead log: permission denied for function pg_stat_get_wal/;
wait_until('a refusal', sub { $recorder->log =~ $refused });
my $records = total($tape, 'wal_records', $reset);
$node->safe_psql('shop', 'INSERT INTO item SELECT generate_series(1, 77)');
same('tup_inserted', q{SELECT tup_inserted FROM pg_stat_database WHERE datname = 'shop'}, '2000-01-01T00:00:00Z', 'shop');
is(total($tape, 'wal_records', $reset), $records, 'a refused view is not recorded');
my $told = () = $recorder->log =~ /$refused/g;
is($told, 1, 'the log has the refusal once');
sql('GRANT EXECUTE ON FUNCTION pg_stat_get_wal() TO PUBLIC');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tacho record'});
wait_until('measured again', sub {
	sql('INSERT INTO filler VALUES (1)');
	return total($tape, 'wal_records', $reset) > $records;
});
ok(1, 'a new connection asks the refused view again');

SKIP:
{
	skip 'this installation cannot stream replication', 4
	  if $node->psql('postgres', q{LOAD 'libpqwalreceiver'}) != 0;
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$node->backup('base');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "tacho.directory = '" . $standby->basedir . "/history'");
	$standby->start;
	# the age of the last transaction is known once one was replayed
	sql('INSERT INTO filler VALUES (1)');
	$node->wait_for_catchup($standby);
	my $copied = $standby->basedir . '/recorded';
	my $follower = record($standby->connstr('postgres') . ' user=watcher', $copied, @often);
	wait_until('a standby', sub { defined state($copied, 'oldest_xid_age') });
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	my $from = sql(q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')});
	sql('INSERT INTO filler SELECT repeat(md5(g::text), 10) FROM generate_series(1, 1000) g');
	my $behind;
	wait_until('a lag', sub {
		$behind = $standby->safe_psql('postgres', 'SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())');
		return $behind > 100_000 && (state($copied, 'recovery_lag_bytes') // 0) == $behind;
	});
	cmp_ok(state($copied, 'recovery_lag'), '>', 0, 'a standby has the log received and not replayed, and its age');
	wait_until('a replica', sub {
		my $lag = sql(q{SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) FROM pg_stat_replication});
		return (state($tape, 'replica_replay_lag', 'standby') // -1) == $lag
		  && (state($own, 'replica_replay_lag', 'standby') // -1) == $lag
		  && state($tape, 'replica_sent_lag', 'standby') == 0;
	});
	ok(1, 'the primary has the replica as its view and the extension have it');
	is(total($copied, 'wal_bytes', $from), 0, 'no log is replayed yet');
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	wait_until('replay', sub { total($copied, 'wal_bytes', $from) >= $behind && state($copied, 'recovery_lag_bytes') == 0 });
	ok(1, 'all received log is replayed later');
	$follower->end('TERM');
	$standby->stop;
}

is($recorder->end('TERM'), 0, 'the recorder ends');
done_testing();
