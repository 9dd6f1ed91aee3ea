# The work for a statement does not grow with its message. A message with many
# statements and a long comment costs about the same CPU with and without statistics and
# texts.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster);
use Test::More;

my $statements = 400;
my $long = 'calm words, token by token ' x 200_000;    # 5.4 MB
my $node = tacho_cluster('messages', interval => '1s', conf => 'tacho.statements_track = all');

# CPU time in ns that a session needs for a message.
sub cpu_ns
{
	my ($message, $options) = @_;
	my $script = <<'END';
select pg_backend_pid() as pid \gset
\setenv BACKEND :pid
\! cat /proc/$BACKEND/schedstat
END
	my ($out, $err);

	local $ENV{PGOPTIONS} = $options;
	$node->psql('postgres', "$script\\o /dev/null\n$message;\n\\o\n\\! cat /proc/\$BACKEND/schedstat\n",
		stdout => \$out, stderr => \$err);
	die "$err\n" if $err =~ /ERROR/;
	my ($before, $after) = $out =~ /^(\d+) \d+ \d+$/mg;
	return $after - $before;
}

# New statements, each with its number in the place of %d.
my $number = 0;

sub many
{
	my ($statement) = @_;
	return join ' \; ', map { $number++; $statement =~ s/%d/$number/gr } 1 .. $statements;
}

my $select = q{WITH new_%d AS (SELECT 1, 'x') SELECT * FROM new_%d};
my %message = (
	'SELECT before a long comment' => sub { many($select) . " \\; SELECT 1 /* $long */" },
	'SELECT behind a long comment' => sub { "/* $long */ " . many($select) },
	'SELECT beside a long string' => sub { many($select) . " \\; SELECT length('$long')" },
	'SELECT beside a dollar-quoted string' => sub { many($select) . " \\; SELECT length(\$a\$$long\$a\$)" },
	'SELECT beside a long name' => sub { many($select) . " \\; SELECT 1 AS \"$long\"" },
	'SELECT when strings change their meaning' =>
	  sub { "SET standard_conforming_strings = on \\; " . many($select) . " \\; SELECT length('$long')" },
	'SET' => sub { many(q{SET app.name = 'value %d'}) . " \\; SELECT 1 /* $long */" },
	'DO' => sub { many('DO $$ BEGIN PERFORM %d; END $$') . " \\; SELECT 1 /* $long */" },
	'EXPLAIN' => sub { many("EXPLAIN $select") . " \\; SELECT 1 /* $long */" },
	'CREATE TABLE AS' => sub { many("CREATE TEMP TABLE t_%d AS SELECT %d AS a") . " \\; SELECT 1 /* $long */" },
	'a function that executes' => sub { "DO \$d\$ BEGIN EXECUTE \$e\$" . many($select) =~ s/\\;/;/gr . "; SELECT 1 /* $long */\$e\$; END \$d\$" },);

for my $what (sort keys %message)
{
	my $without = cpu_ns($message{$what}->(), '-c tacho.statements_track=none -c tacho.query_text=off');
	my $with = cpu_ns($message{$what}->(), '');

	cmp_ok($with, '<', 3 * $without, sprintf('%s (%.2f of the CPU without)', $what, $with / $without));
}
# from 18 on, a statement begins after the comment before it
my $with_comment = $node->pg_version < 18 ? 1 : 0;
is( $node->safe_psql('postgres', q{SELECT count(*) FROM tacho.statements WHERE query ~ '^WITH new_\d+ AS \(SELECT \$1, \$2\) SELECT \* FROM new_\d+$'}),
	7 * $statements - $with_comment,
	'each statement has its text, except one that begins with the comment');

$node->stop;
done_testing();
