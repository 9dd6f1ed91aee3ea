# Helpers of the tests of tacho-record: run a recorder, and read its history.
package TachoRecord;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
use IPC::Run;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

our @EXPORT_OK = qw(ask markers moment record record_file record_program run_record ticks wait_for_gap
  wait_until);

my @started;

# The program under test. Skips the test if it is missing, or if pg_stat_statements is,
# which the texts come from. Option: texts => 0, no texts are needed.
sub record_program
{
	my (%opt) = @_;
	my $program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-record';

	plan skip_all => "there is no $program" unless -x $program;
	plan skip_all => 'pg_stat_statements is not installed'
	  unless !($opt{texts} // 1) || -e PostgreSQL::Test::Cluster->new('probe')->config_data('--pkglibdir') . '/pg_stat_statements.so';
	return $program;
}

# Starts a recorder of a connection string into a directory. Fields: harness, log (its
# messages). Options: interval => ms, args => [...].
sub record
{
	my ($conninfo, $tape, %opt) = @_;

	return start($conninfo, '--tape', $tape, '--interval', $opt{interval} // 100,
		'--flush-interval', 1000, @{ $opt{args} // [] });
}

# Starts a recorder of the servers in a configuration file.
sub record_file
{
	my ($file) = @_;

	return start('--config', $file);
}

sub start
{
	my (@arguments) = @_;
	my $self = { log => '' };

	# the recorder's own name of its sessions must be visible
	delete local $ENV{PGAPPNAME};

	$self->{harness} = IPC::Run::start(
		[ dirname($ENV{TACHO_PROGRAM}) . '/tacho-record', @arguments ],
		'<', \undef, '>', \my $out, '2>', \$self->{log});
	push @started, $self->{harness};
	return bless $self, 'TachoRecord::Recorder';
}

# A test that dies leaves no recorder behind.
END
{
	my $status = $?;
	eval { $_->kill_kill } foreach @started;
	$? = $status;
}

# Runs tacho-record to its end: exit code, output, errors.
sub run_record
{
	my (@arguments) = @_;

	delete local $ENV{PGAPPNAME};
	IPC::Run::run([ dirname($ENV{TACHO_PROGRAM}) . '/tacho-record', @arguments ],
		'<', \undef, '>', \my $out, '2>', \my $error);

	return ($? >> 8, $out, $error);
}

# Runs a command of tacho and returns its rows; none while there is no history.
sub ask
{
	my ($tape, $command, @arguments) = @_;
	my ($out, $error) =
	  run_command([ $ENV{TACHO_PROGRAM}, $command, '--tape', $tape, '--json', @arguments ]);

	return () if $error =~ /^error: /m;
	return @{ decode_json($out) };
}

# Polls until a condition holds.
sub wait_until
{
	my ($what, $holds) = @_;

	for (1 .. 1800)
	{
		return 1 if $holds->();
		usleep(100_000);
	}
	die "not reached in time: $what";
}

# This moment by the clock of a server, as RFC 3339 writes it.
sub moment
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
}

# Number of ticks that were observed since a moment (RFC 3339).
sub ticks
{
	my ($tape, $since) = @_;
	my ($row) = ask($tape, 'aas', '--since', $since, '--bucket', '1d');

	return $row ? $row->{ticks_observed} // 0 : 0;
}

# Details of all markers of a kind.
sub markers
{
	my ($tape, $kind) = @_;
	my @markers = grep { $_->{kind} eq $kind } ask($tape, 'markers', '--since', '2000-01-01T00:00:00Z');

	return map { $_->{detail} } @markers;
}

# Waits for the gap number $count; returns its row.
sub wait_for_gap
{
	my ($tape, $count) = @_;
	my @gaps;

	wait_until("gap $count", sub {
		@gaps = grep { $_->{kind} eq 'gap' } ask($tape, 'markers', '--since', '2000-01-01T00:00:00Z');
		return @gaps >= $count;
	});
	return $gaps[$count - 1];
}

package TachoRecord::Recorder;

# Sends a signal and waits for the end; returns the exit code, or the signal
# that ended it as a negative number.
sub end
{
	my ($self, $signal) = @_;

	$self->{harness}->signal($signal);
	eval { $self->{harness}->finish };
	my $status = $self->{harness}->full_result(0);
	return $status & 127 ? -($status & 127) : $status >> 8;
}

# Sends a signal.
sub signal
{
	my ($self, $signal) = @_;

	$self->{harness}->signal($signal);
	return;
}

# The messages so far.
sub log
{
	my ($self) = @_;

	$self->{harness}->pump_nb;
	return $self->{log};
}

1;
