# Makes processes slow to die, like one that waits for a throttled disk.
#
# hold($pid);		# stops a process. SIGKILL still ends it, but its parent
#					# cannot reap it. False if that fails; $@ says why
# let_go($pid);		# continues it, or lets its parent reap it
#
# Held processes continue when the process that holds them ends.
package TachoHold;

use strict;
use warnings;
use Exporter 'import';
use POSIX ();

our @EXPORT_OK = qw(hold hold_missing let_go);

# numbers of ptrace(); a process that is traced stays a zombie until its tracer ends
my %ptrace = (x86_64 => 101, aarch64 => 117);
use constant { SEIZE => 0x4206, INTERRUPT => 0x4207 };

my $owner = $$;
my %holders;
END
{
	my $status = $?;
	kill 'KILL', values %holders if $$ == $owner;
	$? = $status;
}

sub number { return $ptrace{ (POSIX::uname())[4] }; }

# Why no process can be held on this machine; empty if one can.
sub hold_missing { return number() ? '' : 'no number of ptrace() for ' . (POSIX::uname())[4]; }

sub hold
{
	my ($pid) = @_;

	pipe my $from, my $to or die "pipe: $!";
	my $holder = fork // die "fork: $!";
	if ($holder == 0)
	{
		my $done = syscall(number(), SEIZE, int $pid, 0, 0) == 0
		  && syscall(number(), INTERRUPT, int $pid, 0, 0) == 0;
		syswrite $to, $done ? 'held' : "$!";
		close $to;
		sleep 1000 while $done;
		POSIX::_exit(1);
	}
	close $to;
	my $said = <$from>;
	if ($said ne 'held')
	{
		waitpid $holder, 0;
		$@ = "could not hold process $pid: $said";
		return;
	}
	$holders{$pid} = $holder;
	return $pid;
}

sub let_go
{
	my ($pid) = @_;
	my $holder = delete $holders{$pid};

	kill 'KILL', $holder;
	waitpid $holder, 0;
	return;
}

1;
