# A database shows the texts of statements from databases with any encoding. A character
# that its own encoding lacks becomes a question mark, never an error.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatements qw(statements_cluster);
use Test::More;

my $node = statements_cluster('encodings', conf => 'tacho.pg_stat_statements = on');
plan skip_all => 'pg_stat_statements is not installed'
  unless -e $node->config_data('--sharedir') . '/extension/pg_stat_statements.control';
my @names = qw(UTF8 LATIN1 EUC_JP WIN1251 SQL_ASCII);

# Executes a statement with these bytes, in hexadecimal, in a comment.
sub execute
{
	my ($name, $mark, $hex) = @_;
	my $bytes = pack('H*', $hex);
	my $file = PostgreSQL::Test::Utils::tempdir() . '/statement.sql';

	open my $out, '>:raw', $file or die;
	print $out "WITH $mark AS (SELECT 1) SELECT * FROM $mark AS \"$bytes\";\n";
	close $out or die;
	local $ENV{PGCLIENTENCODING} = $name;
	$node->command_ok([ 'psql', '-Xq', '-o', '/dev/null', '-d', $node->connstr(lc $name), '-f', $file ], "a statement in $name");
}

for my $name (@names)
{
	$node->safe_psql('postgres', "CREATE DATABASE " . lc($name) . " ENCODING '$name' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql(lc $name, 'CREATE EXTENSION tacho; SELECT tacho.install_pg_stat_statements()');
}

# a, an umlaut, a Chinese and a Cyrillic letter, as far as the encoding has them
my %written = (
	UTF8 => '61c3a4e697a5d0b6',
	LATIN1 => '61e4',
	EUC_JP => '61c6fca7d8',
	WIN1251 => '61e6',
	SQL_ASCII => '61e4c3a4',);
execute($_, 'from_' . lc $_, $written{$_}) for sort keys %written;

# the bytes that arrive; where no bytes are given, the same
my %read = (
	UTF8 => { LATIN1 => '61c3a4', EUC_JP => '61e697a5d0b6', WIN1251 => '61d0b6', SQL_ASCII => '613fc3a4' },
	LATIN1 => { UTF8 => '61e43f3f', EUC_JP => '613f3f', WIN1251 => '613f' },
	EUC_JP => { UTF8 => '618faba3c6fca7d8', LATIN1 => '618faba3', WIN1251 => '61a7d8', SQL_ASCII => '61e4c33f' },
	WIN1251 => { UTF8 => '613f3fe6', LATIN1 => '613f', EUC_JP => '613fe6' },
	SQL_ASCII => {},);
for my $to (@names)
{
	for my $view ('tacho.statements', 'pg_stat_statements')
	{
		is( $node->safe_psql(lc $to, qq{
SELECT string_agg(upper(substring(query from 'WITH from_(\\w+)')) || ' ' ||
		encode(substring(textsend(query) from position('"' in query) + 1 for octet_length(query) - position('"' in query) - 1), 'hex'),
		chr(10) ORDER BY query COLLATE "C")
  FROM $view WHERE query LIKE 'WITH from%' AND query NOT LIKE '%encode%'}),
			join("\n", map { "$_ " . ($read{$to}{$_} // $written{$_}) } sort @names),
			"all texts in a database in $to, by $view");
	}
}

$node->stop;
done_testing();
