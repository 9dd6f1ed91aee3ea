# Names and texts from databases with other encodings are readable in every database.
# Renamed and dropped databases and roles keep their old names in the history.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use TachoStatus qw(metric wait_for_metric);
use TachoTest qw(server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('names', interval => '50ms');
my %bytes = (    # the same word in each encoding
	latin1 => "caf\xe9",
	euc_jp => "\xc6\xfc\xcb\xdc",
	sql_ascii => "\xff\xe9t\xc3\xa9");
my %text = (
	latin1 => "caf\xc3\xa9",
	euc_jp => "\xe6\x97\xa5\xe6\x9c\xac",
	sql_ascii => "\xef\xbf\xbd\xef\xbf\xbdt\xc3\xa9");

# The distinct attributes of the only session of an application, or the attributes of its
# newest sample. A statement that is still being analysed has no identifier and no text yet.
sub seen
{
	my ($application, $columns, %opt) = @_;
	my $n = $opt{newest} ? 1 : 'NULL';

	return $node->safe_psql($opt{db} // 'postgres',
		"SELECT DISTINCT $columns FROM tacho.samples(n => $n, application => '$application')
		  WHERE query_id IS NOT NULL ORDER BY 1");
}

# Waits until seen() returns this.
sub comes_to_be
{
	my ($expected, $what, @arguments) = @_;
	my $seen;

	for (1 .. $PostgreSQL::Test::Utils::timeout_default)
	{
		$seen = seen(@arguments);
		last if $seen eq $expected;
		wait_for_ticks($node, 2, server_ms($node));
	}
	return is($seen, $expected, $what);
}

sub sleeper
{
	my ($application, %opt) = @_;
	my $text = $opt{text} // 'a';

	return tacho_session($node, app => $application, %opt)
	  ->send(qq{SELECT pg_sleep(1000) AS "$text"});
}

sub wake
{
	my ($session, $application) = @_;

	$node->safe_psql('postgres',
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$application'");
	return $session->finish;
}

# Encodings: the text of a statement has the known encoding of its database; names of
# databases and roles may have any.
for my $encoding (sort keys %bytes)
{
	$node->safe_psql('postgres',
		"CREATE DATABASE $encoding ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql($encoding, 'CREATE EXTENSION tacho');
	$node->safe_psql($encoding, qq{CREATE ROLE "$bytes{$encoding}" LOGIN});
	$node->safe_psql($encoding,
		qq{CREATE DATABASE "$bytes{$encoding}" ENCODING '$encoding' LOCALE 'C' TEMPLATE template0});
	my $session = sleeper("in $encoding", db => $bytes{$encoding},
		user => $bytes{$encoding}, text => $bytes{$encoding});
	comes_to_be(qq{SELECT pg_sleep(\$1) AS "$text{$encoding}"},
		"a text in $encoding", "in $encoding", 'query_text');
	wake($session, "in $encoding");
}
is(seen('in latin1', 'query_text', db => 'latin1'),
	qq{SELECT pg_sleep(\$1) AS "caf\xe9"}, 'the text is the same seen from a LATIN1 database');
is(seen('in euc_jp', 'query_text', db => 'euc_jp'),
	qq{SELECT pg_sleep(\$1) AS "$bytes{euc_jp}"}, 'the text is the same seen from a EUC_JP database');
is(seen('in euc_jp', 'query_text', db => 'latin1'),
	'SELECT pg_sleep($1) AS "??"', 'characters that LATIN1 lacks are replaced');

# The encoding of a name is unknown: bytes that are not UTF-8 are visibly replaced.
my $unknown = "\xef\xbf\xbd";
is(seen('in latin1', 'database, username'),
	join('|', ("caf$unknown") x 2), 'names that are not UTF-8 are shown');
is(seen('in latin1', 'database, username', db => 'latin1'),
	'caf?|caf?', 'names that are not UTF-8 are shown seen from a LATIN1 database');
is($node->safe_psql('postgres', q{SELECT count(DISTINCT database) FROM tacho.samples(n => NULL)
		WHERE application LIKE 'in %'}), '3', 'names that are not UTF-8 stay different');
$node->safe_psql('postgres', qq{CREATE ROLE "$text{euc_jp}" LOGIN});
my $japanese = sleeper('japanese', user => $text{euc_jp});
comes_to_be($text{euc_jp}, 'a name in UTF-8', 'japanese', 'username');
is(seen('japanese', 'username', db => 'euc_jp'), $bytes{euc_jp},
	'a name is the same seen from a EUC_JP database');
wake($japanese, 'japanese');

# Renamed and dropped while sampled.
$node->safe_psql('postgres', 'CREATE ROLE ann LOGIN; CREATE DATABASE shop');
my $session = sleeper('shopper', user => 'ann', db => 'shop');
comes_to_be('shop|ann', 'names at first', 'shopper', 'database, username');
$node->safe_psql('postgres', 'ALTER ROLE ann RENAME TO beth');
comes_to_be("shop|ann\nshop|beth", 'a role is renamed under a session', 'shopper',
	'database, username');
$node->safe_psql('postgres', 'DROP ROLE beth');
wait_for_ticks($node, 30, server_ms($node));
is(seen('shopper', 'username', newest => 1), 'beth', 'a dropped role keeps its name');
wake($session, 'shopper');
is(metric($node, 'names_pending'), '0', 'no lookup of a name remains');

$node->safe_psql('postgres', 'ALTER DATABASE shop RENAME TO store');
$session = sleeper('second', db => 'store');
comes_to_be('store', 'a renamed database has its new name', 'second', 'database',
	newest => 1);
$node->safe_psql('postgres', 'DROP DATABASE store WITH (FORCE)');
$session->{harness}->finish;
is(seen('second', 'database', newest => 1), 'store', 'a dropped database keeps its name');
is($node->safe_psql('postgres', q{SELECT string_agg(key, ' ' ORDER BY key)
		FROM tacho.top('database') WHERE key IN ('shop', 'store')}), 'shop store',
	'each name has its load');

# A role that was dropped before the sampler could read its name.
my $sampler = metric($node, 'sampler_pid');
kill 'STOP', $sampler;
$node->safe_psql('postgres', 'CREATE ROLE brief LOGIN');
my $oid = $node->safe_psql('postgres', q{SELECT 'brief'::regrole::oid});
$session = sleeper('briefly', user => 'brief');
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'briefly' AND wait_event = 'PgSleep'});
$node->safe_psql('postgres', 'DROP ROLE brief');
kill 'CONT', $sampler;
comes_to_be("unknown (OID=$oid)", 'a name never learnt is shown as its number', 'briefly', 'username');
wake($session, 'briefly');
$node->stop;

done_testing();
