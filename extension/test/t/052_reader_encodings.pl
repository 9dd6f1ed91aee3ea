# The program writes UTF-8. In a database of another encoding the server converts its
# texts; a character that the encoding lacks becomes a question mark, never an error.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStandIn qw(behave stand_in_cluster);
use Test::More;

my $node = stand_in_cluster('encodings');
my %database = map { lc($_) => $_ }
  qw(UTF8 LATIN1 EUC_JP EUC_JIS_2004 WIN1251 SQL_ASCII MULE_INTERNAL);

# the only one without a conversion; later versions do not have it
delete $database{mule_internal}
  if $node->safe_psql('postgres', q{SELECT pg_char_to_encoding('MULE_INTERNAL')}) < 0;

for my $name (sort keys %database)
{
	$node->safe_psql('postgres',
		"CREATE DATABASE $name ENCODING '$database{$name}' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql($name, 'CREATE EXTENSION tacho');
}

# Bytes of the only value, in hexadecimal, when the program prints these.
sub value
{
	my ($name, $hex) = @_;

	behave($node, "answer([ 'text', pack('H*', '$hex') ])");
	return $node->safe_psql($name,
		q{SELECT encode(textsend(value), 'hex') FROM tacho.summary()});
}

my $umlaut = 'c3a4';        # ä
my $kanji = 'e697a5';       # 日
my $cyrillic = 'd0b6';      # ж
my $emoji = 'f09f9880';
my $ascii = '616263';       # abc

for my $case (
	# what, printed, then what arrives in each database
	[ 'ASCII', $ascii, map({ ($_ => $ascii) } keys %database) ],
	[ 'a letter of Latin 1', $ascii . $umlaut . $ascii,
		utf8 => $ascii . $umlaut . $ascii,
		latin1 => "${ascii}e4$ascii",
		win1251 => "${ascii}3f$ascii",
		sql_ascii => $ascii . $umlaut . $ascii ],
	[ 'a Chinese character', $kanji,
		utf8 => $kanji,
		latin1 => '3f',
		euc_jp => 'c6fc',
		euc_jis_2004 => 'c6fc',
		mule_internal => '3f',
		sql_ascii => $kanji ],
	[ 'many that cannot be converted',
		"$emoji$kanji$cyrillic$umlaut" x 3,
		utf8 => "$emoji$kanji$cyrillic$umlaut" x 3,
		latin1 => '3f3f3fe4' x 3,
		win1251 => '3f3fe63f' x 3,
		mule_internal => '3f3f3f3f' x 3 ],
	[ 'bytes that are not UTF-8', "${ascii}ff${umlaut}c3",
		utf8 => "${ascii}3f${umlaut}3f",
		latin1 => "${ascii}3fe43f",
		sql_ascii => "${ascii}ff${umlaut}c3" ],
	[ 'a zero byte', "61${umlaut}0062",
		utf8 => "61${umlaut}3f62",
		latin1 => '61e43f62',
		sql_ascii => "61${umlaut}3f62" ])
{
	my ($what, $hex, %expected) = @$case;

	for my $name (grep { $database{$_} } sort keys %expected)
	{
		is(value($name, $hex), $expected{$name}, "$what in $database{$name}");
	}
}

# Messages too
for my $case ([ latin1 => 'e43f' ], [ utf8 => $umlaut . $kanji ], [ win1251 => '3f3f' ])
{
	my ($name, $expected) = @$case;

	behave($node, qq{print STDERR "ERROR\\t22023\\t", pack('H*', '$umlaut$kanji'), "\\n"; exit 1});
	is( $node->safe_psql($name, q{
CREATE FUNCTION message() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM * FROM tacho.summary();
EXCEPTION WHEN invalid_parameter_value THEN
	RETURN encode(textsend(sqlerrm), 'hex');
END $$;
SELECT message()}), $expected, "an error in $database{$name}");
}

# Arguments go the other way.
for my $case (
	[ latin1 => 'e4', $umlaut ],
	[ euc_jp => 'c6fc', $kanji ],
	[ utf8 => $emoji, $emoji ],
	[ sql_ascii => $umlaut, $umlaut ])
{
	my ($name, $given, $expected) = @$case;

	behave($node, q{answer(map { [ 'node', unpack 'H*', $_ ] } grep { s/^--node=// } @ARGV)});
	is( $node->safe_psql($name,
			"SELECT value FROM tacho.summary(node => convert_from('\\x$given', '$database{$name}'))"),
		$expected, "an argument in $database{$name} matches the name of the history");
}
my $stderr;
$node->psql('sql_ascii', q{SELECT * FROM tacho.summary(node => E'\xe4')}, stderr => \$stderr);
like($stderr, qr/ERROR:  invalid byte sequence for encoding "UTF8": 0xe4/,
	'an argument of SQL_ASCII that is not UTF-8 is an error');

$node->stop;
done_testing();
