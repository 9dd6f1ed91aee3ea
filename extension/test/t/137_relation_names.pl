# Locked relations have names in the history, without a connection to their database.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoLocks qw(session wait_until_locked);
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $node = tacho_cluster('relation_names', conf => q{
tacho.sample_interval = 100ms
tacho.flush_interval = 100ms
tacho.plan_text_rate = 10000
deadlock_timeout = 600s
});

$node->safe_psql('postgres', q{
	CREATE SCHEMA shop;
	CREATE TABLE shop.orders (id int PRIMARY KEY, v int);
	CREATE TABLE unread (id int);
	INSERT INTO shop.orders VALUES (1, 1)});
$node->safe_psql('postgres', 'CREATE DATABASE other_db');

# The locked object, asked for in another database, while a session waits for a table.
sub locked_object
{
	my ($table, $expected, $database) = (@_, 'postgres');
	my ($holder, $waiter) = map { tacho_session($node, app => $_, db => $database)->run('SELECT 1') } qw(holder waiter);
	my $objects = "SELECT DISTINCT object FROM tacho.blocking(at => now()) WHERE level > 0";

	$holder->run("BEGIN; LOCK TABLE $table");
	$waiter->send("SELECT count(*) FROM $table");
	wait_until_locked($node, 'waiter');
	$node->poll_query_until('postgres', "SELECT ($objects) LIKE '$expected'");
	my $found = $node->safe_psql('postgres', $objects);
	$holder->run('ROLLBACK');
	$_->finish for $holder, $waiter;
	return $found;
}

like(locked_object('unread', 'relation %'), qr{^relation \d+/\d+$}, 'a table that no query has read has numbers');
$node->safe_psql('postgres', 'SELECT * FROM shop.orders WHERE v = 1');
is(locked_object('shop.orders', '%orders'), 'relation shop.orders', 'a table that a query has read has its name');
$node->safe_psql('postgres', 'ALTER TABLE shop.orders RENAME TO sales; SELECT id FROM shop.sales WHERE v = 2');
is(locked_object('shop.sales', '%sales'), 'relation shop.sales', 'a new name is shown once a query has read the table by it');

# rows: the first waiter for a row holds the lock of the tuple, the second one waits for it
my ($holder, $first, $second) = map { session($node, $_) } qw(holder first second);
$holder->run('BEGIN; UPDATE shop.sales SET v = 2 WHERE id = 1');
$_->send('UPDATE shop.sales SET v = 3 WHERE id = 1') for $first, $second;
wait_until_locked($node, 'first', 'second');
my $tuples = "SELECT object FROM tacho.blocking(at => now()) WHERE locktype = 'tuple' AND level > 0";
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($tuples) t");
is($node->safe_psql('postgres', $tuples), 'tuple shop.sales (0,1)', 'the table of a locked row has its name');
$holder->run('ROLLBACK');
$_->finish for $holder, $first, $second;

$node->safe_psql('other_db', 'CREATE TABLE "Odd name" (id int); SELECT max(id) FROM "Odd name"');
is(locked_object('"Odd name"', '%Odd%', 'other_db'), 'relation public.Odd name', 'a table of another database has its name');
done_testing();
