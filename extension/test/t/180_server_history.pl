# History of the server as a whole: counters agree with the server's own views, and a
# reset is marked and adds nothing.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_marker);
use Test::More;

my $node = tacho_cluster('server_history',
	init => { allows_streaming => 'logical' },
	conf => "tacho.server_interval = 200ms\nstats_fetch_consistency = none\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Waits until a reading that began after this call has been written.
sub next_reading
{
	my $readings = metric($node, 'server_readings');

	wait_for_metric($node, 'server_readings',
		"value::bigint >= $readings + 2")
	  or die 'no reading';
	# it may be in the frame of the second that has not ended
	my $made = metric($node, 'frames_made');
	wait_for_metric($node, 'frames_written', "value::bigint > $made")
	  or die 'not written';
	return;
}

# Sessions of shop. One that has ended has reported everything it counted,
# which may be a while after its client has gone.
sub shop
{
	my ($statements) = @_;

	$node->safe_psql('shop', $statements);
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'shop'})
	  or die 'a session of shop does not end';
	return;
}

sub total
{
	my ($metric, $object, $since) = @_;
	my $filter = defined $object ? "object => '$object'," : '';

	return sql(
		"SELECT coalesce(sum(total), 0)::bigint FROM tacho.server_history($filter metric => '$metric', since => $since)"
	);
}

# The kind and the name of what holds back vacuum in the last tick.
sub holder
{
	my ($csv) = run_command([ $ENV{TACHO_PROGRAM}, 'export', 'sessions', '--tape',
		$node->data_dir . '/tacho' ]);
	my ($head, @lines) = split /\n/, $csv;
	my %tick;

	@tick{ split /,/, $head } = split /,/, $lines[-1], -1;
	return "$tick{oldest_xmin_holder} $tick{oldest_xmin_name}";
}

sql('CREATE DATABASE shop');
next_reading();
my $since = at(server_ms($node));

shop(q{
CREATE TABLE item AS SELECT g AS id FROM generate_series(1, 1000) g;
UPDATE item SET id = id + 1 WHERE id <= 10;
DELETE FROM item WHERE id > 995;
SET work_mem = '64kB';
SELECT count(*) FROM (SELECT g FROM generate_series(1, 50000) g ORDER BY g DESC) s;
BEGIN; SELECT 1; ROLLBACK;
});
my $lsn = sql('SELECT pg_current_wal_insert_lsn()');
sql('CREATE TABLE filler AS SELECT repeat(md5(g::text), 10) FROM generate_series(1, 10000) g');
sql('CHECKPOINT');
my $written = sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$lsn')::bigint");
next_reading();

# shop was made between two readings: all that its view shows has been seen
for my $metric (qw(xact_commit xact_rollback tup_inserted tup_updated
	tup_deleted temp_files temp_bytes deadlocks sessions))
{
	is( total($metric, 'shop', q{'2000-01-01'}),
		sql("SELECT $metric FROM pg_stat_database WHERE datname = 'shop'"),
		"$metric equals pg_stat_database");
}
cmp_ok(total('wal_bytes', undef, $since), '>=', $written, 'WAL is counted');
is(total('checkpoints_requested', undef, $since), 1, 'a checkpoint is counted');
is( sql("SELECT count(*) FROM tacho.server_history(since => $since, bucket => '1 s') WHERE total < 0 OR min < 0"),
	0, 'no measurement is negative');
