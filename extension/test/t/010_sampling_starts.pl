# The sampler starts with the server, takes ticks of every session that is not idle, and
# shows its state in status().
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $node = tacho_cluster('sampling', interval => '50ms');

is( $node->safe_psql('postgres',
		q{SELECT backend_type, datname, usename FROM pg_stat_activity
		WHERE pid = (SELECT value::int FROM tacho.status() WHERE metric = 'sampler_pid')}
	),
	'tacho sampler||postgres',
	'the sampler is a background worker without a database');
is(metric($node, 'recording'), 'on', 'recording is on');
is(metric($node, 'reason'), '', 'status() gives no reason for a pause');
is(metric($node, 'sampler_starts'), '1', 'the sampler was started once');
is(metric($node, 'tick_interval_ms'), '50', 'the sampler has the interval of the setting');

$node->safe_psql('postgres', 'CREATE ROLE walker LOGIN');
my $session = tacho_session($node, user => 'walker', app => 'a walk');
my $rows = metric($node, 'rows_taken');
$session->send('SELECT pg_sleep(1000);');
ok(wait_for_metric($node, 'rows_taken', "value::bigint >= $rows + 20"),
	'rows of an active session are taken');
my $ticks = metric($node, 'ticks_taken');
ok(wait_for_metric($node, 'ticks_taken', "value::bigint >= $ticks + 20"),
	'ticks go on');
ok(wait_until_written($node), 'the writer acknowledges frames');
is(metric($node, 'frames_lost'), '0', 'no frame is lost');
is(metric($node, 'names_pending'), '0', 'no name is missing in the dictionaries');

# a sample may also be of the moment before the statement sleeps
is( $node->safe_psql('postgres',
		q{SELECT DISTINCT backend_type, category, database, username,
			application, client_addr, state, wait_event_type, wait_event,
			query_text
		FROM tacho.samples(n => NULL, application => 'a walk')
		WHERE wait_event IS NOT NULL}),
	'client backend|foreground|postgres|walker|a walk|[local]|active|Timeout|PgSleep|SELECT pg_sleep($1)',
	'samples have every attribute of the session');
is( $node->safe_psql('postgres',
		q{SELECT count(*) FROM tacho.samples(n => NULL, scope => 'all',
			backend_type => 'tacho sampler')}),
	'0',
	'the sampler leaves itself out');

$node->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'walker'});
$session->finish;
$node->stop;
unlike(slurp_file($node->logfile), qr/WARNING|PANIC|FATAL:  (?!terminating connection)/,
	'the log has no warning');

done_testing();
