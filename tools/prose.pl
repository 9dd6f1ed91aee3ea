#!/usr/bin/env perl
# usage: git ls-files | tools/prose.pl
#
# Prints KIND<tab>FOLDER<tab>FILE<tab>TEXT for each sentence that tools/check-prose.sh counts, in
# comments of all languages, docstrings of Python, names of tests, text of Markdown and strings.
#   marker   has an opening or a word that a reader has to read twice, or does not name its noun.
#   long     has more than 25 words.
#   synonym  has another word for a term of the glossary in ARCHITECTURE.md.
#   label    is the name of a test that continues the name before it, or has a marker.
#   string   is a sentence that a program shows and that has a marker, more than 25 words or a synonym.
#            Such are messages, help, descriptions, the page and catalog/waits.txt. Tests, SQL, regular
#            expressions and strings of less than 4 words are left out.
use strict;
use warnings;
use open qw(:std :utf8);

my $marker = qr/^(?:What|Of|Who|Where|Whose|How many|So many|Which)\b(?!.*\?$)|\b(?:is|are|was|were|be) (?:told|said|asked|looked)\b|\b(?:[Tt]hose|[Tt]hat) of\b|\b[Ss]o (?:many|much)\b|\b[Oo]f (?:which|whom)\b|\banew\b|\b[Tt]he most\b.*\bthe\b|\b[Nn]obody\b|\b(?:may be|is to be) had\b/;
# the begin of a string without its capital letter
my $lower = qr/^(?:what|who|whose|where|so many|how many)\b(?!.*\?$)/;
# a comment that begins with a pronoun or an index, or is a bare unit or example
my @nameless = (
	qr/^(Its?|Their|Them|They|(Those|These) (are|have|that|with))\b/,
	qr/^By [^.:]{1,60}([:.] |\W*$)/, qr/^([`"][^`"]+[`"](, )?)+\W*$/, qr/^(In )?\d*\s*(ns|us|µs|ms)\W*$/);
# totals, bucket, sample, slot, window, log, node
my $synonym = qr/\b(?:[Rr]oll-?ups?|[Pp]re-?aggregates?|[Tt]ime bins?|[Dd]ata ?points?|[Tt]ime ?slices?|[Tt]ime ?frames?|[Jj]ournals?|[Ii]nstances)\b/;
my $four = qr/\S+(?:\s+\S+){3}/;
my $long = qr/^\S+(?:\s+\S+){25}/;
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
	my $blocks = $kind eq 'sql' ? join '', map { "\n\f\n" . s/^[ \t]*\*?[ \t]?//mgr } $text =~ m{^[ \t]*/\*(.*?)\*/}gms : '';
	my $mark = $line{$kind} // '#';
	my $docstrings = $kind eq 'py' ? join '', map { "\n\f\n$_" } $text =~ /^\s*"""(?=\w)(.*?)"""/msg : '';
	my $lines = join "\n", map { m{^\s*$mark\s?(.*)$} ? $1 : "\f" } split /\n/, $text;
	return $lines =~ s/\f[\n\f]*/\n\f\n/gr . $docstrings . $blocks;
}