is( sql("SELECT DISTINCT max = min AND max * 100 = t.vcpus * 100
		FROM tacho.server_history(metric => 'vcpus', since => $since) h,
			(SELECT vcpus FROM tacho.aas(since => $since)) t"),
	't', 'the CPUs are those beside the load');
is( sql("SELECT string_agg(metric, ',' ORDER BY metric) FROM tacho.server_history(since => $since)
		WHERE metric IN ('load_1', 'cpu_user', 'memory_total', 'oldest_xid_age')"),
	'cpu_user,load_1,memory_total,oldest_xid_age', 'the host is measured');
my $kb = (grep { /^MemTotal/ } split /\n/, PostgreSQL::Test::Utils::slurp_file('/proc/meminfo'))[0];
$kb =~ s/\D//g;
is( sql("SELECT max::bigint FROM tacho.server_history(metric => 'memory_total', since => $since)"),
	$kb * 1024, 'memory of the host equals /proc');

# The reset of one table's counters changes the time of the database's reset alone.
shop(q{SELECT pg_stat_reset_single_table_counters('item'::regclass)});
next_reading();
is(total('tup_inserted', 'shop', q{'2000-01-01'}), sql(q{SELECT tup_inserted FROM pg_stat_database WHERE datname = 'shop'}),
	'a reset of one table adds nothing to its database');
is(sql(q{SELECT count(*) FROM tacho.markers(since => '2000-01-01') WHERE kind = 'statistics reset'}),
	0, 'a reset of one table is no reset of its database');

# resets
shop('SELECT pg_stat_reset()');
ok(wait_for_marker($node, 'statistics reset', 1), 'a reset is marked');
shop('SELECT 1') for 1 .. 3;
next_reading();
is( sql(q{SELECT detail, marker_time = (SELECT date_trunc('milliseconds', stats_reset)
			FROM pg_stat_database WHERE datname = 'shop')
		FROM tacho.markers(since => '2000-01-01') WHERE kind = 'statistics reset'}),
	'statistics of database "shop" were reset|t',
	'the marker of a reset has its moment');
# without what the resetting session had counted before the reset
is( total('xact_commit', 'shop',
		q{(SELECT stats_reset FROM pg_stat_database WHERE datname = 'shop')}),
	sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'shop'"),
	'changes after a reset are counted once');
sql(q{SELECT pg_stat_reset_shared('wal'), pg_stat_reset_shared('archiver')});
ok(wait_for_marker($node, 'statistics reset', 3), 'resets of the cluster are marked');
is( sql(q{SELECT string_agg(detail, ', ' ORDER BY detail COLLATE "C") FROM tacho.markers(since => '2000-01-01')
		WHERE kind = 'statistics reset' AND detail !~ 'database'}),
	'statistics of the archiver were reset, statistics of write-ahead log were reset',
	'resets are marked by their names');

# slots
sql(q{SELECT pg_create_physical_replication_slot('standby_gone', true)});
$since = at(server_ms($node));
next_reading();
is( sql("SELECT metric, object, max FROM tacho.server_history(metric => 'slot_active', since => $since)"),
	'slot_active|standby_gone|0.0000',
	'a slot without a user is measured');
my $retained = sql(q{SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots});
is( sql("SELECT max::bigint <= $retained FROM tacho.server_history(metric => 'slot_retained', since => $since)"),
	't', 'the log that the slot keeps is measured');

# a slot that holds back vacuum
sql(q{SELECT pg_create_logical_replication_slot('decoder', 'pgoutput')});
sql('DO $$ BEGIN FOR i IN 1 .. 50 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$');
$since = at(server_ms($node));
next_reading();
is( sql("SELECT max::bigint FROM tacho.server_history(metric => 'slot_xmin_age', object => 'decoder', since => $since)"),
	sql(q{SELECT age(catalog_xmin) FROM pg_replication_slots WHERE slot_name = 'decoder'}),
	'the age of what a slot holds back vacuum for');
is(holder(), 'replication slot decoder', 'each tick names the slot as the holder');

# REPACK has slots of its own, after the others.
if ($node->pg_version->major >= 19)
{
	my ($reader, $packer) = map { tacho_session($node, app => $_) } 'reader', 'packer';

	sql('CREATE TABLE packed AS SELECT g AS id FROM generate_series(1, 10) g; ALTER TABLE packed ADD PRIMARY KEY (id)');
	$reader->run('BEGIN')->run('SELECT count(*) FROM packed');
	$packer->send('REPACK (CONCURRENTLY) packed');
	$node->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_replication_slots})
	  or die 'REPACK has no slot';
	$since = at(server_ms($node));
	next_reading();
	is( sql("SELECT string_agg(DISTINCT object, ',' ORDER BY object) FROM tacho.server_history(metric => 'slot_active', since => $since)"),
		sql("SELECT string_agg(slot_name, ',' ORDER BY slot_name) FROM pg_replication_slots"), 'the slot of REPACK is measured');
	$reader->run('COMMIT');
	$_->finish foreach $packer, $reader;
}

