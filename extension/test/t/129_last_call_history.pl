# The history has the time of each statement's last call. It equals the time in the view to
# the millisecond, and after sealing to a second.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster wait_until_in_history wait_until_recorded);
use Test::More;

my $node = tacho_cluster('last_call_history', conf => "tacho.statements_interval = 1s\n");
my $begin = '2000-01-01';

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Time of the last call by the view, in whole milliseconds.
sub by_view
{
	my ($query) = @_;
	return sql("SELECT date_trunc('milliseconds', last_call) FROM tacho.statements WHERE query ~ '^$query'");
}

# Columns of the statement's row in a reader.
sub by_history
{
	my ($columns, $query, $reader) = @_;
	return sql("SELECT $columns FROM tacho.$reader(since => '$begin', n => null) WHERE query_text ~ '^$query'");
}

sql('WITH early AS (SELECT 1) SELECT FROM early');
my $early = by_view('WITH early');
isnt($early, '', 'the view has the last call of a statement');
$node->psql('postgres', 'SELECT 1 / 0');
my $failed = by_view('SELECT .1 / ');
sql('WITH late AS (SELECT 1) SELECT FROM late') for 1 .. 3;
my $late = by_view('WITH late');
wait_until_in_history($node);
for my $reader (qw(statements_history queries))
{
	is(by_history("calls, last_call = '$early'", 'WITH early', $reader), '1|t', "$reader has the last call of a statement");
	is(by_history("calls, last_call = '$late'", 'WITH late', $reader), '3|t', "$reader has the last one of several calls");
	is(by_history("errors, last_call = '$failed'", 'SELECT .1 / ', $reader), '1|t', "$reader has the time of a failure");
}
is(sql(qq{SELECT substring(query_text, 'WITH (\\w+)') FROM tacho.queries(since => '$begin', n => null, order_by => 'last_call')
	WHERE query_text ~ '^WITH (early|late)'}), "late\nearly", 'order_by => last_call has the latest call first');

# a later call replaces the time
sql('WITH early AS (SELECT 1) SELECT FROM early');
my $again = by_view('WITH early');
wait_until_in_history($node);
is(by_history("calls, last_call = '$again', last_call > '$early'", 'WITH early', 'statements_history'), '2|t|t',
	'a later call is the last one');

# a reset does not change the time of calls before it
sql('WITH gone AS (SELECT 1) SELECT FROM gone');
my $gone = by_view('WITH gone');
sql('SELECT tacho.statements_reset()');
wait_until_in_history($node);
is(by_history("calls, last_call = '$gone'", 'WITH gone', 'statements_history'), '1|t',
	'a statement that was reset keeps its last call');

# a sealed file
$node->restart;
is(by_history("calls, last_call >= '$again' AND last_call < timestamptz '$again' + interval '1 second'", 'WITH early', 'statements_history'),
	'2|t', 'a sealed file has the last call to a second');
is(by_history("calls, last_call >= '$gone' AND last_call < timestamptz '$gone' + interval '1 second'", 'WITH gone', 'queries'),
	'1|t', 'queries has the last call of a sealed file to a second');
is(sql(qq{SELECT count(*) FILTER (WHERE last_call > period_end + grain), count(*) FILTER (WHERE last_call IS NULL AND calls > 0) FROM
	tacho.statements_history(since => now() - interval '10 minutes', bucket => '2 seconds', n => null) WHERE query_text ~ '^WITH (early|late|gone)'}), '0|0',
	'each period with calls has a last call, at most an interval after its end');
done_testing();
