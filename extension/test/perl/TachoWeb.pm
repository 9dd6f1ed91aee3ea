# Helpers of the tests of tacho-web: the program beside a server, and its answers.
package TachoWeb;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
use HTTP::Tiny;
use IO::Socket::INET;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT_OK = qw($TOKEN openssl web web_program);

our $TOKEN = 'of-a-test-0123456789';

# The program under test; tests are left out where there is none.
sub web_program
{
	my $program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-web';

	plan skip_all => "there is no $program" unless -x $program;
	return $program;
}

# Starts tacho-web, with a file in $directory as its token.
sub web
{
	my ($directory, @arguments) = @_;
	my $file = "$directory/token";
	my $self = { out => '', log => '' };

	PostgreSQL::Test::Utils::append_to_file($file, "$TOKEN\n") unless -e $file;
	chmod 0600, $file or die "$file: $!";
	# its sessions have the name that it gives them
	delete local $ENV{PGAPPNAME};
	$self->{harness} = IPC::Run::start(
		[ web_program(), '--listen', '127.0.0.1:0', '--token-file', $file, @arguments ],
		'<', \undef, '>', \$self->{out}, '2>', \$self->{log});
	until ($self->{out} =~ m{^https?://([\d.:]+)/}m)
	{
		die "tacho-web did not start: $self->{log}" unless $self->{harness}->pumpable;
		$self->{harness}->pump;
	}
	($self->{address}) = $self->{out} =~ m{^https?://([\d.:]+)/}m;
	return bless $self, 'TachoWeb::Program';
}

# Runs openssl. Returns what it says.
sub openssl
{
	my ($out, $error) = ('', '');

	IPC::Run::run([ 'openssl', @_ ], '<', \undef, '>', \$out, '2>', \$error);
	return $out . $error;
}

package TachoWeb::Program;

sub _path
{
	my ($function, %argument) = @_;
	my $http = HTTP::Tiny->new;

	delete @argument{ grep { !defined $argument{$_} } keys %argument };
	return "/api/v1/$function?" . $http->www_form_urlencode(\%argument);
}

# Status, and the body as JSON whose numbers are strings: 1.5000 is not 1.5 here.
sub ask
{
	my ($self, $function, %argument) = @_;
	my $http = HTTP::Tiny->new(default_headers => { Authorization => "Bearer $TOKEN" }, timeout => 180);
	my $answer = $http->get("http://$self->{address}" . _path($function, %argument));

	return ($answer->{status}, $answer->{content}) unless $answer->{content} =~ /^\s*\{/;
	return ($answer->{status}, exact($answer->{content}));
}

sub exact
{
	my ($text) = @_;

	$text =~ s/("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?)/defined $1 ? $1 : qq("$2")/ge;
	return JSON::PP->new->utf8->decode($text);
}

# Sends a question and returns its connection; closing it cancels the question.
sub send
{
	my ($self, $function, %argument) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => $self->{address}) or die "$self->{address}: $!";

	print $socket 'GET ' . _path($function, %argument)
	  . " HTTP/1.1\r\nHost: $self->{address}\r\nAuthorization: Bearer $TOKEN\r\n\r\n";
	$socket->flush;
	return $socket;
}

# Ends it.
sub end
{
	my ($self) = @_;

	$self->{harness}->signal('TERM');
	$self->{harness}->finish;
}

1;
