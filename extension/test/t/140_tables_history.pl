# The activity of tables and indexes of all databases: the history has the numbers of the server's views.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(at server_ms tacho_cluster wait_for_ticks);
use Test::More;

my $node = tacho_cluster('tables_history', conf => q{
tacho.tables_interval = 500ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
stats_fetch_consistency = none
});
my $ever = "since => '2000-01-01', n => null";

sub sql { return $node->safe_psql('postgres', $_[0]) }

# The value of a column of all rows together.
sub total { return sql("SELECT coalesce(sum($_[0]), 0) FROM tacho.tables_history($ever) h") }

# Number of records: each has a row of all others.
sub records { return sql("SELECT coalesce(max(intervals), 0) FROM tacho.tables_history($ever) WHERE key = '(other)'") }

# Waits until a record that began after this call is in the history. A record belongs to the
# period with its middle.
sub next_record
{
	my $now = at(server_ms($node));
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.tables_history(since => $now) WHERE key = '(other)'")
	  or die 'no record of tables';
	return;
}

# Statements in a database. A session that has ended has reported everything it counted.
sub work
{
	my ($database, $statements) = @_;

	$node->safe_psql($database, $statements);
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()})
	  or die 'a session does not end';
	return;
}

sub record_every
{
	sql("ALTER SYSTEM SET tacho.tables_interval = '$_[0]'");
	sql('SELECT pg_reload_conf()');
	return;
}

# Runs a step between two records, so that one record has all that it did.
sub in_one_record
{
	my ($step) = @_;

	record_every('1h');
	# the change of the interval makes a record
	wait_for_ticks($node, 5, server_ms($node));
	$step->();
	record_every('500ms');
	next_record();
	return;
}

sub oid { return $node->safe_psql($_[0], "SELECT '$_[1]'::regclass::oid") }

# Columns of the history, and what the views call them.
my @of_both = (tuples_newpage_updated => "(to_jsonb(s) ->> 'n_tup_newpage_upd')::bigint",
	last_scan => "date_trunc('milliseconds', (to_jsonb(s) ->> 'last_seq_scan')::timestamptz)");
my @of_tables = (
	scans => 'seq_scan', tuples_returned => 'seq_tup_read', tuples_fetched => 'pg_stat_get_tuples_fetched(s.relid)',
	tuples_inserted => 'n_tup_ins', tuples_updated => 'n_tup_upd', tuples_deleted => 'n_tup_del',
	tuples_hot_updated => 'n_tup_hot_upd', live_tuples => 'n_live_tup', dead_tuples => 'n_dead_tup',
	mod_since_analyze => 'n_mod_since_analyze', ins_since_vacuum => 'n_ins_since_vacuum',
	blks_read => 'heap_blks_read', blks_hit => 'heap_blks_hit', vacuum_count => 'vacuum_count',
	autovacuum_count => 'autovacuum_count', analyze_count => 'analyze_count', autoanalyze_count => 'autoanalyze_count',
	(map { $_ => "date_trunc('milliseconds', $_)" } qw(last_vacuum last_autovacuum last_analyze last_autoanalyze)),
	@of_both);
my @of_indexes = (
	scans => 'idx_scan', tuples_returned => 'idx_tup_read', tuples_fetched => 'idx_tup_fetch',
	blks_read => 'idx_blks_read', blks_hit => 'idx_blks_hit',
	last_scan => "date_trunc('milliseconds', (to_jsonb(s) ->> 'last_idx_scan')::timestamptz)");

# Compares the history of a table or index with the views of its database.
sub same_as_views
{
	my ($database, $name, $views, $id, @columns) = @_;
	my %of = @columns;
	my @names = sort keys %of;
	my $oid = oid($database, $name);
	my $expected = $node->safe_psql($database,
		'SELECT ' . join(', ', map { $of{$_} } @names) . " FROM $views WHERE s.$id = $oid");
	my $names = join ', ', @names;
	is(sql("SELECT $names FROM tacho.tables_history($ever, database => '$database') WHERE oid = $oid"),
		$expected, "$name of $database: $names");
	return;
}

sub same_tables
{
	my ($database) = @_;
	same_as_views($database, $_, 'pg_stat_all_tables s JOIN pg_statio_all_tables o USING (relid)', 'relid', @of_tables)
	  for qw(item plain);
	same_as_views($database, 'item_pkey', 'pg_stat_all_indexes s JOIN pg_statio_all_indexes o USING (indexrelid)',
		'indexrelid', @of_indexes);
	return;
}

