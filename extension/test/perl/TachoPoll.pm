# Waits for the answer of a query, for all TAP tests, in one session. These tests mostly
# wait. A new client and server process for each query were most of their cost.
package TachoPoll;

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $pause_us = 100_000;
my $end = 'end of answer';

no warnings 'redefine';

# Repeats the query ten times a second until its answer is $expected ('t'). Returns
# false after the time limit of tests. If the server does not answer, the next attempt
# opens a new session.
*PostgreSQL::Test::Cluster::poll_query_until = sub {
	my ($node, $dbname, $query, $expected) = @_;
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	my ($session, $answer);
	local %ENV = $node->_get_env;

	$expected //= 't';
	do
	{
		usleep($pause_us) if defined $answer;
		$session = session($node, $dbname) unless $session && $session->{psql}->pumpable;
		$answer = answer($session, $query);
		$session = undef if $session->{ended};
	} until $answer eq $expected || time > $until;
	if ($session)
	{
		$session->{in} .= "\\q\n";
		eval { $session->{psql}->finish };
	}
	return 1 if $answer eq $expected;
	diag("timed out waiting for \"$expected\" of:\n$query\nlast answer:\n$answer");
	return 0;
};

sub session
{
	my ($node, $dbname) = @_;
	my $self = { in => '', out => '' };

	$self->{psql} = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr($dbname) ],
		'<', \$self->{in}, '>', \$self->{out}, '2>&1');
	return $self;
}

# Output and errors of one query. If psql has ended before it read the query (because
# there is no server yet), every pump() fails, but psql still counts as pumpable. So the
# first failure ends the session.
sub answer
{
	my ($session, $query) = @_;

	$session->{out} = '';
	$session->{in} .= "$query\n;\n\\echo $end\n";
	until ($session->{out} =~ /^$end$/m || !$session->{psql}->pumpable)
	{
		next if eval { $session->{psql}->pump; 1 };
		$session->{ended} = 1;
		$session->{psql}->kill_kill;
		last;
	}
	my ($answer) = $session->{out} =~ /^(.*?)\n?^$end$/ms;
	return $answer // $session->{out};
}

1;
