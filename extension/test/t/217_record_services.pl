# tacho-record of servers as cloud providers run them: functions are missing, refused or
# raise errors, views raise errors, pg_stat_statements is in another schema. Each is
# reported once, and everything else is recorded.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use Test::More;
use TachoLocks qw(session wait_until_locked);
use TachoRecord qw(ask markers record record_program run_record wait_until);

record_program();
my $node = PostgreSQL::Test::Cluster->new('services');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'pg_stat_statements'
allow_system_table_mods = on
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE SCHEMA extensions;
	CREATE EXTENSION pg_stat_statements SCHEMA extensions;
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t VALUES (1, 0), (2, 0);
	CREATE FUNCTION public.unsupported() RETURNS bool LANGUAGE plpgsql AS
		$$BEGIN RAISE feature_not_supported USING MESSAGE = 'it is currently not supported'; END$$;
});
$node->safe_psql('postgres', 'CREATE DATABASE without');
# a view without rows does not raise
$node->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('kept')});
my $conninfo = $node->connstr('postgres') . ' user=watcher';

# Makes a system view raise an error, as some do on storage that is not PostgreSQL's.
sub raises
{
	my ($view) = @_;
	$node->safe_psql('postgres', qq{
		ALTER VIEW pg_catalog.$view RENAME TO ${view}_of_before;
		CREATE VIEW pg_catalog.$view AS SELECT * FROM pg_catalog.${view}_of_before WHERE public.unsupported();
		GRANT SELECT ON pg_catalog.$view TO PUBLIC});
	return;
}

# Output of a check. Exit code 3: something needed is missing.
sub check
{
	my ($code, $out) = run_record('--check', $_[0] // $conninfo);

	is($code, $out =~ /^no /m ? 3 : 0, 'the exit code of a check says whether something is missing');
	return $out;
}

my $system = (check() =~ /system (\d+)/)[0];
like($system, qr/^[1-9]\d+$/, 'a stock server gives its identifier');

raises($_) foreach qw(pg_stat_archiver pg_replication_slots);
$node->safe_psql('postgres', q{
	ALTER FUNCTION pg_catalog.pg_current_wal_insert_lsn() RENAME TO gone;
	REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_checkpoint() FROM PUBLIC});
my $out = check();
# 19 adds the detail that no function has this name
my $gone = qr/the end of the log \(function pg_current_wal_insert_lsn\(\) does not exist(?:: There is no function of that name\.)?\)/;
my $raised = join ', ', map { "$_ (it is currently not supported)" } 'the archiver', 'replication slots';
like($out, qr/^part measurements: all but $gone, \Q$raised\E$/m, 'a check names functions that are missing and that fail');
like($out, qr/^no   query texts: permission denied for schema extensions\n +run: GRANT USAGE ON SCHEMA extensions TO watcher;$/m,
	'the check names the right to a schema');
like($out, qr/^yes  server: .*, system $system, /m, 'the check has the identifier without the timeline');
$node->safe_psql('postgres', 'GRANT USAGE ON SCHEMA extensions TO watcher');
like(check(), qr/^yes  query texts: pg_stat_statements$/m, 'with the right to the schema the check has query texts');
like(check($node->connstr('without') . ' user=watcher'),
	qr/^no   query texts: pg_stat_statements is not in database without\n +run: CREATE EXTENSION pg_stat_statements;$/m,
	'a check says what helps if pg_stat_statements is in another database');

my $tape = $node->basedir . '/recorded';
my $recorder = record($conninfo, $tape, args => [ '--server-interval', 200, '--statements-interval', 1000 ]);
my ($holder, $waiter) = map { session($node, "s_$_") } qw(holder waiter);
$holder->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
$waiter->send('UPDATE t SET v = 2 WHERE id = 1');
wait_until_locked($node, 's_waiter');
my $blocked = sub {
	my ($row) = ask($tape, 'samples', '--since', '1s', '--application', 's_waiter');
	return $row && $row->{wait_event_type} eq 'Lock' && ($row->{blocked_by} // '');
};
wait_until('who blocks it', sub { $blocked->() });
wait_until('a database', sub { ask($tape, 'server-history', '--since', '1h', '--metric', 'xact_commit', '--object', 'postgres') > 0 });
wait_until('calls', sub {
	$node->safe_psql('postgres', 'SELECT v FROM t WHERE id = 2');
	return grep { ($_->{query_text} // '') eq 'SELECT v FROM t WHERE id = $1' && $_->{calls} }
	  ask($tape, 'statements-history', '--since', '1h', '--n', 'all');
});
ok(1, 'sessions, blockers, databases and statements are recorded');
is(ask($tape, 'server-history', '--since', '1h', '--metric', 'wal_bytes'), 0, 'a missing function leaves its measurements out');

# Then locks and statements are refused, too; samples continue.
$node->safe_psql('postgres', "REVOKE EXECUTE ON FUNCTION $_ FROM PUBLIC")
  foreach qw{pg_catalog.pg_lock_status() extensions.pg_stat_statements(boolean)};
wait_until('refusals', sub {
	return $recorder->log =~ /^WARNING: +permission denied for function pg_lock_status$/m
	  && $recorder->log =~ /^WARNING: +permission denied for function pg_stat_statements$/m;
});
wait_until('a waiter without a blocker', sub { my $by = $blocked->(); defined $by && $by eq '' });
ok(1, 'a waiting session is seen although locks are refused');
# a machine that is busy makes gaps of its own
my $refused = qr/denied|not supported|does not exist/;
is_deeply([ grep { /$refused/ } markers($tape, 'gap') ], [], 'refused functions leave no gap');
my %told;
$told{$_}++ foreach grep { /$refused/ } $recorder->log =~ /^WARNING: +(.*)$/mg;
is_deeply([ grep { $told{$_} > 1 } keys %told ], [], 'the log has each refusal once');
is(keys %told, 5, 'the log has all refusals');
like(check(), qr/^no   blockers: permission denied for function pg_lock_status$/m, 'a check names the refused locks');
$_->finish foreach $holder, $waiter;
is($recorder->end('TERM'), 0, 'the recorder ends');

done_testing();
