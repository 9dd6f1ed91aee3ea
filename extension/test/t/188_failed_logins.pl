# Connections that never become sessions are measurements of the server.
use strict;
use warnings;
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(refusal tacho_cluster);
use Test::More;

my $node = tacho_cluster('logins', conf => q{
tacho.server_interval = 200ms
tacho.flush_interval = 100ms
max_connections = 10
superuser_reserved_connections = 1
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub total
{
	return sql("SELECT coalesce(sum(total), 0)::bigint FROM tacho.server_history(since => '2000-01-01', metric => '$_[0]')");
}

sub same
{
	my ($metric, $expected, $what) = @_;

	$node->poll_query_until('postgres', "SELECT coalesce(sum(total), 0) >= $expected
		FROM tacho.server_history(since => '2000-01-01', metric => '$metric')");
	is(total($metric), $expected, $what);
	return;
}

sql("CREATE ROLE $_ LOGIN PASSWORD 'right'") for qw(ana rejected);
sql('CREATE ROLE group_only');
# the first reading has nothing before it
my $readings = metric($node, 'server_readings');
wait_for_metric($node, 'server_readings', "value::bigint >= $readings + 2") or die 'no reading';
my $hba = $node->data_dir . '/pg_hba.conf';
my $all = PostgreSQL::Test::Utils::slurp_file($hba);
unlink $hba;
$node->append_conf('pg_hba.conf', "local all rejected reject\nlocal all ana scram-sha-256\n$all");
$node->reload;

{
	local $ENV{PGPASSWORD} = 'wrong';
	like(refusal($node, 'ana'), qr/password authentication failed/, 'a wrong password') for 1 .. 3;
}
like(refusal($node, 'rejected'), qr/pg_hba\.conf rejects/, 'a connection that pg_hba.conf rejects');
like(refusal($node, 'nobody_there'), qr/does not exist/, 'a role that does not exist');
like(refusal($node, 'group_only'), qr/not permitted to log in/, 'a role that may not log in');
same('logins_failed', 6, 'each of them is a failed login');

my ($code) = $node->psql('no_such_database', 'SELECT 1');
is($code, 2, 'a database that does not exist');
same('logins_refused', 1, 'a connection to it is refused');
{
	local $ENV{PGPASSWORD} = 'right';
	is(refusal($node, 'ana'), '', 'the right password');
}
same('logins_failed', 6, 'a session is no failed login');
same('logins_refused', 1, 'a session is no refused connection');
done_testing();
