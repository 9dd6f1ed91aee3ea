# Names, kinds, sizes and use of tables and indexes: the history has what the catalog and the server's views have.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('indexes_history', conf => q{
tacho.tables_interval = 500ms
tacho.catalog_interval = 500ms
tacho.flush_interval = 100ms
stats_fetch_consistency = none
});
my $ever = "since => '2000-01-01', n => null";

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub wait_until_seen
{
	my ($condition, $function) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM tacho.@{[$function // 'indexes_history']}($ever) WHERE $condition")
	  or die "not in the history: $condition";
	return;
}

# Waits for a round that began after this call.
sub next_round
{
	my $now = at(server_ms($node));
	$node->poll_query_until('postgres', "SELECT max(known_until) > $now FROM tacho.indexes_history($ever)")
	  or die 'no round';
	return;
}

# Statements in a database. A session that has ended has reported everything it counted.
sub work
{
	my ($database, $statements) = @_;
	$node->safe_psql($database, $statements);
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}) or die 'a session does not end';
	return;
}

# Work that makes the sampler read a table again.
sub touch { work($_[0], "UPDATE item SET v = v + 1 WHERE id < 3") ; return }

my $fill = q{
	CREATE SCHEMA sales;
	CREATE TABLE item (id int PRIMARY KEY, v int, w text);
	CREATE INDEX item_v ON item (v);
	CREATE UNIQUE INDEX item_w ON item (w);
	CREATE TABLE sales."Order ü" (id int);
	CREATE INDEX "Index ü" ON sales."Order ü" (id);
	CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (1000);
	INSERT INTO item SELECT g, g, 'x' || g FROM generate_series(1, ROWS) g;
	INSERT INTO sales."Order ü" SELECT generate_series(1, 500);
	INSERT INTO part SELECT generate_series(1, 500);
	VACUUM ANALYZE;
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT w FROM item WHERE id = 7;
	SELECT w FROM item WHERE v BETWEEN 5 AND 20};
my %rows = (shop => 2000, store => 1500);
sql("CREATE DATABASE $_") for sort keys %rows;
# statistics of these databases have begun before their tables do something
wait_until_seen("key = '(other)'", 'tables_history');
for my $database (sort keys %rows)
{
	work($database, $fill =~ s/ROWS/$rows{$database}/r);
	wait_until_seen("database = '$database' AND table_name = 'public.item'");
	touch($database);
}
next_round() for 1 .. 2;

# The server's view of the indexes of a database.
sub same_indexes
{
	my ($database) = @_;
	my $expected = $node->safe_psql($database, q{
		SELECT c.oid, n.nspname || '.' || c.relname, i.indrelid, tn.nspname || '.' || t.relname,
			CASE WHEN indisprimary THEN 'primary key' WHEN indisunique THEN 'unique index' ELSE 'index' END,
			pg_relation_size(c.oid), c.reltuples::bigint
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace
		WHERE n.nspname IN ('public', 'sales') AND c.relkind = 'i' ORDER BY 1});
	is(sql(qq{
		SELECT oid, key, table_oid, table_name, kind, bytes, entries FROM tacho.indexes_history($ever, database => '$database')
		WHERE key ~ '^(public|sales)[.]' AND kind <> 'partitioned index' ORDER BY 1}), $expected,
		"$database: names, tables, kinds and sizes of indexes");
	is(sql("SELECT kind, bytes FROM tacho.tables_history($ever, database => '$database') WHERE key = 'public.item'"),
		$node->safe_psql($database, q{SELECT 'table', pg_relation_size('item')}), "$database: kind and size of a table");
	return;
}
same_indexes($_) for sort keys %rows;
# The counters of the indexes of item, from the server's view.
sub viewed
{
	return map { [ split /\|/ ] } split /\n/, $node->safe_psql('shop', q{SELECT indexrelname, idx_scan, idx_tup_read, idx_tup_fetch
		FROM pg_stat_all_indexes WHERE relname = 'item' ORDER BY 1});
}

# scans between two moments, and an index that nothing uses
next_round();
my @before = viewed();
my $since = at(server_ms($node));
work('shop', q{SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT w FROM item WHERE v BETWEEN 5 AND 20;
	SELECT w FROM item WHERE v BETWEEN 30 AND 34});
next_round();
my @after = viewed();
my @expected = map { my $n = $_; join '|', "public.$after[$n][0]", map { $after[$n][$_] - $before[$n][$_] } 1 .. 3 } 0 .. $#after;
my $in_shop = "tacho.indexes_history(since => $since, n => null, database => 'shop')";
is(sql("SELECT key, scans, tuples_returned, tuples_fetched FROM $in_shop WHERE table_name = 'public.item' ORDER BY 1"),
	join("\n", @expected), 'scans of the window, as the view counted them');
is(sql("SELECT last_scan IS NOT DISTINCT FROM date_trunc('milliseconds', '@{[ $node->safe_psql('shop', q{
	SELECT to_jsonb(s) ->> 'last_idx_scan' FROM pg_stat_all_indexes s WHERE indexrelname = 'item_v'})]}'::text::timestamptz)
	FROM $in_shop WHERE key = 'public.item_v'"), 't', 'the time of the last scan') if $node->pg_version >= 16;
