# Helpers shared by the TAP tests.
#
# Environment: TACHO_PROGRAM names the tacho program (the test runner sets it).
package TachoTest;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoPoll;
use Test::More;

our @EXPORT_OK = qw(at refusal tacho_cluster tacho_session server_ms
  wait_for_marker wait_for_ticks
  wait_until_in_history wait_until_recorded);

# A started cluster that records into its own directory. It keeps its interval even on a
# machine so busy that a sample takes long. Its sampler has begun, so status() has its
# values.
# Options: conf => extra lines, interval => '100ms', extension => 0 to leave
# CREATE EXTENSION out, start => 0 to leave it stopped.
sub tacho_cluster
{
	my ($name, %opt) = @_;
	my $program = $ENV{TACHO_PROGRAM}
	  or die "TACHO_PROGRAM must name the tacho program";
	my $interval = $opt{interval} // '100ms';
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $opt{init} // {} });
	$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'tacho'
tacho.program = '$program'
tacho.sample_interval = $interval
tacho.flush_interval = 1s
tacho.max_cpu = 0
autovacuum = off
});
	$node->append_conf('postgresql.conf', $opt{conf}) if $opt{conf};
	return $node if defined $opt{start} && !$opt{start};
	$node->start;
	return $node if defined $opt{extension} && !$opt{extension};
	$node->safe_psql('postgres', 'CREATE EXTENSION tacho');
	$node->poll_query_until('postgres',
		"SELECT value IS NOT NULL FROM tacho.status() WHERE metric = 'sampler_pid'")
	  or die 'the sampler has not started';
	return $node;
}

# A psql that stays open. Options: db, user, app. Methods: send($sql),
# finish().
sub tacho_session
{
	my ($node, %opt) = @_;
	my $self = { in => '', out => '' };
	my $conninfo = join ' ',
	  'host=' . $node->host, 'port=' . $node->port,
	  'dbname=' . ($opt{db} // 'postgres'),
	  "application_name='" . ($opt{app} // 'tacho test') . "'",
	  ($opt{user} ? "user=$opt{user}" : ());

	$self->{harness} = IPC::Run::start(
		[ psql_path(), '-XAtq', '-d', $conninfo ],
		'<', \$self->{in}, '>', \$self->{out}, '2>&1');
	return bless $self, 'TachoTest::Session';
}

# The error message for a client that may not connect. The client reads no statement
# from its input, which could be left unread.
sub refusal
{
	my ($node, $user) = @_;
	my $conninfo = $node->connstr('postgres') . ($user ? " user=$user" : '');
	my ($out, $error) =
	  run_command([ psql_path(), '-Xq', '-d', $conninfo, '-c', 'SELECT 1' ]);
	return $error;
}

# The server's clock in milliseconds.
sub server_ms
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');
}

# Waits until the tape holds $count markers of a kind.
sub wait_for_marker
{
	my ($node, $kind, $count) = @_;
	return $node->poll_query_until('postgres',
		"SELECT count(*) >= $count FROM tacho.markers(since => '2000-01-01') WHERE kind = '$kind'"
	);
}

# Waits until at least $count ticks have been observed since a moment of
# server_ms().
sub wait_for_ticks
{
	my ($node, $count, $since_ms) = @_;
	my $since = at($since_ms);
	return $node->poll_query_until('postgres',
		"SELECT ticks_observed >= $count FROM tacho.aas(since => $since, bucket => '1 day')"
	);
}

# Waits until the sampler has recorded statistics of statements, twice: the first time
# may have begun before.
sub wait_until_recorded
{
	my ($node) = @_;

	for (1 .. 2)
	{
		my $now = server_ms($node);

		$node->poll_query_until('postgres', "SELECT value::timestamptz > @{[at($now)]}
			FROM tacho.status() WHERE metric = 'statements_recorded'")
		  or die 'nothing is recorded';
	}
	return;
}

# Waits until all earlier executions are in the history.
sub wait_until_in_history
{
	my ($node) = @_;

	wait_until_recorded($node);
	wait_for_ticks($node, 12, server_ms($node));
	return;
}

# SQL for a moment of server_ms().
sub at
{
	my ($ms) = @_;
	return "to_timestamp($ms / 1000.0)";
}

# psql of the installation under test.
sub psql_path
{
	my $bindir = `$ENV{PG_CONFIG} --bindir`;

	chomp $bindir;
	return "$bindir/psql";
}

package TachoTest::Session;

use Time::HiRes 'usleep';

# Sends a statement without waiting for it.
sub send
{
	my ($self, $sql) = @_;

	return $self->type("$sql;");
}

sub type
{
	my ($self, $line) = @_;

	$self->{in} .= "$line\n";

	# pump() would also wait for output, which a statement need not have.
	while (length $self->{in})
	{
		$self->{harness}->pump_nb;
		usleep(1000);
	}
	return $self;
}

# Sends a statement and waits for its end.
sub run
{
	my ($self, $sql) = @_;
	my $mark = 'done ' . ++$self->{statements};

	$self->type("$sql;\n\\echo $mark");
	$self->{harness}->pump until $self->{out} =~ /^$mark$/m;
	return $self;
}

sub finish
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	return $self->{harness}->finish;
}

1;
