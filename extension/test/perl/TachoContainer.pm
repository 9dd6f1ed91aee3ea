# A server whose postmaster is process 1 of a name space of its own, as in a container.
#
# my $server = container_start($node);	# a stopped node; undef: name spaces are missing
# container_stop($server, 'INT');
#
# Process ids are ids of the name space of the test, not of the container.
package TachoContainer;

use strict;
use warnings;
use Exporter 'import';
use POSIX ();
use PostgreSQL::Test::Utils;

our @EXPORT_OK = qw(container_missing container_start container_stop gone_from
  parent_of pid_outside processes_of);

my @enter = qw(unshare --user --map-user=1000 --pid --fork --mount-proc);

my %servers;
END
{
	my $status = $?;
	kill 'KILL', values %servers;
	$? = $status;
}

# The reason why that is impossible here; empty if it is possible.
sub container_missing
{
	my ($id, $error) = run_command([ @enter, 'id', '-u' ]);

	return $id eq '1000' ? '' : "no user namespaces here: $error";
}

# Starts the server of a node; returns the process id of its postmaster.
sub container_start
{
	my ($node) = @_;
	chomp(my $bin = qx{"$ENV{PG_CONFIG}" --bindir});
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		open STDOUT, '>>', $node->logfile or die "open: $!";
		open STDERR, '>&', \*STDOUT or die "dup: $!";
		exec @enter, "$bin/postgres", '-D', $node->data_dir or POSIX::_exit(1);
	}
	$node->poll_query_until('postgres', 'SELECT true') or die 'the server does not start';
	my ($server) = split ' ', slurp_file("/proc/$pid/task/$pid/children");
	$servers{$pid} = $server;
	return { enter => $pid, postmaster => $server };
}

# Sends a signal and waits for the end; returns how the postmaster ended.
sub container_stop
{
	my ($server, $signal) = @_;

	kill $signal, $server->{postmaster};
	waitpid $server->{enter}, 0;
	delete $servers{ $server->{enter} };
	return $?;
}

sub status_of
{
	my ($pid) = @_;
	my $status = eval { slurp_file("/proc/$pid/status") } // '';

	return { $status =~ /^(\w+):\s+(.*)$/mg };
}

# The processes of a server, without the postmaster, whose command line matches.
sub processes_of
{
	my ($server, $pattern) = @_;
	my $space = readlink "/proc/$server->{postmaster}/ns/pid";

	return grep {
		(readlink("/proc/$_/ns/pid") // '') eq $space
		  && (eval { slurp_file("/proc/$_/cmdline") } // '') =~ $pattern
	} grep { $_ ne $server->{postmaster} } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*';
}

# The process whose id in the container is $inside.
sub pid_outside
{
	my ($server, $inside) = @_;
	my ($pid) = grep { (status_of($_)->{NSpid} // '') =~ /\s$inside$/ } processes_of($server, qr//);
	return $pid;
}

sub parent_of { my ($pid) = @_; return status_of($pid)->{PPid}; }

# Waits until the process is gone.
sub gone_from
{
	my ($pid) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if !-e "/proc/$pid/status";
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

1;
