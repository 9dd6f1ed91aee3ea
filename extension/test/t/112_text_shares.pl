# All roles share the room for texts. A role that records many texts leaves room for
# others, and has its own texts whichever role ran them first.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoAccounts qw(roles_of_an_account text_account);
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);
use Test::More;

my $node = tacho_cluster('shares', interval => '20ms', conf => 'tacho.text_limit = 2MB');

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Runs, as a role, a statement that sleeps until a reader sees its text; returns the
# text.
sub text_of
{
	my ($role, $reader, $sql) = @_;
	my $session = tacho_session($node, user => $role, app => $role);
	my @as = (extra_params => [ '-U', $reader ]);
	my $where = "FROM tacho.samples(application => '$role', wait_event => 'PgSleep', n => 1)";

	$session->send($sql);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$role' AND wait_event = 'PgSleep'");
	my $ticks = metric($node, 'ticks_taken') + 3;
	wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 $where");
	my $text = $node->safe_psql('postgres', "SELECT query_text $where", @as);
	sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$role'");
	$session->finish;
	return $text;
}

sql(q{
CREATE ROLE first LOGIN;
CREATE ROLE second LOGIN;
CREATE ROLE burst LOGIN;
CREATE ROLE late LOGIN;
GRANT USAGE ON SCHEMA tacho TO second;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO second;
});
is(text_of('first', 'postgres', 'SELECT 1, pg_sleep(1000)'), 'SELECT $1, pg_sleep($2)', 'the role that runs a statement first has its text');
is(text_of('second', 'second', 'SELECT 2, pg_sleep(1000)'), 'SELECT $1, pg_sleep($2)', 'a role that runs the statement later reads the text too');

# 800 texts of 6 kB and more are twice the limit.
for my $turn (1 .. 4)
{
	my $session = tacho_session($node, user => 'burst', app => 'burst');
	$session->run('SELECT ' . 'NULL,' x (1000 + $_) . ' 1') for 1 .. 400;
	$session->finish;
}
ok(wait_for_marker($node, 'texts left out', 1), 'a marker says that texts are cut or left out');
is(sql(q{SELECT DISTINCT detail FROM tacho.markers() WHERE kind = 'texts left out'}),
	'texts of role "burst" in database "postgres" are truncated or omitted: its share of tacho.text_limit',
	'the marker names the role');
is(text_of('late', 'postgres', 'SELECT 1, 2, 3, pg_sleep(1000)'),
	'SELECT $1, $2, $3, pg_sleep($4)', 'other roles have room for their texts');
is(text_of('burst', 'postgres', 'SELECT 1, 2, pg_sleep(1000), 3'),
	'SELECT $1, $2, pg_sleep($3), $4', 'short texts of the role itself have room');

# Two roles with the same hash have one share, and a marker each. A limit below the
# bytes in use leaves no room at all.
my $database = sql("SELECT oid FROM pg_database WHERE datname = 'postgres'");
my ($one, $two) = roles_of_an_account($node, sub { text_account($database, @_) });
$node->safe_psql('postgres', $_)
  for "ALTER SYSTEM SET tacho.text_limit = '64kB'", 'SELECT pg_reload_conf()';
ok(wait_for_marker($node, 'settings changed', 1), 'the limit is lowered');
my $left_out = metric($node, 'texts_over_limit');
sub long { return $node->safe_psql('postgres', 'SELECT ' . 'NULL,' x $_[1] . ' 1', extra_params => [ '-U', $_[0] ]) }
long($one, 998);
ok(wait_for_metric($node, 'texts_over_limit', "value::bigint > $left_out"), 'texts of the role are left out');
long($two, 999);
for my $role ($one, $two)
{
	ok( $node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM tacho.markers() WHERE kind = 'texts left out' AND detail ~ '\"$role\"'"),
		"a marker names role $role");
}
$node->stop;

done_testing();
