# Runs tacho live in a terminal: tmux types keys and returns the screen.
package TachoTerminal;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

our @EXPORT_OK = qw(live_program);

# The program under test. Skips the test if it or tmux is missing.
sub live_program
{
	my $program = dirname($ENV{TACHO_PROGRAM}) . '/tacho-live';

	plan skip_all => "there is no $program" unless -x $program;
	plan skip_all => 'tmux is not installed' if system('tmux -V >/dev/null 2>&1') != 0;
	return $program;
}

# Number of terminals so far. Each has a tmux server of its own, because a server that
# is ending may still accept connections.
my $terminals = 0;

# Runs a command of a shell in a terminal of 120 columns and 40 lines.
sub new
{
	my ($class, $name, $command) = @_;
	my $self = bless { socket => "tacho-$name-$$-" . ++$terminals }, $class;

	delete local @ENV{qw(TMUX NO_COLOR)};
	$self->tmux('-u', 'new-session', '-d', '-x', 120, '-y', 40, $command);
	return $self;
}

sub tmux
{
	my ($self, @arguments) = @_;

	my ($out) = run_command([ 'tmux', '-L', $self->{socket}, '-f', '/dev/null', @arguments ]);
	return $out;
}

sub keys
{
	my ($self, @keys) = @_;

	$self->tmux('send-keys', @keys);
	return;
}

# Writes a line and ends it.
sub line
{
	my ($self, $text) = @_;

	$self->tmux('send-keys', '-l', $text);
	$self->keys('Enter');
	return;
}

# Waits until the screen matches; returns the screen, or fails.
sub shows
{
	my ($self, $pattern, $name) = @_;
	my $screen;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$screen = $self->tmux('capture-pane', '-p');
		if ($screen =~ $pattern) { pass($name); return $screen }
		usleep(100_000);
	}
	fail($name);
	diag("what is shown instead of $pattern:\n$screen");
	return $screen;
}

sub end
{
	my ($self) = @_;

	$self->tmux('kill-server');
	return;
}

1;
