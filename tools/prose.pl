#!/usr/bin/env perl
# usage: git ls-files | tools/prose.pl
#
# Prints KIND<tab>FOLDER<tab>FILE<tab>TEXT for each sentence that tools/check-prose.sh counts, in
# comments of all languages, docstrings of Python, names of tests and text of Markdown.
#   marker   has an opening or a word that a reader has to read twice, or does not name its noun.
#   long     has more than 25 words.
#   synonym  has another word for a term of the glossary in ARCHITECTURE.md.
#   label    is the name of a test that continues the name before it, or has a marker.
use strict;
use warnings;
use open qw(:std :utf8);

my @marker = (
	qr/^(What|Of|Who|Where|Whose|How many|So many|Which)\b(?!.*\?$)/,
	qr/\b(is|are|was|were|be) (told|said|asked|looked)\b/i,
	qr/\b(those|that) of\b/i, qr/\bso (many|much)\b/i, qr/\bof (which|whom)\b/i,
	qr/\banew\b/i, qr/\bthe most\b.*\bthe\b/i, qr/\bnobody\b/i, qr/\b(may be|is to be) had\b/i);
# a comment that begins with a pronoun or an index, or is a bare unit or example
my @nameless = (
	qr/^(Its?|Their|Them|They|(Those|These) (are|have|that|with))\b/,
	qr/^By [^.:]{1,60}([:.] |\W*$)/, qr/^([`"][^`"]+[`"](, )?)+\W*$/, qr/^(In )?\d*\s*(ns|us|µs|ms)\W*$/);
# totals, bucket, sample, slot, window, log, node
my $synonym = qr/\b(roll-?ups?|pre-?aggregates?|time bins?|data ?points?|time ?slices?|time ?frames?|journals?|instances)\b/i;
my $label = qr/^(\.\.\.|and|nor|so|which|its?|they|them|with its|by its|as it)\b/;
my %line = (rs => '//[/!]?', ts => '(?://|/?\*+)', svelte => '(?://|/?\*+)', sql => '--');

open my $list, '<', 'tools/prose.txt' or die "tools/prose.txt: $!\n";
my @keep = map { /^keep (.+)/ ? quotemeta $1 : () } <$list>;

# The comments of a file, with a form feed between two of them.
sub comments
{
	my ($kind, $text) = @_;
	if ($kind eq 'c' or $kind eq 'h')
	{
		$text = join "\n\n\f\n\n", $text =~ m{/\*(.*?)\*/}gs;
		return $text =~ s/^[ \t]*\*?[ \t]?//mgr;
	}
	return $text =~ s/^( *)```.*?^\1```//gmsr if $kind eq 'md';
	my $mark = $line{$kind} // '#';
	my $docstrings = $kind eq 'py' ? join '', map { "\n\f\n$_" } $text =~ /^\s*"""(?=\w)(.*?)"""/msg : '';
	return join("\n", map { m{^\s*$mark\s?(.*)$} ? $1 : "\n\f\n" } split /\n/, $text) . $docstrings;
}

# The names of the tests of a file; in Perl the last argument of ok(), is(), like() and others.
sub labels
{
	my ($file, $text) = @_;
	my @names;
	my ($kind) = $file =~ /\.(\w+)$/;
	push @names, $text =~ /#\[test\]\n(?:\s*#\[[^\n]*\n)*\s*fn (\w+)/g if $kind eq 'rs';
	push @names, $text =~ /^def test_(\w+)/mg if $kind eq 'py';
	push @names, $text =~ /^\s*test\('([^'\n]+)'/mg if $kind eq 'ts';
	return map { s/_/ /gr } @names unless $file =~ m{/test/(t/.*\.pl|perl/.*\.pm)$};
	while ($text =~ /\b(?:ok|is|isnt|like|unlike|cmp_ok|is_deeply|command_\w+|shows)\((?:(?!;\n).)*?(['"])([^'"\n]+)\1\s*\)(?:\s*(?:for|foreach)\b[^;\n]*)?;\n/gs)
	{
		push @names, $2;
	}
	return @names;
}

# The sentences of a comment; items of a list are sentences.
sub sentences
{
	my ($comment) = @_;
	return grep { /\S/ } map { s/^\s+|\s+$//gr } split /(?<=[.!?:])\s+|\n\s*\n/, $comment;
}

sub is_kept { my ($text) = @_; return grep { $text =~ $_ } @keep }

while (my $file = <STDIN>)
{
	chomp $file;
	my ($kind) = $file =~ /\.(\w+)$/;
	open my $in, '<', $file or next;
	my $text = do { local $/; <$in> } // '';
	my ($folder) = $kind eq 'md' ? 'docs' : $file =~ m{^([^/]+)/} ? $1 : 'top';
	my $found = sub { print join("\t", $_[0], $folder, $file, $_[1]), "\n" };
	for my $name (labels($file, $text))
	{
		$found->('label', $name) if $name =~ $label or grep { ucfirst $name =~ $_ } @marker;
	}
	my $all = comments($kind, $text);
	$all =~ s/\n\s*(?=[-*] )/\n\n/g;
	$all =~ s/(?<!\n)\n(?!\n)/ /g;
	for my $comment (split /\f/, $all)
	{
		$comment =~ s/^\s+//;
		my $begin = $kind ne 'md' ? $comment =~ s{\s*\*/\s*$}{}r : '';
		for my $sentence (sentences($comment))
		{
			my $is_nameless = grep { $begin =~ $_ } @nameless;
			$begin = '';
			next if is_kept($sentence);
			my $words = () = $sentence =~ /\S+/g;
			$found->('marker', $sentence) if $is_nameless or $words >= 4 && grep { $sentence =~ $_ } @marker;
			# not blocks of code and rows of tables
			$found->('long', $sentence) if $words > 25 && $sentence !~ /```| \| /;
			$found->('synonym', $sentence) if $sentence =~ $synonym;
		}
	}
}
