# Texts are recorded without their constants, or cut visibly.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);
use Test::More;

my $node = tacho_cluster('texts', interval => '20ms');
$node->safe_psql('postgres', 'CREATE TABLE t (a int, b text); CREATE ROLE r');

my $count = 0;

# Runs a statement that sleeps and returns the text that was recorded for it.
sub recorded
{
	my ($sql, %opt) = @_;
	my $app = 'text ' . ++$count;
	my $session = tacho_session($node, app => $app, db => $opt{db} // 'postgres');

	$session->send($opt{before}) if $opt{before};
	$session->send("$sql;");
	my $where = "application => '$app', wait_event => 'PgSleep', n => 1";
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM tacho.samples($where) WHERE query_text IS NOT NULL")
	  unless $opt{none};
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM tacho.samples($where)") if $opt{none};
	my $text = $node->safe_psql('postgres',
		"SELECT query_text FROM tacho.samples($where)");
	$node->safe_psql('postgres',
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$app'");
	$session->finish;
	return $text;
}

is(recorded(q{SELECT 'geheim', 42, -7, 1.5e3, pg_sleep(1000)}),
	'SELECT $1, $2, $3, $4, pg_sleep($5)', 'constants become parameters');
is( recorded(q{SELECT /* why */ U&'\0061', E'a\'b', $q$it's$q$, B'01', 7::text, pg_sleep(1000) /* end */}),
	'SELECT /* why */ $1, $2, $3, $4, $5::text, pg_sleep($6) /* end */',
	'constants of every form become parameters, comments stay');
is( recorded(q{BEGIN; ALTER ROLE r PASSWORD 'topsecret'; SELECT pg_sleep(999)}),
	'SELECT pg_sleep($1)', 'each statement of a string has its own text');
my $directory = $node->data_dir . '/tacho';
wait_until_written($node);
is(system("grep -rqa topsecret '$directory'"), 256,
	'a password is not in the history');
is(system("grep -rqa geheim '$directory'"), 256, 'a constant is not in the history');

my $long = 'SELECT ' . join(', ', map { "'x' AS column_with_a_long_name_$_" } 1 .. 1000);
my $text = recorded("$long, pg_sleep(1000)");
like($text, qr/^SELECT \$1 AS column_with_a_long_name_1, \$2 AS/, 'the history has a long text');
cmp_ok(length($text), '<=', 8300, 'a long text is cut');
like($text, qr/\xe2\x80\xa6$/, 'a cut text ends with a mark');
is(recorded('SELECT 1', before => "SELECT format('SELECT 5 AS early, pg_sleep(1000), %L AS late', repeat('x', 70000)) \\gexec\n"),
	"SELECT \$1 AS early, pg_sleep(\$2), \xe2\x80\xa6",
	'the text before a literal longer than the scanner reads is kept');
# the limit within a character, and between two: the second text is odd
for my $odd ('', 'true,')
{
	like(recorded("SELECT $odd/*" . "\xc3\xa9" x 5000 . '*/ true, pg_sleep(1000)'),
		qr/^SELECT (\$1,)?\/\*(\xc3\xa9){4000,4100}(?!\xc3)/, 'a text is cut between characters');
}

is(recorded('SELECT 17, pg_sleep(1000), 1',
		before => q{SET tacho.query_text = raw;}),
	'SELECT 17, pg_sleep(1000), 1', 'tacho.query_texts = raw keeps constants');
is(recorded('SELECT 18, 18, pg_sleep(1000)', none => 1,
		before => q{SET tacho.query_text = off;}),
	'', 'tacho.query_texts = off records no text');

$node->safe_psql('postgres',
	q{CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'});
is(recorded(qq{SELECT pg_sleep(1000), 1 AS "gr\xc3\xbcn"}, db => 'latin',
		before => q{SET client_encoding = 'UTF8';}),
	qq{SELECT pg_sleep(\$1), \$2 AS "gr\xc3\xbcn"}, 'texts of another encoding are converted');
is(metric($node, 'texts_over_limit'), '0', 'no text was over the limit so far');

# The share of the day is used up: statements are recorded without texts, and
# that is counted. With a higher limit the texts come.
$node->append_conf('postgresql.conf', 'tacho.text_limit = 1');
$node->reload;
wait_for_marker($node, 'settings changed', 1);
my $late = tacho_session($node, app => 'late');
$late->send('SELECT 1, 2, 3, 4, 5, 6, 7, pg_sleep(1000)');
ok(wait_for_metric($node, 'texts_over_limit', 'value::bigint > 0'), 'a text over the limit is counted');
ok($node->poll_query_until('postgres',
		"SELECT count(*) >= 10 FROM tacho.samples(application => 'late', n => null)"),
	'a statement whose text is over the limit is recorded');
my $texts = "SELECT count(query_text), count(query_id) > 0 FROM tacho.samples(application => 'late', n => null)";
is($node->safe_psql('postgres', $texts), '0|t', 'a statement whose text is over the limit has its query id');

# two ticks later nothing is on its way any more
sub settled
{
	my $ticks = metric($node, 'ticks_taken') + 2;

	wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks");
	return metric($node, 'texts_over_limit');
}
my $over = settled();
$node->safe_psql('postgres', 'SELECT ' . join(', ', 1 .. $_)) for 30 .. 35;
is(settled(), $over, 'texts that would find no room are not made');
$node->append_conf('postgresql.conf', 'tacho.text_limit = 0');
$node->reload;
wait_for_marker($node, 'settings changed', 2);
my $found = 0;
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$node->safe_psql('postgres', 'SELECT 1, 2, 3, 4, 5, 6, 7, pg_sleep(0)');
	last if $found = $node->safe_psql('postgres', q{
		SELECT query_text = 'SELECT $1, $2, $3, $4, $5, $6, $7, pg_sleep($8)'
		FROM tacho.samples(application => 'late', n => 1)}) eq 't';
}
ok($found, 'without a limit the text comes with the next execution, to earlier samples too');
$node->stop;

done_testing();
