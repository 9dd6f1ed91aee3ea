# tacho-record behind PgBouncer, which lends server connections by session or by
# transaction. The history is the same, no setting stays on the connection, and
# interruptions by the pooler are gaps with their reasons.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoLocks qw(session wait_until_locked);
use TachoRecord qw(ask markers moment record record_program run_record ticks wait_for_gap wait_until);

record_program(texts => 0);
my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless $pgbouncer;

my $node = PostgreSQL::Test::Cluster->new('pooled');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t VALUES (1, 0)});
my ($holder, $waiter) = map { session($node, "s_$_") } qw(holder waiter);
$holder->run('BEGIN; UPDATE t SET v = 1');
$waiter->send('UPDATE t SET v = 2');
wait_until_locked($node, 's_waiter');

my @poolers;

# A pooler with one connection to the server: harness, port.
sub pooler
{
	my ($mode, $port) = @_;
	my $directory = $node->basedir . "/$mode";
	my ($host, $server_port, $superuser) = ($node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'));

	mkdir $directory;
	unlink "$directory/ini", "$directory/users";
	append_to_file("$directory/users", qq{"watcher" ""\n"admin" ""\n});
	append_to_file("$directory/ini", qq{[databases]
postgres = host=$host port=$server_port dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = trust
auth_file = $directory/users
admin_users = admin
pool_mode = $mode
default_pool_size = 1
server_login_retry = 1
});
	my $pooler = IPC::Run::start([ $pgbouncer, '-q', "$directory/ini" ], '<', \undef, '>', \my $out, '2>', \my $error);
	push @poolers, $pooler;
	return $pooler;
}

# A test that dies leaves no pooler behind.
END
{
	my $status = $?;
	eval { $_->kill_kill } foreach @poolers;
	$? = $status;
}

# Output of a query through the pooler.
sub through
{
	my ($port, $dbname, $user, $sql) = @_;
	my ($out) = run_command([ $node->installed_command('psql'), '-XAtq', '-c', $sql,
		"host=127.0.0.1 port=$port dbname=$dbname user=$user" ]);

	return $out;
}

foreach my $mode (qw(transaction session))
{
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $conninfo = "host=127.0.0.1 port=$port dbname=postgres user=watcher";
	my $tape = $node->basedir . "/recorded_$mode";
	my $pooler = pooler($mode, $port);

	# 3: there is no pg_stat_statements
	wait_until("a pooler by $mode", sub { (run_record('--check', $conninfo))[0] == 3 });
	my ($code, $out) = run_record('--check', $conninfo);
	like($out, qr/^yes  connection: through a pooler/m, "$mode: a check says that there is a pooler");
	my $error;
	($code, $out, $error) = run_record('--check', "host=127.0.0.1 port=$port dbname=pgbouncer user=admin");
	is($code, 1, "$mode: a check of the console fails");
	like($error, qr/^error: connected to the console of a pooler, not to a database\nhint: Connect to a database that the pooler serves\.$/m,
		"$mode: the check says that it is the console");
	my $since = moment($node);
	my $recorder = record($conninfo, $tape, args => [ '--server-interval', 200 ]);
	wait_until('ticks', sub { ticks($tape, $since) >= 10 });
	is_deeply(
		[ map { "$_->{application} $_->{state} $_->{wait_event}" . ($_->{blocked_by} ? ' blocked' : '') }
			  grep { $_->{application} eq 's_waiter' } ask($tape, 'samples', '--since', $since, '--n', 1) ],
		['s_waiter active transactionid blocked'], "$mode: sessions, waits and blockers are recorded");
	is_deeply([ ask($tape, 'samples', '--since', $since, '--application', 'tacho record', '--scope', 'all') ], [],
		"$mode: the recorder leaves its own session out");
	wait_until('measurements', sub { ask($tape, 'server-history', '--metric', 'xact_commit', '--since', $since) > 0 });
	# a busy machine may answer late
	is_deeply([ grep { !/did not answer within/ } markers($tape, 'gap') ], [], "$mode: there is no gap by an error");

	if ($mode eq 'transaction')
	{
		is(through($port, 'postgres', 'watcher', $_->[0]), $_->[1], "$mode: $_->[0] does not reach the next client")
		  foreach [ 'SHOW statement_timeout', 0 ], [ 'SHOW lock_timeout', 0 ], [ 'SHOW search_path', '"$user", public' ];
	}

	# The pooler makes all clients wait.
	my $gaps = () = markers($tape, 'gap');
	my $by_transaction = $mode eq 'transaction';
	$by_transaction ? through($port, 'pgbouncer', 'admin', 'PAUSE') : $pooler->signal('STOP');
	wait_until('a wait', sub { $recorder->log =~ /not recording: .*server did not answer within 5000 ms/ });
	$by_transaction ? through($port, 'pgbouncer', 'admin', 'RESUME') : $pooler->signal('CONT');
	like(wait_for_gap($tape, $gaps + 1)->{detail}, qr/did not answer within 5000 ms/, "$mode: a pause is a gap");

	# The pooler's connection to the server is terminated. By transaction, the pooler
	# takes another one, perhaps unnoticed. By session, it is the recorder's.
	$since = moment($node);
	wait_until('ticks', sub { ticks($tape, $since) >= 3 });
	$gaps = () = markers($tape, 'gap');
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'watcher'});
	like(wait_for_gap($tape, $gaps + 1)->{detail}, qr/terminating connection|server conn|connection to server was lost/,
		"$mode: an ended connection is a gap") if $mode eq 'session';
	$since = moment($node);
	wait_until('ticks', sub { ticks($tape, $since) >= 5 });
	ok(1, "$mode: recording goes on after the gap");

	# The pooler itself is started again.
	$gaps = () = markers($tape, 'gap');
	my $said = length $recorder->log;
	$pooler->kill_kill;
	wait_until('its end', sub { substr($recorder->log, $said) =~ /not recording/ });
	$pooler = pooler($mode, $port);
	like(wait_for_gap($tape, $gaps + 1)->{detail}, qr/\S/, "$mode: a pooler that is gone is a gap with a reason");
	$since = moment($node);
	wait_until('ticks', sub { ticks($tape, $since) >= 3 });
	is_deeply([ map { scalar markers($tape, $_) } qw(start stop) ], [ 1, 0 ], "$mode: the server and its life are the same");
	is($recorder->end('TERM'), 0, "$mode: the recorder ends");
	$pooler->kill_kill;
}

$node->stop('immediate');
done_testing();
