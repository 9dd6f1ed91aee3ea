# A proxy between a client and a server, as a process of its own. It passes bytes on, or
# holds, delays, cuts or refuses them on request.
package TachoProxy;

use strict;
use warnings;
use Errno qw(EAGAIN EWOULDBLOCK);
use IO::Handle;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(AF_UNIX PF_UNSPEC SOCK_STREAM SOL_SOCKET SO_LINGER);
use Time::HiRes 'time';

# Starts a proxy that passes everything. $to is the path of a socket, or HOST:PORT.
sub start
{
	my ($class, $to) = @_;
	my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1')
	  or die "could not listen: $!";
	socketpair(my $ours, my $its, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!";
	my $pid = fork // die "could not fork: $!";
	if (!$pid)
	{
		$SIG{$_} = 'DEFAULT' foreach qw(INT TERM __DIE__ __WARN__);
		close $ours;
		eval { bless({ to => $to, listener => $listener, orders => $its, mode => 'pass', pairs => [] }, $class)->_run };
		POSIX::_exit(0);
	}
	close $its;
	$ours->autoflush(1);
	return bless { pid => $pid, port => $listener->sockport, orders => $ours, owner => $$ }, $class;
}

# The port on 127.0.0.1 for clients.
sub port { return $_[0]{port} }

# Sets the mode, which holds until the next call:
#   pass       passes all bytes.
#   stall      passes none, in either direction. Connections stay and are accepted.
#   refuse     resets existing connections, and closes new ones.
#   delay MS   passes each piece MS milliseconds later.
#   trickle    passes one byte of the server's answers at a time.
#   cut N      closes a connection once, after N more bytes of the server's answers.
# Returns when the mode is in effect.
sub set
{
	my ($self, $mode, $number) = @_;
	my $orders = $self->{orders};

	print $orders "$mode " . ($number // 0) . "\n";
	defined(my $done = <$orders>) or die 'the proxy has ended';
	return;
}

# Leads new connections to another server.
sub lead
{
	my ($self, $to) = @_;

	return $self->set('lead', $to);
}

# Ends the proxy and every connection through it.
sub stop
{
	my ($self) = @_;

	return unless $self->{pid} && $self->{owner} == $$;
	local $?;
	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

sub DESTROY { $_[0]->stop; return }

# --- the process. A pair is { ends => [client, server], waiting => [to client, to
# server] }; `waiting` is a list of [time, bytes].

sub _run
{
	my ($self) = @_;

	$SIG{PIPE} = 'IGNORE';
	while (1)
	{
		my $read = IO::Select->new($self->{orders}, $self->{listener});
		if ($self->{mode} ne 'stall')
		{
			$read->add(@{ $_->{ends} }) foreach @{ $self->{pairs} };
		}
		my %ready = map { fileno($_) => 1 } $read->can_read($self->_patience);
		$self->_order if $ready{ fileno $self->{orders} };
		$self->_accept if $ready{ fileno $self->{listener} };
		foreach my $pair (@{ $self->{pairs} })
		{
			next if $self->{mode} eq 'stall';
			$self->_receive($pair, $_) foreach grep { $pair->{ends}[$_] && $ready{ fileno $pair->{ends}[$_] } } 0, 1;
			$self->_send($pair, $_) foreach 0, 1;
		}
		$self->{pairs} = [ grep { !$_->{gone} } @{ $self->{pairs} } ];
	}
	return;
}

# Seconds until the next bytes are due.
sub _patience
{
	my ($self) = @_;
	my $least = 1;

	return $least if $self->{mode} eq 'stall';
	foreach my $piece (map { @{ $_->{waiting}[0] }, @{ $_->{waiting}[1] } } @{ $self->{pairs} })
	{
		my $left = $piece->[0] - time;
		$least = $left if $left < $least;
	}
	return $least < 0.001 ? 0.001 : $least;
}

sub _order
{
	my ($self) = @_;
	my $orders = $self->{orders};

	defined(my $line = <$orders>) or POSIX::_exit(0);
	my ($order, $number) = $line =~ /^(\S+) (.*)$/;
	if ($order eq 'lead') { $self->{to} = $number }
	else { @$self{qw(mode number)} = ($order, $number) }
	if ($self->{mode} eq 'refuse') { _reset($_) foreach @{ $self->{pairs} } }
	$self->{pairs} = [ grep { !$_->{gone} } @{ $self->{pairs} } ];
	syswrite $orders, "done\n";
	return;
}

sub _accept
{
	my ($self) = @_;
	my $client = $self->{listener}->accept or return;
	my $pair = { ends => [$client], waiting => [ [], [] ] };

	return _reset($pair) if $self->{mode} eq 'refuse';
	my $server = $self->{to} =~ m{^/} ? IO::Socket::UNIX->new(Peer => $self->{to}) : IO::Socket::INET->new($self->{to});
	return _reset($pair) unless $server;
	push @{ $pair->{ends} }, $server;
	$_->blocking(0) foreach @{ $pair->{ends} };
	push @{ $self->{pairs} }, $pair;
	return;
}

sub _receive
{
	my ($self, $pair, $from) = @_;
	my $mode = $self->{mode};

	return if $pair->{gone};
	my $count = sysread $pair->{ends}[$from], my $bytes, 65536;
	return if !defined $count && ($! == EAGAIN || $! == EWOULDBLOCK);
	return _reset($pair) unless $count;
	my $due = time + ($mode eq 'delay' ? $self->{number} / 1000 : 0);
	my $cut = $mode eq 'cut' && $from == 1 && length $bytes >= $self->{number};
	$bytes = substr $bytes, 0, $self->{number} if $cut;
	$self->{number} -= length $bytes if $mode eq 'cut' && $from == 1;
	push @{ $pair->{waiting}[ 1 - $from ] }, [ $due, $bytes ];
	if ($cut)
	{
		$self->_send($pair, 0);
		_close($pair);
		$self->{mode} = 'pass';
	}
	return;
}

sub _send
{
	my ($self, $pair, $to) = @_;
	my $waiting = $pair->{waiting}[$to];

	while (!$pair->{gone} && @$waiting && $waiting->[0][0] <= time)
	{
		my $most = $self->{mode} eq 'trickle' && $to == 0 ? 1 : 65536;
		my $sent = syswrite $pair->{ends}[$to], $waiting->[0][1], $most;
		return if !defined $sent && ($! == EAGAIN || $! == EWOULDBLOCK);
		return _reset($pair) unless $sent;
		substr($waiting->[0][1], 0, $sent) = '';
		shift @$waiting unless length $waiting->[0][1];
		return if $most == 1;
	}
	return;
}

sub _reset
{
	my ($pair) = @_;

	setsockopt $_, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) foreach grep { $_->isa('IO::Socket::INET') } @{ $pair->{ends} };
	return _close($pair);
}

sub _close
{
	my ($pair) = @_;

	close $_ foreach @{ $pair->{ends} };
	$pair->{gone} = 1;
	return;
}

1;