# Slots that the server has given up keep no log and hold back no vacuum.
sql($_) foreach q{ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'}, 'SELECT pg_reload_conf()',
	(q{SELECT pg_logical_emit_message(false, 'x', 'y'), pg_switch_wal()}) x 3, 'CHECKPOINT';
$node->poll_query_until('postgres',
	q{SELECT count(*) = 2 FROM pg_replication_slots WHERE wal_status = 'lost'})
  or die 'the slots are not lost';
next_reading();
$since = at(server_ms($node));
next_reading();
is( sql("SELECT string_agg(concat_ws(' ', object, metric), ', ' ORDER BY object, metric) FROM tacho.server_history(
		metric => 'slot_active,slot_retained,slot_xmin_age', since => $since)"),
	'decoder slot_active, standby_gone slot_active', 'an invalidated slot keeps nothing');
is( sql("SELECT count(*) FROM tacho.server_history(metric => 'slot_active', since => $since)"), 2, 'an invalidated slot is listed');
isnt(holder(), 'replication slot decoder', 'no tick names an invalidated slot as the holder');

my ($ret, $out, $err) = $node->psql('postgres',
	q{SELECT * FROM tacho.server_history(metric => 'wal')});
like($err, qr/metric "wal" does not exist/, 'an unknown metric is an error');

# While another session has locked the list of databases, statistics are not read. All counters
# of a reading have the same interval, so they wait for the next reading.
sub readings
{
	my ($csv) = run_command([ $ENV{TACHO_PROGRAM}, 'export', 'server', '--tape', $node->data_dir . '/tacho' ]);
	my ($head, @lines) = split /\n/, $csv;
	my @names = split /,/, $head;

	return map { my %row; @row{@names} = split /,/, $_, -1; \%row } @lines;
}

# The rows from the last one before the lock on. The lock is held until this number of
# readings has ended.
my $locker = tacho_session($node, app => 'locker');
sub while_locked
{
	my ($count) = @_;

	next_reading();
	my $before = () = readings();
	$locker->run("DO \$\$ DECLARE n bigint; BEGIN LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE; CHECKPOINT;
		SELECT value INTO n FROM tacho.status() WHERE metric = 'server_readings';
		WHILE (SELECT value::bigint < n + $count FROM tacho.status() WHERE metric = 'server_readings') LOOP PERFORM pg_sleep(0.01); END LOOP; END \$\$");
	next_reading();
	my @rows = readings();
	return @rows[ $before - 1 .. $#rows ];
}
sub has { my ($row, @names) = @_; return join ' ', map { $row->{$_} eq '' ? 'no' : 'yes' } @names }

# a reading that was under way may end first, and a second one may begin before the lock ends
my (@rows, @waits, @lost);
for (1 .. 50)
{
	@rows = while_locked(1);
	@waits = grep { $rows[$_]{elapsed_ms} eq '' } 0 .. $#rows;
	@lost = grep { has($_, qw(elapsed_ms wal_records)) eq 'yes no' } @rows;
	last if @waits && !@lost;
}
my ($before, $waiting, $next) = @rows[ $waits[0] - 1 .. $waits[0] + 1 ];
is(has($waiting, qw(load_1_x100 memory_total_bytes cpu_user_ms wal_bytes wal_records)), 'yes yes no no no', 'a reading without statistics has no counters');
my $gap = "abs(extract(epoch FROM '$next->{time}'::timestamptz - '%s') * 1000 - $next->{elapsed_ms})";
is(sql('SELECT ' . sprintf("$gap < $gap", $before->{time}, $waiting->{time})), 't', 'the next reading has the interval since the last one with counters');
my $checkpoints = 0;
$checkpoints += $_->{checkpoints_requested} || 0 for @rows[ 1 .. $#rows ];
is($checkpoints, 1, 'no increase is lost');
@rows = while_locked(5);
is(scalar(grep { $_->{elapsed_ms} eq '' } @rows), 1, 'counters wait for one reading only');
@lost = grep { has($_, qw(elapsed_ms cpu_user_ms wal_bytes wal_records)) eq 'yes yes yes no' } @rows;
cmp_ok(scalar(@lost), '>=', 3, 'the counters of the host go on without statistics');
is(has($rows[-1], qw(elapsed_ms wal_bytes wal_records)), 'yes yes yes', 'statistics are counted again');
$locker->finish;

# off and on
$node->append_conf('postgresql.conf', 'tacho.server_interval = 0');
$node->reload;
wait_for_marker($node, 'settings changed', 2);
my $readings = metric($node, 'server_readings');
my $ticks = metric($node, 'ticks_taken');
wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 10");
is(metric($node, 'server_readings'), $readings, 'an interval of 0 switches measurements off');
is(metric($node, 'server_failed'), 0, 'no reading failed');
$node->stop;

done_testing();