is(sql("SELECT string_agg(key, ' ' ORDER BY key) FROM $in_shop WHERE scans = 0 AND key ~ '^public.item' AND known_until IS NOT NULL"),
	'public.item_pkey public.item_w', 'indexes that nothing has used');
is(sql("SELECT count(*) FROM $in_shop WHERE known_from <= $since AND known_until > $since AND known_until < period_end AND key ~ 'item_'"),
	'3', 'the time that is known');
my $ordered = sub { sql("SELECT key FROM (SELECT row_number() OVER () AS n, * FROM tacho.indexes_history(since => $since, n => null,
	database => 'shop', order_by => '$_[0]')) h WHERE key ~ '^public.item' ORDER BY n LIMIT 1") };
is($ordered->('scans'), 'public.item_v', 'order by scans');
is($ordered->('unused'), $node->safe_psql('shop', q{SELECT 'public.' || c FROM unnest(ARRAY['item_pkey', 'item_w']) c ORDER BY pg_relation_size(c) DESC LIMIT 1}),
	'the largest of those without scans is first');

# growth
my $small = $node->safe_psql('shop', q{SELECT pg_relation_size('item_w')});
work('shop', q{INSERT INTO item SELECT g, g, 'y' || g FROM generate_series(10001, 20000) g});
my ($size, $table) = map { $node->safe_psql('shop', "SELECT pg_relation_size('$_')") } qw(item_w item);
wait_until_seen("key = 'public.item_w' AND database = 'shop' AND bytes = $size");
wait_until_seen("key = 'public.item' AND database = 'shop' AND bytes = $table", 'tables_history');
is(sql("SELECT bytes - growth_bytes FROM $in_shop WHERE key = 'public.item_w'"), $small, 'growth of an index');
is($ordered->('growth_bytes'), 'public.item_w', 'order by growth');

# an index that is renamed, one that is dropped
work('shop', 'ALTER INDEX item_v RENAME TO item_new; DROP INDEX item_w');
touch('shop');
wait_until_seen("key = 'public.item_new'");
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM tacho.indexes_history($ever, database => 'shop') WHERE key = 'public.item_w'")
  or die 'a dropped index stays';
pass('a dropped index has no row');

# a database without connections is not read, nor is a template
sql('CREATE DATABASE closed');
work('closed', 'CREATE TABLE item (id int PRIMARY KEY, v int); INSERT INTO item SELECT g, g FROM generate_series(1, 1000) g');
wait_until_seen("database = 'closed'");
sql('ALTER DATABASE closed ALLOW_CONNECTIONS false');
my $log = -s $node->logfile;
next_round() for 1 .. 3;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $log), qr/FATAL|tacho catalog/, 'a database without connections is no error');

# a dropped database: nothing uses its indexes any more, item_w was never used
is(sql("SELECT count(*) FROM tacho.indexes_history($ever, database => 'store') WHERE key = 'public.item_w' AND scans = 0"), '1',
	'an unused index of a database');
next_round();
sql('DROP DATABASE store');
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM tacho.indexes_history($ever) WHERE database = 'store'")
  or die 'indexes of a dropped database stay';
pass('indexes of a dropped database have no row');

# a relation that is held in AccessExclusiveLock all the time, and many tables
sql('CREATE DATABASE many');
work('many', q{
	CREATE PROCEDURE make() LANGUAGE plpgsql AS $$ BEGIN
		FOR i IN 1 .. 2000 LOOP
			EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', i);
			IF i % 100 = 0 THEN COMMIT; END IF;
		END LOOP; END $$;
	CALL make();
	CREATE TABLE held (id int PRIMARY KEY); INSERT INTO held SELECT generate_series(1, 5000)});
my $holder = tacho_session($node, db => 'many');
$holder->send("BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE;\n");
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND locktype = 'relation'})
  or die 'no lock';
$node->safe_psql('many', q{DO $$ BEGIN
	FOR i IN 1 .. 2000 LOOP EXECUTE format('INSERT INTO t%s SELECT generate_series(1, 200)', i); END LOOP; END $$});
wait_until_seen("key = 'public.held_pkey' AND database = 'many' AND bytes > 0");
pass('a relation in AccessExclusiveLock is read');
wait_until_seen("database = 'many' AND key ~ 'public.t[0-9]+_pkey' AND bytes > 0");
is(sql("SELECT count(*) FROM tacho.indexes_history($ever, database => 'many') WHERE key !~ '^public[.](t[0-9]+|held)_pkey' AND oid >= 16384"),
	'0', 'each index has its name');
$holder->send("COMMIT;\n");
$holder->finish;

# off
sql("ALTER SYSTEM SET tacho.catalog_interval = 0");
sql('SELECT pg_reload_conf()');
wait_for_ticks($node, 10, server_ms($node));
my $known = sql("SELECT max(known_until) FROM tacho.indexes_history($ever)");
touch('shop');
wait_for_ticks($node, 20, server_ms($node));
is(sql("SELECT max(known_until) FROM tacho.indexes_history($ever)"), $known, 'an interval of 0 reads nothing');
done_testing();
