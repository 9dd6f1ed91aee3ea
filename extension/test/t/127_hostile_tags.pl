# Tags of hostile texts: no byte behind a text is read, and what is read keeps the rules.
# Tags of made-up texts are those that a second reader, in Perl, finds.
use strict;
use warnings;
use Encode qw(decode encode FB_CROAK);
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $extension = "$FindBin::RealBin/../..";
my $library = PostgreSQL::Test::Utils::tempdir() . '/hostile_tags.so';

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -D_GNU_SOURCE -O1 -g -fPIC -shared -Wl,-Bsymbolic -o $library"
	  . " -I '" . config('--includedir-server') . "' -I '$extension/src' '$extension/test/unit/hostile_tags.c'") == 0
  or die 'could not build the library that reads tags';

my $node = PostgreSQL::Test::Cluster->new('hostile_tags');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql("CREATE FUNCTION tags_of(text, text) RETURNS text LANGUAGE c STRICT AS '$library'");
sql("CREATE FUNCTION broken_rules(bigint, integer) RETURNS text LANGUAGE c STRICT AS '$library'");

is(sql("SELECT broken_rules($_, 200000)"), 'many have tags', "200,000 texts, seed $_") for 1, 7, 4711;

# limits of the length that is read
my %ends = (
	'a comment at byte 64' => [ q{repeat(' ', 60) || '/*job:x*/ SELECT 1'}, 'job=x' ],
	'a comment behind 64 blanks' => [ q{repeat(' ', 70) || '/*job:x*/ SELECT 1'}, '' ],
	'64 kB less one' => [ q{repeat('y', 65526) || '/*job:x*/'}, 'job=x' ],
	'64 kB' => [ q{repeat('y', 65527) || '/*job:x*/'}, '' ],
	'2,048 bytes of comment' => [ q{'SELECT 1 /*job:x,a:' || repeat('y', 2048 - 12) || '*/'}, 'job=x,a=' . 'y' x 64 ],
	'2,049 bytes of comment' => [ q{'SELECT 1 /*job:x,a:' || repeat('y', 2049 - 12) || '*/'}, '' ],
	'32 pairs' => [ q{'/*' || repeat('b:y,', 31) || 'job:x*/ SELECT 1'}, 'job=x' ],
	'33 pairs' => [ q{'/*' || repeat('b:y,', 32) || 'job:x*/ SELECT 1'}, '' ],
	'4 comments' => [ q{'SELECT 1 /*job:x*/' || repeat('/* y */', 3)}, 'job=x' ],
	'5 comments' => [ q{'SELECT 1 /*job:x*/' || repeat('/* y */', 4)}, '' ],
	'the first value of a key' => [ q{'/*job:x,job:y*/ SELECT 1 /*job:z*/'}, 'job=x' ],
	'an empty text' => [ q{''}, '' ],
	'half a character, before it a whole one' => [ q{E'SELECT 1 /*job=\'xx%E6%97%A5\',a=\'yy%E6\'*/'}, "job=xx\xE6\x97\xA5,a=yy%25E6" ],
	'half a mark' => [ q{'/'}, '' ],
	'a mark alone' => [ q{'/*/'}, '' ],
	'an empty comment' => [ q{'/**/'}, '' ],
);
is(sql("SELECT tags_of($ends{$_}[0], 'job,a')"), $ends{$_}[1], $_) for sort keys %ends;
is(sql(q{SELECT length(tags_of('SELECT 1 /*' || string_agg(format('k%s:%s', n, repeat('y', 64)), ',') || '*/', string_agg('k' || n, ','))) FROM generate_series(10, 25) n}),
	68 * 7 + 6, 'pairs that find no room in 512 bytes are left out');

# ---- a second reader ----

sub value_of
{
	my ($quoted, $raw) = @_;
	my $cut = sub { my $text = decode('UTF-8', $_[0], FB_CROAK); $text = substr($text, 0, -1) while length(encode('UTF-8', $text)) > 64; encode('UTF-8', $text) };
	my $value = $raw;

	if ($quoted)
	{
		my $read = $raw =~ s/\\(.)|%([0-9A-Fa-f]{2})/defined $1 ? $1 : chr hex $2/gesr;
		my $whole = eval { decode('UTF-8', my $copy = $read, FB_CROAK); 1 };
		$value = $read if $whole && $read !~ /\0/;
	}
	$value = $cut->($value);
	$value =~ s/[\x00-\x1F\x7F]/?/g;
	return $value =~ s/([,%])/sprintf '%%%02X', ord $1/ger;
}

sub tags_by_pattern
{
	my ($comment, @keys) = @_;
	my %found;
	my $pair = qr/\s*([\w.-]+)\s*(?:[=:]\s*'((?:[^'\\]|\\.)*)'|:\s*([^',][^,]*?|))\s*/;

	return '' if $comment !~ /^$pair(?:,$pair)*$/;
	while ($comment =~ /\G$pair(?:,|$)/g)
	{
		my ($key, $quoted, $raw) = ($1, defined $2, $2 // $3);
		$found{$key} //= value_of($quoted, $raw) if $raw ne '';
	}
	return join ',', map { "$_=$found{$_}" } grep { defined $found{$_} } @keys;
}

# A character as sqlcommenter may write it.
sub written
{
	my ($char) = @_;

	return $char if $char =~ /^\w$/;
	return join '', map { sprintf '%%%02X', ord } split //, $char if rand() < 0.7;
	return $char =~ /['\\]/ ? "\\$char" : $char;
}

srand(12);
my @values = ('orders', '/orders/:id', 'a,b', '100%', "it's", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC" x 25, 'x' x 63 . "\xC3\xA4", "tab\there", '', "\xF0\x9F\x90\x98", 'a=b', 'a:b', "\xC3\xA4%ff", '%00');
my (@cases, @wanted);
for (1 .. 3000)
{
	my @pairs = map {
		my $key = (qw(job route action secret x-y))[ rand 5 ];
		my $value = $values[ rand @values ];
		my $sep = rand() < 0.5 ? ' ' : '';
		rand() < 0.6 ? "$sep$key='" . ($value =~ s/([\x00-\x7F]|[\xC0-\xFF][\x80-\xBF]+)/written($1)/ger) . "'$sep"
		  : "$sep$key:" . ($value =~ s/[,'\t]//gr) . $sep;
	} 1 .. 1 + int rand 4;
	my $comment = join ',', @pairs;
	$comment .= (',', ' x', "='", ',,')[ rand 4 ] if rand() < 0.1;
	push @cases, rand() < 0.5 ? "SELECT 1 /*$comment*/" : "/*$comment*/ SELECT 1";
	push @wanted, tags_by_pattern($comment, qw(job action route x-y));
}
my $list = join ', ', map { my $text = $_ =~ s/'/''/gr; "(\$tag\$$_\$tag\$)" } @cases;
my @got = split /\n/, sql("SELECT coalesce(tags_of(t, 'job action,route x-y'), '') || '.' FROM (VALUES $list) v(t)");
is(scalar @got, 3000, 'each text has an answer');
my @differ = grep { $got[$_] ne "$wanted[$_]." } 0 .. $#cases;
is(scalar @differ, 0, 'both readers find the same tags');
diag("$cases[$_]\n got: $got[$_]\nwant: $wanted[$_].") for grep { defined } @differ[ 0 .. 4 ];
cmp_ok(scalar(grep { $_ ne '' } @wanted), '>', 1500, 'most of the texts have tags');

$node->stop;
done_testing();
