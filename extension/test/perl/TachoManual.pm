# Runs the commands of a page of the manual.
#
# A fenced block says by its language what it is: sh (commands), console (lines "$ COMMAND" with
# the output), sql (statements), anything else is text. A block below a line
# <!-- not run: REASON --> is not run. A page with a line <!-- output of one run --> has outputs
# that differ elsewhere: its commands are run, their output is not compared.
package TachoManual;

use strict;
use warnings;
use utf8;
use Exporter 'import';
use IPC::Run;
use Test::More;

our @EXPORT_OK = qw(blocks run_page);

# The blocks of a page: line, language, text, reason not to run it.
sub blocks
{
	my ($file) = @_;
	my (@blocks, $block, $reason);

	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!";
	while (my $line = <$in>)
	{
		if ($block)
		{
			my $indent = $block->{indent};
			if ($line =~ /^$indent```\s*$/) { push @blocks, $block; undef $block; next }
			$block->{text} .= $line =~ s/^$indent//r;
		}
		elsif ($line =~ /^(\s*)```(.*)$/)
		{
			$block = { indent => $1, language => $2, line => $., text => '', reason => $reason };
			undef $reason;
		}
		elsif ($line =~ /^\s*<!-- not run: (.+) -->$/) { $reason = $1 }
		elsif ($line =~ /\S/) { undef $reason }
	}
	die "$file: a block has no end" if $block;
	return @blocks;
}

# The commands of a console block, each with the lines that it prints. The lines of a command
# end in "\", except the last.
sub console
{
	my ($text) = @_;
	my (@commands, $goes_on);

	foreach my $line (split /\n/, $text)
	{
		if ($goes_on) { $commands[-1]{command} .= "\n$line" }
		elsif ($line =~ /^\$ (.*)/) { push @commands, { command => $1, output => [] } }
		elsif (@commands) { push @{ $commands[-1]{output} }, $line; next }
		else { die "output without a command: $line" }
		$goes_on = $line =~ /\\$/;
	}
	return @commands;
}

# A line without what differs between two runs: numbers, names of directories, the
# length of bars and the width of columns.
sub comparable
{
	my ($line) = @_;

	$line =~ s{/\S*/}{/}g;
	$line =~ s/[█▓░▒·─\/]+( *\|)?/#/g;
	$line =~ s/(?<!\w)-(?=\d)|(?<=\d)[.:-](?=\d)//g;
	$line =~ s/\d+/0/g;
	$line =~ s/(?:# \S+ +)+\|/# |/;
	$line =~ s/\s+/ /g;
	return $line =~ s/^ | $//gr;
}

# Empty if the expected lines are among the actual ones, in order, else the line that is missing.
# "[…]" stands for omitted lines, "…" at the end of a word for the rest of the word.
sub is_among
{
	my ($expected, $actual) = @_;
	my @left = map { comparable($_) } split /\n/, $actual;

	foreach my $line (grep { /\S/ and $_ ne '[…]' } @$expected)
	{
		my $wanted = join '\S*', map { quotemeta } split /…/, comparable($line), -1;
		shift @left while @left and $left[0] !~ /^$wanted$/;
		return "no line as: $line" unless @left;
		shift @left;
	}
	return '';
}

# A text as Test::More prints it. From Perl 5.42 on, a wide character ends the test.
sub bytes
{
	my ($text) = @_;

	utf8::encode($text);
	return $text;
}

# Runs a script; its exit code and all output.
sub run
{
	my ($command, $input, $environment) = @_;
	my $output = '';

	local %ENV = (%ENV, %$environment);
	IPC::Run::run($command, '<', \$input, '>&', \$output, IPC::Run::timeout(180));
	utf8::decode($output);
	return ($?, $output);
}

# Runs the blocks of a page in order. Options: directory, to run in; environment; psql, its
# command; substitute, which changes a command; before, which is called with each. Returns the
# number of commands that were run.
sub run_page
{
	my ($file, $page, %option) = @_;
	my ($count, $compares, $variables) = (0, 1, '');
	my $source = do { open my $in, '<:encoding(UTF-8)', $file or die "$file: $!"; local $/; <$in> };
	$compares = 0 if $source =~ /^<!-- output of one run -->$/m;

	foreach my $block (blocks($file))
	{
		my $name = "$page:$block->{line}";
		isnt($block->{language}, '', "the code block $name names its language");
		next if $block->{reason} or $block->{language} !~ /^(?:sh|console|sql)$/;
		my @commands =
		  $block->{language} eq 'console' ? console($block->{text}) : { command => $block->{text}, output => [] };
		foreach my $each (@commands)
		{
			my $text = $option{substitute}->($each->{command});
			utf8::encode($text);
			$option{before}->($text) if $option{before};
			my @program = $block->{language} eq 'sql' ? @{ $option{psql} } : ('bash', '-euo', 'pipefail', '-c', $text);
			my ($code, $output) = run([ 'env', '-C', $option{directory}, @program ],
				$block->{language} eq 'sql' ? $variables . $text : '', $option{environment});
			# variables of psql hold for the rest of the page
			$variables .= $text if $text =~ /\\gset\b/;
			my $missing = $compares ? is_among($each->{output}, $output) : '';
			ok($code == 0 && $missing eq '', bytes("$name: " . ($each->{command} =~ /^(.*)/)[0]))
			  or diag(bytes("exit code " . ($code >> 8) . "\n$missing\n$output"));
			$count++;
		}
	}
	return $count;
}

1;
