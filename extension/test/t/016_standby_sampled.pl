# A standby records its own history, also through its promotion.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Sys::Hostname;
use TachoStatus qw(metric wait_for_metric wait_until_written);
use TachoTest qw(tacho_cluster tacho_session wait_for_marker);
use Test::More;

my $primary = tacho_cluster('primary', init => { allows_streaming => 1 },
	conf => "tacho.server_interval = 200ms\ntacho.tables_interval = 500ms\n");
if ($primary->psql('postgres', q{LOAD 'libpqwalreceiver'}) != 0)
{
	$primary->stop;
	plan skip_all => 'this installation cannot stream replication';
}
my $standby = PostgreSQL::Test::Cluster->new('standby');
my $backup = 'base';

$primary->safe_psql('postgres', 'CREATE TABLE item AS SELECT g AS id FROM generate_series(1, 300) g');
$primary->backup($backup);
$standby->init_from_backup($primary, $backup, has_streaming => 1);
$standby->append_conf('postgresql.conf',
	"tacho.directory = '" . $standby->basedir . "/history'\nrecovery_min_apply_delay = '1h'");
$standby->start;

# Before the first commit is replayed, there is no time to compare with: not 26 years.
$primary->safe_psql('postgres', 'CREATE TABLE delayed (id int)');
ok($standby->poll_query_until('postgres', q{SELECT max(max) > 0 FROM tacho.server_history(metric => 'recovery_lag_bytes')}),
	'a standby with a delay is behind');
is($standby->safe_psql('postgres', q{SELECT coalesce(max(max), 0)::bigint FROM tacho.server_history(metric => 'recovery_lag')}),
	'0', 'the time that it is behind is not known before a commit');
$standby->safe_psql('postgres', $_) foreach 'ALTER SYSTEM SET recovery_min_apply_delay = 0', 'SELECT pg_reload_conf()';
$primary->wait_for_catchup($standby);

ok(wait_for_metric($standby, 'recording', "value = 'on'"), 'the standby records');
my $session = tacho_session($standby, app => 'reader');
$session->send('SELECT pg_sleep(1000);');
ok( $standby->poll_query_until('postgres',
		q{SELECT count(*) >= 10 FROM tacho.samples(n => NULL, application => 'reader')}),
	'sessions of the standby are sampled');

$primary->safe_psql('postgres', 'CREATE TABLE copied (id int)');
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'SELECT * FROM copied WHERE id = 5');
ok( $standby->poll_query_until('postgres', q{
		SELECT string_agg(t.relation || ': ' || t.condition, ', ') = 'copied: Filter: (id = ?)'
		  FROM tacho.statement_plans p JOIN tacho.statements s USING (userid, dbid, toplevel, queryid), tacho.plan(p.plan_id::text) t
		  WHERE s.query = 'SELECT * FROM copied WHERE id = $1'}),
	'plans of the standby are recorded');
is( $standby->safe_psql('postgres',
		q{SELECT DISTINCT category, state FROM tacho.samples(n => NULL, scope => 'all',
			backend_type => 'startup') WHERE category <> 'background'}),
	'',
	'the startup process is a background process');
is( $primary->safe_psql('postgres',
		q{SELECT DISTINCT category, state FROM tacho.samples(n => NULL, scope => 'all',
			backend_type => 'walsender', application => 'standby')}),
	'replication|active',
	'the primary sees the walsender as replication');

$standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM tacho.tables_history(since => '2000-01-01')})
  or die 'no record of tables';
$standby->safe_psql('postgres', 'SELECT sum(id) FROM item') for 1 .. 3;
my $reads = q{FROM tacho.tables_history(since => '2000-01-01', n => NULL) WHERE oid = 'item'::regclass};
ok($standby->poll_query_until('postgres', "SELECT sum(scans) = 3 $reads"), 'reads of tables on the standby are counted');
is($standby->safe_psql('postgres', "SELECT scans, tuples_returned, tuples_inserted $reads"), '3|900|0', 'reads of tables on the primary are not counted on the standby');

$standby->promote;
ok(wait_for_marker($standby, 'promotion', 1), 'a promotion is marked');
is( $standby->safe_psql('postgres',
		q{SELECT detail FROM tacho.markers(since => '2000-01-01') WHERE kind = 'promotion'}),
	'the standby was promoted: ' . join(', ',
		'PostgreSQL ' . $standby->safe_psql('postgres', 'SHOW server_version'),
		'primary', 'timeline 2',
		'system ' . $standby->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()'),
		'host ' . hostname()),
	'the marker of the promotion has the new timeline');
is( $standby->safe_psql('postgres',
		q{SELECT count(*) FROM tacho.markers(since => '2000-01-01') WHERE kind = 'crash recovery'}),
	'0', 'a base backup is not marked as a crash');
is( $primary->safe_psql('postgres',
		q{SELECT count(*) FROM tacho.server_history(metric => 'replica_replay_lag,replica_sent_lag', object => 'standby')}),
	'2', 'the primary has measured its replica');
is( $standby->safe_psql('postgres',
		q{SELECT count(*) FROM tacho.server_history(metric => 'recovery_lag_bytes')}),
	'1', 'the standby has measured how far it was behind');
my $ticks = metric($standby, 'ticks_taken');
ok(wait_for_metric($standby, 'ticks_taken', "value::bigint >= $ticks + 10"),
	'ticks go on after the promotion');
is(metric($standby, 'sampler_starts'), '1', 'the sampler goes on through the promotion');
$standby->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'reader'});
$session->finish;
$standby->stop;
$primary->stop;

done_testing();
