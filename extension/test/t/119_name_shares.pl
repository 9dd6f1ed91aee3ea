# The names that clients give have a limit: a role whose sessions change their names
# all the time leaves room for the names of other roles.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TachoAccounts qw(create_roles_apart name_account roles_of_an_account);
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('names', interval => '20ms', init => { allows_streaming => 1 }, conf => q{
tacho.name_limit = 32kB
tacho.server_interval = 200ms
max_prepared_transactions = 5
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Names of a role's sessions in the history since a moment.
sub applications
{
	my ($role, $since) = @_;

	return sql(qq{SELECT DISTINCT application FROM tacho.samples(
		since => @{[at($since)]}, n => null, username => '$role') ORDER BY 1});
}

# Starts a session of a role that sleeps; returns its name in the history.
sub called
{
	my ($role, $name) = @_;
	my $session = tacho_session($node, user => $role, app => 'begins');

	$session->send("SET application_name = '$name'; SELECT pg_sleep(1000)");
	$node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = '$name' AND wait_event = 'PgSleep'});
	my $since = server_ms($node) + 100;
	wait_for_ticks($node, 5, $since);
	my $called = applications($role, $since);
	sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$name'");
	$session->finish;
	return $called;
}

# A session of a role that changes its name all the time, in a cycle of some names.
sub flood
{
	my ($role, $names) = @_;

	return tacho_session($node, user => $role, app => "$role 00000")->send(qq{
		DO \$\$ BEGIN FOR i IN 1 .. 100000 LOOP PERFORM set_config('application_name',
			'$role ' || to_char(i % $names, 'FM00000'), false), pg_sleep(0.02);
		END LOOP; END \$\$});
}

sub end_flood
{
	my ($role, $session) = @_;

	sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = '$role'");
	$session->finish;
	return;
}

create_roles_apart($node, \&name_account, qw(flood quiet late again));
my $begin = server_ms($node);
is(called('quiet', 'reports'), 'reports', 'the history has the name of a session');
# The end of this test says what becomes of these names.
my $again = flood('again', 60);
ok($node->poll_query_until('postgres', qq{SELECT count(DISTINCT application) >= 60 FROM tacho.samples(
	since => @{[at($begin)]}, n => null, username => 'again')}), 'all names of a cycle have room at first');

my $flood = flood('flood', 100000);
my $left_out = q{FROM tacho.markers() WHERE kind = 'names left out' AND detail LIKE '%"flood"%'};
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 $left_out"), 'a marker says that names are left out');
is( sql("SELECT detail $left_out"),
	'names that role "flood" gives are recorded as (other): its share of tacho.name_limit',
	'the marker names the role');
my $since = server_ms($node);
ok(wait_for_metric($node, 'names_over_limit', 'value::bigint >= 100'), 'status() counts the names left out');
is(applications('flood', $since), '(other)', 'later names of the role are (other)');
is(sql("SELECT count(*) $left_out"), 1, 'names of the role left out later have the same marker');
end_flood('flood', $flood);

# a quarter of 32 kB, less what the burst itself takes away, is 91 names of 11 bytes. Each
# has a session. One more name is (other).
cmp_ok(scalar(split /\n/, applications('flood', $begin)), '<=', 95, 'a burst of one role has a quarter of the bytes left');
is(called('quiet', 'reports'), 'reports', 'other roles keep their names');
is(called('quiet', 'exports'), 'exports', 'other roles get new names');
is(called('late', 'imports'), 'imports', 'roles that come later get new names');

# the client gives the name of a prepared transaction, too
my $gid = 'g' x 199;
my ($holder, $waiter) = map { tacho_session($node, user => $_, app => $_) } qw(flood quiet);
$holder->run("BEGIN; SELECT pg_advisory_xact_lock_shared(1), txid_current(); PREPARE TRANSACTION '$gid'");
$waiter->send('SELECT pg_advisory_xact_lock(1)');
$node->poll_query_until('postgres',
	q{SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE application_name = 'quiet'});
$since = server_ms($node) + 100;
wait_for_ticks($node, 5, $since);
is( sql("SELECT DISTINCT prepared_gid FROM tacho.blocking(since => @{[at($since)]})"),
	'(other)', 'a prepared transaction of that role is (other)');
$holder->run("ROLLBACK PREPARED '$gid'");
$_->finish for $holder, $waiter;

# ... and a replica gives its own name
sql('ALTER ROLE flood REPLICATION');
my $directory = PostgreSQL::Test::Utils::tempdir();
my $replica = IPC::Run::start(
	[
		'pg_receivewal', '--no-loop', '-D', $directory, '-d',
		'host=' . $node->host . ' port=' . $node->port . ' user=flood application_name=' . 'r' x 63
	], '<', \undef, '>', \my $said, '2>&1');
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0
	FROM tacho.server_history(metric => 'replica_sent_lag', object => '(other)')}), 'a replica of that role is (other)');
is(sql(q{SELECT count(*) FROM tacho.server_history(metric => 'replica_sent_lag') WHERE object ~ '^r'}), '0', 'names of that role are always (other)');
$replica->kill_kill;

# Two roles whose hashes meet have one share, and a marker each
my @roles = roles_of_an_account($node, \&name_account);
for my $role (@roles)
{
	$flood = flood($role, 100000);
	ok( $node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM tacho.markers() WHERE kind = 'names left out' AND detail ~ '\"$role\"'"),
		"a marker names role $role");
	end_flood($role, $flood);
}

# A session that returns to its names takes bytes of the day each minute. All 60 names had
# room at first, and no others came.
my $other = "FROM tacho.samples(since => @{[at($begin)]}, n => null, username => 'again', application => '(other)')";
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 $other"),
	'a session that repeats its names is (other) once their share is used up');
end_flood('again', $again);
$node->stop;
done_testing();
