# tacho-record through a LATIN1 database: texts of that database are shown with their
# characters. pg_stat_statements there fails at one text of a UTF8 database that has
# others; then texts come from sessions, without constants, until it answers again.
use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Encode qw(encode);
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoRecord qw(ask markers record record_program wait_until);
use TachoTest qw(tacho_session);

record_program();
my $node = PostgreSQL::Test::Cluster->new('encodings');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'");
$node->start;
$node->safe_psql('postgres', $_)
  for q{CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0},
  'CREATE ROLE watcher LOGIN', 'GRANT pg_monitor TO watcher';
$node->safe_psql('latin', 'CREATE EXTENSION pg_stat_statements');

my %session;

# Runs a statement in the LATIN1 database, which does not end, and returns the text
# that the history has of it.
sub text
{
	my ($tape, $application, $sql) = @_;
	my $text;

	$session{$application} = tacho_session($node, app => $application, db => 'latin');
	$session{$application}->send($sql);
	wait_until("a text of $application", sub {
		my ($sample) = ask($tape, 'samples', '--since', '2s', '--application', $application, '--n', 1);
		$text = $sample && $sample->{query_text};
	});
	return $text;
}

my $tape = $node->basedir . '/tape';
my $recorder = record($node->connstr('latin') . ' user=watcher', $tape);
$node->safe_psql('latin', encode('latin1', q{SELECT pg_sleep(0) AS "größe"}));
is(text($tape, 's_latin', encode('latin1', q{SELECT pg_sleep(600) AS "größe"})),
	'SELECT pg_sleep($1) AS "größe"', 'a text of a LATIN1 database has its characters');

$node->safe_psql('postgres', encode('utf8', q{SELECT 1 AS "日本"}));
is(text($tape, 's_running', q{SELECT pg_sleep(600), 'secret' AS running}),
	'SELECT pg_sleep($1), $2 AS running', 'if pg_stat_statements fails the text comes from the session');
like((markers($tape, 'texts left out'))[0],
	qr/^query texts are taken only from running sessions: .* has no equivalent in encoding "LATIN1"$/,
	'a marker says so, with the cause');

$node->safe_psql('latin', 'SELECT pg_stat_statements_reset()');
$node->safe_psql('latin', q{SELECT pg_sleep(0), 'secret', 1 AS reset});
is(text($tape, 's_reset', q{SELECT pg_sleep(600), 'other', 2 AS reset}),
	'SELECT pg_sleep($1), $2, $3 AS reset', 'texts come from pg_stat_statements again');
is($recorder->end('TERM'), 0, 'the recorder ends');
unlike($recorder->log, qr/secret/, 'the log has no constants');
done_testing();