sql("CREATE DATABASE $_") for qw(shop store many);
next_record();
my %rows = (shop => 2000, store => 1500);
my $fill = q{
	CREATE TABLE item (id int PRIMARY KEY, v int) WITH (fillfactor = 70);
	CREATE TABLE plain (id int, filler text);
	INSERT INTO item SELECT g, g FROM generate_series(1, ROWS) g;
	INSERT INTO plain SELECT g, repeat('x', 1500) FROM generate_series(1, 400) g;
	VACUUM ANALYZE item;
	UPDATE plain SET filler = filler || 'y';
	UPDATE item SET v = v + 1 WHERE id <= 10;
	DELETE FROM item WHERE id > 995;
	ANALYZE plain;
	SELECT sum(v) FROM item;
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT v FROM item WHERE id = 7;
	SELECT count(*) FROM item WHERE id BETWEEN 5 AND 900 AND v > 0;
	SET enable_indexscan = off; SET enable_bitmapscan = on;
	SELECT count(*) FROM item WHERE id BETWEEN 5 AND 50 AND v > 0};
in_one_record(sub { work($_, $fill =~ s/ROWS/$rows{$_}/r) for sort keys %rows });
same_tables($_) for sort keys %rows;
is(sql("SELECT string_agg(key || ' ' || database, ', ' ORDER BY key, database COLLATE \"C\")
		FROM tacho.tables_history($ever) WHERE key LIKE 'public.%'"),
	'public.item shop, public.item store, public.plain shop, public.plain store', 'tables have their names');
my ($base, $index) = (sql("SELECT oid FROM pg_database WHERE datname = 'shop'"), oid('shop', 'item_pkey'));
is(sql("SELECT key FROM tacho.tables_history($ever) WHERE database_oid = $base AND oid = $index"),
	"$base/$index", 'an index has the numbers of its database and itself');
is(sql("SELECT count(*) FROM tacho.tables_history(since => '2000-01-01', n => 2)"), '3', 'n leaves the rest to (other)');
is(sql("SELECT count(*) FROM tacho.tables_history($ever) WHERE coverage_pct > 100 OR least(work, blks_hit, scans) < 0"),
	'0', 'no counter is negative, no coverage is above 100 %');

# statistics that are reset, and a table that is dropped
my $inserted = sub { sql("SELECT tuples_inserted FROM tacho.tables_history($ever) WHERE database = 'shop' AND key = 'public.$_[0]'") };
work('shop', 'SELECT pg_stat_reset()');
in_one_record(sub { work('shop', 'INSERT INTO item SELECT g, g FROM generate_series(5001, 6500) g') });
is($inserted->('item'), '3500', 'changes after a reset are counted once');
work('shop', 'DROP TABLE plain');
next_record();
is($inserted->('plain'), '400', 'a dropped table stays in the history');

# many tables: a record has 100 of them, and the sum of the others
work('many', q{
	CREATE PROCEDURE make() LANGUAGE plpgsql AS $$ BEGIN
		FOR i IN 1 .. 2000 LOOP
			EXECUTE format('CREATE TABLE t%s (id int)', i);
			IF i % 100 = 0 THEN COMMIT; END IF;
		END LOOP; END $$;
	CALL make()});
next_record();
my $written = sub {
	my $shared = 's.relid IN (SELECT oid FROM pg_class WHERE relisshared)';
	my $of = sub { "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_all_tables s WHERE $_[0]" };
	my @databases = split /\n/, sql('SELECT datname FROM pg_database WHERE datallowconn');
	my $sum = sql($of->($shared));
	$sum += $node->safe_psql($_, $of->("NOT $shared")) for @databases;
	return $sum;
};
my ($before, $recorded) = ($written->(), total('tuples_inserted + tuples_updated + tuples_deleted'));
in_one_record(sub { work('many', q{DO $$ BEGIN
	FOR i IN 1 .. 2000 LOOP
		EXECUTE format('INSERT INTO t%s SELECT 1 FROM generate_series(1, %s)', i, CASE WHEN i <= 150 THEN 1000 + i ELSE 1 END);
	END LOOP; END $$}) });
is(total('tuples_inserted + tuples_updated + tuples_deleted') - $recorded, $written->() - $before,
	'rows and (other) add up to all that was written');
my @shown = split /\|/, sql("SELECT count(*), min(tuples_inserted), max(tuples_inserted)
	FROM tacho.tables_history($ever, database => 'many') WHERE tuples_inserted > 1000 AND oid >= 16384");
cmp_ok($shown[0], '>', 50, 'a record has more than half of its rows for them');
cmp_ok($shown[0], '<=', 100, 'a record has at most 100 rows');
is_deeply([ @shown[1, 2] ], [ 1151 - $shown[0], 1150 ], 'the rows of a record are the largest');

# off
record_every('0');
wait_for_ticks($node, 5, server_ms($node));
my $records = records();
wait_for_ticks($node, 10, server_ms($node));
is(records(), $records, 'an interval of 0 records nothing');
done_testing();
