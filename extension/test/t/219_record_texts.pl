# tacho-record where texts of queries take the server long: ticks do not wait for
# them, a question that takes too long ends on the server, and the log says all this.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoLocks qw(session);
use TachoRecord qw(ask markers record record_program ticks wait_until);

record_program();
my $node = PostgreSQL::Test::Cluster->new('texts');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'");
$node->start;

# As with gigabytes of texts: a question for them takes long, and does not look
# whether its time is up.
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE takes(seconds int);
	INSERT INTO takes VALUES (7);
	GRANT SELECT ON takes TO watcher;
	ALTER FUNCTION pg_stat_statements(boolean) RENAME TO raw;
	CREATE VIEW shape AS SELECT * FROM raw(false);
	CREATE FUNCTION pg_stat_statements(showtext boolean) RETURNS SETOF shape LANGUAGE plpgsql AS
		$$BEGIN
			IF showtext THEN
				BEGIN
					PERFORM pg_sleep((SELECT seconds FROM public.takes));
				EXCEPTION WHEN query_canceled THEN
					PERFORM pg_sleep(600);
				END;
			END IF;
			RETURN QUERY SELECT * FROM public.raw(showtext);
		END$$});
my $conninfo = $node->connstr('postgres') . ' user=watcher';
my $sleeper = session($node, 's_sleeper');
$sleeper->run('SELECT pg_sleep(0)');
$sleeper->send('SELECT pg_sleep(600)');

# Gaps without the ones of a busy machine.
sub gaps { return grep { !/statement timeout|server answered after|recorder was delayed/ } markers($_[0], 'gap') }

sub text
{
	my ($tape) = @_;
	my ($sample) = ask($tape, 'samples', '--since', '2s', '--application', 's_sleeper', '--n', 1);
	return $sample && $sample->{query_text};
}

# Questions for texts that run on the server.
sub questions
{
	return $node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tacho record' AND state = 'active'
		AND query ~ 'pg_stat_statements\(true\)'});
}

my $tape = $node->basedir . '/slow';
my $recorder = record($conninfo, $tape);
wait_until('a text', sub { text($tape) });
is(text($tape), 'SELECT pg_sleep($1)', 'texts that take long to read are recorded');
is_deeply([ gaps($tape) ], [], 'no tick waits for texts');
like($recorder->log, qr/^WARNING:  reading query texts takes more than a second: it is done less often$/m,
	'the log says that texts take long');
is($recorder->end('TERM'), 0, 'the recorder ends');

$node->safe_psql('postgres', 'UPDATE takes SET seconds = 600');
$tape = $node->basedir . '/stuck';
$recorder = record($conninfo, $tape);
wait_until('a question', sub { questions() == 1 });
wait_until('its end', sub { questions() == 0 });
ok(1, 'a question that outlives its limit is ended on the server');
my $line = 'query texts are taken only from running sessions: server did not answer within 15000 ms';
wait_until('a marker', sub { markers($tape, 'texts left out') });
is_deeply([ markers($tape, 'texts left out') ], [$line], 'a marker says that a question was ended');
like($recorder->log, qr/^WARNING:  \Q$line\E$/m, 'the log says that a question was ended');
is_deeply([ gaps($tape) ], [], 'no tick waits for a question that is ended');
is($recorder->end('TERM'), 0, 'the second recorder ends');

# One that runs when the recorder ends does not stay behind.
$recorder = record($conninfo, $node->basedir . '/ended');
wait_until('a question', sub { questions() == 1 });
is($recorder->end('TERM'), 0, 'the recorder ends while a question runs');
wait_until('its end', sub { questions() == 0 });
ok(1, 'the question ends with the recorder');

done_testing();
