# Reader functions with the real program: its memory is limited, it ends with its
# backend, and it reads the server's own history, also on a standby.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster wait_for_file);
use TachoTest qw(server_ms tacho_session wait_for_ticks);
use Test::More;

my $node = stand_in_cluster('real', init => { allows_streaming => 1 });
my $real = q{exec $program, @ARGV};

sub wait_until_gone
{
	my ($pid) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 unless kill 0, $pid;
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

behave($node, $real);
wait_for_ticks($node, 5, server_ms($node));

# Too little memory is an error with a hint; the session and the recording go
# on, and no core file is left.
{
	my $starts = q{SELECT string_agg(value, ' ') FROM tacho.status() WHERE metric IN ('sampler_starts', 'writer_starts')};
	my $before = $node->safe_psql('postgres', $starts);
	my $session = tacho_session($node);

	# 60,000 values for each of five filters
	my $filters = join ', ', map { "$_ => repeat('x,', 60000) || 'x'" }
	  qw(application database username client_addr backend_type);

	behave($node, q{exec $program, map { s/^(--memory-limit-mb=).*/${1}16/r } @ARGV});
	$session->run("SELECT * FROM tacho.aas($filters);");
	like($session->{out}, qr/ERROR:  tacho program ran out of memory\nDETAIL:  The limit is 16 MB\.\nHINT:  Use a shorter window or fewer rows\./,
		'a program with too little memory is an error');
	behave($node, $real);
	$session->run("SELECT 'ticks: ' || (ticks_observed > 0) FROM tacho.aas();");
	like($session->{out}, qr/^ticks: true$/m, 'the session can ask after that error');
	$session->finish;
	is($node->safe_psql('postgres', $starts), $before,
		'sampler and writer are the same processes as before');
	is_deeply([ glob $node->data_dir . '/core*' ], [], 'no program left a core file');
}

# A standby reads its own history.
{
	$node->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');

	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "tacho.directory = 'own'");
	$standby->start;
	wait_for_ticks($standby, 5, server_ms($standby));
	is( $standby->safe_psql('postgres', q{
SELECT pg_is_in_recovery(), (SELECT source FROM tacho.aas()),
       (SELECT value FROM tacho.status() WHERE metric = 'recording')}),
		't|raw|on', 'a standby records and answers');
	is( $standby->safe_psql('postgres', q{
SELECT count(*) FROM tacho.markers(since => '2000-01-01') WHERE kind = 'start'}),
		'1', 'the history of the standby begins with its start');
	$standby->stop;
}

# A program whose backend is killed before it could ask to end with it finds
# out by itself. (The server of a test does not start again after a crash.)
{
	my $session = tacho_session($node, app => 'reader');

	behave($node, q{note('pid', $$); kill 'STOP', $$; exec $program, @ARGV});
	$session->send('SELECT * FROM tacho.aas();');
	my $program = wait_for_file($node, 'pid');
	my $backend = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'reader' AND state = 'active'");

	kill 'KILL', $backend;
	kill 'CONT', $program;
	ok(wait_until_gone($program), 'the program ends without its backend');
	$session->{harness}->kill_kill;
}

$node->stop('immediate', fail_ok => 1);
done_testing();
