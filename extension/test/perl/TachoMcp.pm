# A client of tacho mcp, and an agent without a model that asks as docs/mcp.md says.
package TachoMcp;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
use IPC::Run;
use JSON::PP;
use POSIX qw(strftime);
use TachoRecord qw(wait_until);
use Text::ParseWords qw(shellwords);

our @EXPORT_OK = qw(investigate mcp mcp_program utc);

# The tool for a command in the column "next" (docs/mcp.md); other commands have the name of their tool.
my %TOOL = (blocking => 'locks', 'statements-history' => 'query', 'server-history' => 'report',
	'tables-history' => 'tables');
my $json = JSON::PP->new->utf8->canonical;
# An answer is a text in the JSON of a result, so its characters are decoded already.
my $inner = JSON::PP->new;

# The program beside tacho; nothing if it was not built.
sub mcp_program
{
	my $program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-mcp';

	return -x $program ? $program : ();
}

# A time in ms since 1970 as tools take it.
sub utc
{
	my ($ms) = @_;

	return strftime('%Y-%m-%dT%H:%M:%S', gmtime(int($ms / 1000))) . sprintf('.%03dZ', $ms % 1000);
}

# Starts the program with arguments and says hello.
sub mcp
{
	my (@arguments) = @_;
	my $self = bless { in => '', out => '', said => '', calls => 0 }, __PACKAGE__;

	$self->{harness} = IPC::Run::start([ mcp_program(), @arguments ], '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{said});
	$self->ask('initialize', { protocolVersion => '2025-06-18', capabilities => {}, clientInfo => { name => 't', version => '0' } });
	$self->{in} .= $json->encode({ jsonrpc => '2.0', method => 'notifications/initialized' }) . "\n";
	return $self;
}

# The result of a request.
sub ask
{
	my ($self, $method, $params) = @_;
	my $id = ++$self->{calls};

	$self->{in} .= $json->encode({ jsonrpc => '2.0', id => $id, method => $method, params => $params }) . "\n";
	wait_until("the answer to $method", sub { $self->{harness}->pump_nb; $self->{out} =~ /\n\z/ && $self->{out} =~ /"id":$id\b/ });
	my ($answer) = grep { ($_->{id} // 0) == $id } map { $json->decode($_) } split /\n/, $self->{out};
	$self->{out} = '';
	die "$method: " . $json->encode($answer) . "\n$self->{said}" unless $answer->{result};
	return $answer->{result};
}

# The answer of a tool.
sub call
{
	my ($self, $tool, %arguments) = @_;
	my $result = $self->ask('tools/call', { name => $tool, arguments => \%arguments });

	die "$tool: $result->{content}[0]{text}" if $result->{isError};
	return $inner->decode($result->{content}[0]{text});
}

sub end { my ($self) = @_; return $self->{harness}->finish }

# The tool and its arguments for a command: tacho top application --query-id=7 --since T --until T
sub suggested
{
	my ($command) = @_;
	my (undef, $name, @words) = shellwords($command);
	my (%arguments, %filters);

	$arguments{dimension} = shift @words if $name eq 'top' && $words[0] !~ /^--/;
	while (my $word = shift @words)
	{
		my ($option, $value) = $word =~ /^--([a-z-]+)(?:=(.*))?$/s or die $command;
		$option =~ tr/-/_/;
		$value //= shift @words;
		next if $option eq 'bucket';
		my $is_own = $option =~ /^(?:since|until|at|scope)$/ || ($name eq 'statements-history' && $option eq 'query_id');
		($is_own ? \%arguments : \%filters)->{$option} = $value;
	}
	$arguments{filters} = \%filters if %filters;
	return ($TOOL{$name} // $name, %arguments);
}

# Asks for the servers, then for the changes of a window, then the tool that the first row suggests.
# Returns the first row, the name of that tool, and whether its answer shows anything.
sub investigate
{
	my ($self, %window) = @_;
	my ($server) = @{ $self->call('servers')->{servers} };
	my ($first) = @{ $self->call('changes', server => $server->{name}, %window)->{rows} };
	my ($tool, %arguments) = $first->{next} ? suggested($first->{next}) : ('report', %window);
	my $answer = $self->call($tool, server => $server->{name}, %arguments);
	my @shown = grep { ref $answer->{$_} ? @{ $answer->{$_} } : length($answer->{$_} // '') } qw(rows costs waits plans report);

	return ($first, $tool, scalar @shown);
}

1;