# The names of the tests of a file; in Perl the last argument of ok(), is(), like() and others.
sub labels
{
	my ($file, $text) = @_;
	my @names;
	my $kind = $file =~ /\.(\w+)$/ ? $1 : 'make';
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

# Whether users may read strings of a file. Tests, generated load and Markdown have none.
sub has_strings
{
	my ($file) = @_;
	return $file !~ m{(^|/)(\w*tests?|e2e|testing|examples|conformance)/|(^|/)tests?([_.-][\w.-]*)?$|_tests?\.|\.test\.|\.md$};
}

# A string as a user sees it: escapes and placeholders are replaced.
sub shown
{
	my ($string) = @_;
	$string =~ s/\\\n\s*//g;
	$string =~ s/\\([ntr])/$1 eq 'n' ? "\n\n" : ' '/ge;
	$string =~ s/\\(["'`\\])/$1/g;
	$string =~ s/\$?\{[^{}\n]*\}/{}/g;
	$string =~ s/(Example|; or): select .*//s;
	return $string;
}

# Whether a string is text: at least 4 words, one of them in lower case, no SQL, no regular expression.
sub is_text
{
	my ($string) = @_;
	$string =~ s/(Example|; or): select .*//s;
	return 0 if $string !~ $four or $string !~ /(?:^|\s)[a-z]{2,}/;
	return 0 if $string =~ /^\s*(select|insert|update|delete|with|create|alter|drop|copy|set|do|begin|grant|explain|values|truncate)\b.*[_.;*(=]/is;
	return 0 if $string =~ /\bcase\b.*\bwhen\b|^\s*(create|alter|drop) (role|table|database|schema|extension)\b|\bselect\b.*\bfrom\b|\bjoin\b.*\bon\b.*=|\bwhere\b.*[=<>]|::\w+|\(\?[:!=<]|\[\^|\\[bdsw.]/is;
	return $string !~ /[;{]\s*\n|=>|\{%|^\s*<| \| |\$[({]/;
}

my $quoted = qr/"((?:[^"\\]++|\\.)*+)"/s;

# The strings of a program that users may read, without its comments.
sub strings
{
	my ($kind, $text) = @_;
	my @found;
	if ($kind eq 'txt')
	{
		return $text =~ /^(?:is|normal|next) (.*)/mg;
	}
	if ($kind eq 'sql')
	{
		$text =~ s/^\s*--.*$//mg;
		push @found, $1 while $text =~ /(?:^|\b(?:is|exception|notice|warning|hint =|detail =|message =)\s+)(?:(?:pg_catalog\.)?format\(|\(\s*select (?:pg_catalog\.)?format\()?'((?:[^']|'')*)'/gim;
		return @found;
	}
	$text =~ s/^\s*#\[cfg\(test\)\]\nmod \w+ \{\n.*//ms if $kind eq 'rs';
	if ($kind =~ /^(svelte|html)$/)
	{
		my $markup = $text =~ s{<(script|style)\b.*?</\1>|<!--.*?-->}{}gsr;
		1 while $markup =~ s/\{[^{}]*\}/ \x01 /g;
		push @found, map { s/\x01/{}/gr } $markup =~ />([^<>]+)</g;
	}
	my $skip = $kind =~ /^(py|pl|pm|sh)$/ ? qr/(?:^|(?<=\s))#[^\n]*/m : qr{(?<![:\w])//[^\n]*|/\*.*?\*/}s;
	my $single = $kind =~ /^(rs|c|h)$/ ? qr/'(?:\\[^\n']*.|[^'\\\n])'/ : qr/(?<=[\s(\[{=:,?+|&!.])'((?:[^'\\\n]++|\\.)*+)'/;
	$skip = qr/$skip|""".*?"""/s if $kind eq 'py';
	my $raw = $kind eq 'rs' ? qr/\br(?:"[^"]*"|#".*?"#|##".*?"##)/s : qr/(?!)/;
	my $double = $kind eq 'sh' ? qr/"((?:[^"\\\n]++|\\.)*+)"/ : $quoted;
	my $template = $kind =~ /^(ts|svelte)$/ ? qr/`((?:[^`\\]++|\\.)*+)`/s : qr/(?!)/;
	$text =~ s/"\s*\n\s*[frb]*"//g if $kind =~ /^(c|h|py)$/;
	while ($text =~ /(?|$skip|$raw|$single|$template|$double)/g)
	{
		push @found, $1 if defined $1;
	}
	return @found;
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
	my $kind = $file =~ /\.(\w+)$/ ? $1 : 'make';
	open my $in, '<', $file or next;
	my $text = do { local $/; <$in> } // '';
	my ($folder) = $kind eq 'md' ? 'docs' : $file =~ m{^([^/]+)/} ? $1 : 'top';
	my $found = sub { print join("\t", $_[0], $folder, $file, $_[1]), "\n" };
	for my $name (labels($file, $text))
	{
		$found->('label', $name) if $name =~ $label or $name =~ $marker;
	}
	for my $string (map { shown($_) } grep { is_text($_) } has_strings($file) ? strings($kind, $text) : ())
	{
		my $begin = $string =~ $lower;
		for my $sentence (sentences($string))
		{
			my $is_marked = $begin || $sentence =~ $marker;
			$begin = '';
			next if $sentence !~ $four or is_kept($sentence);
			$found->('string', $sentence =~ s/\s+/ /gr) if $is_marked or $sentence =~ $long or $sentence =~ $synonym;
		}
	}
	next if $kind =~ /^(txt|html)$/;
	my $all = comments($kind, $text);
	$all =~ s/\n\s*(?=[-*] )/\n\n/g;
	$all =~ s/(?<!\n)\n(?!\n)/ /g;
	for my $comment (grep { /\S/ } split /\f/, $all)
	{
		$comment =~ s/^\s+//;
		my $begin = $kind ne 'md' ? $comment =~ s{\s*\*/\s*$}{}r : '';
		for my $sentence (sentences($comment))
		{
			my $is_nameless = $begin ne '' && grep { $begin =~ $_ } @nameless;
			$begin = '';
			next if is_kept($sentence);
			$found->('marker', $sentence) if $is_nameless or $sentence =~ $marker && $sentence =~ $four;
			# not blocks of code and rows of tables
			$found->('long', $sentence) if $sentence =~ $long && $sentence !~ /```| \| /;
			$found->('synonym', $sentence) if $sentence =~ $synonym;
		}
	}
}
