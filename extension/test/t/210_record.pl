# tacho-record beside the extension on one server: both record the same about the same
# sessions. It needs only a role with pg_monitor.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TachoLocks qw(session wait_until_locked);
use TachoRecord qw(ask markers moment record record_program run_record ticks wait_for_gap wait_until);
use TachoTest qw(tacho_cluster);

record_program();
my $node = tacho_cluster('record', conf => q{
deadlock_timeout = 600s
shared_preload_libraries = 'pg_stat_statements, tacho'
max_prepared_transactions = 5
});
$node->safe_psql('postgres', q{
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;
	CREATE EXTENSION pg_stat_statements;
	-- the owner of a database may set this, and must gain nothing by it
	CREATE SCHEMA evil;
	GRANT USAGE ON SCHEMA evil TO watcher;
	CREATE FUNCTION evil.raised() RETURNS timestamptz LANGUAGE plpgsql AS
		$$BEGIN RAISE 'a function of the owner was called'; END$$;
	CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz RETURN evil.raised();
	CREATE FUNCTION evil.pg_postmaster_start_time() RETURNS timestamptz RETURN evil.raised();
	ALTER ROLE watcher IN DATABASE postgres SET search_path = evil, pg_catalog;
	CREATE TABLE u();
	CREATE TABLE t(id int PRIMARY KEY, v int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g});
my $conninfo = $node->connstr('postgres') . ' user=watcher';
my $own = $node->data_dir . '/tacho';
my $tape = $node->basedir . '/recorded';

# One line per session of a tick, with the columns that must be equal.
sub sessions
{
	my ($dir, $since, $until) = @_;
	my @samples = ask($dir, 'samples', '--since', $since, '--until', $until, '--scope', 'all', '--n', 'all');
	my $tick = (sort { $b <=> $a } map { $_->{tick} } @samples)[0];

	return join "\n", sort map {
		my $row = $_;
		join '|', map { $row->{$_} // '' } qw(pid backend_type category database username
		  application client_addr state wait_event_type wait_event cpu query_id query_text
		  xact_start query_start weight_ms blocked_by)
	} grep { $_->{tick} == $tick && ($_->{application} // '') =~ /^s_/ } @samples;
}

my $recorder = record($conninfo, $tape);
my @names = qw(holder first second sleeper advisory late writer row table);
my ($holder, $first, $second, $sleeper, $advisory, $late, $writer, $row, $table) =
  map { session($node, "s_$_") } @names;
$holder->run('BEGIN; UPDATE t SET v = 1 WHERE id = 1');
$first->run('BEGIN; UPDATE t SET v = 1 WHERE id = 2');
$first->send('UPDATE t SET v = 1 WHERE id = 1');
$second->send('UPDATE t SET v = 1 WHERE id = 2');
# a query has a text after its first execution
$sleeper->run('SELECT pg_sleep(0)');
$sleeper->send('SELECT pg_sleep(600)');
$advisory->run('SELECT pg_advisory_lock(7)');
$late->send('SELECT pg_advisory_lock(7)');
$writer->run('BEGIN; SELECT count(*) FROM t');
# a prepared transaction holds a row and a table
$row->run(q{BEGIN; LOCK TABLE u; UPDATE t SET v = 1 WHERE id = 5; PREPARE TRANSACTION 'it''s stuck'});
$row->send('UPDATE t SET v = 1 WHERE id = 5');
$table->send('BEGIN; LOCK TABLE u');
wait_until_locked($node, 's_first', 's_second', 's_late', 's_row', 's_table');
# texts are read every ten seconds
wait_until('texts', sub {
	my %known = map { $_->{application} => 1 } grep { defined $_->{query_text} && defined $_->{application} }
	  ask($tape, 'samples', '--since', '1s', '--scope', 'all', '--n', 'all');
	return @names == grep { $known{"s_$_"} } @names;
});
# A tick of a busy machine may end before it has seen who blocks whom: then later ones count.
my ($since, $until, @recorded, @expected);
for my $try (1 .. 10)
{
	$since = moment($node);
	wait_until('ticks of the recorder', sub { ticks($tape, $since) >= 10 });
	wait_until('ticks of the extension', sub { ticks($own, $since) >= 10 });
	$until = moment($node);
	@recorded = split /\n/, sessions($tape, $since, $until);
	@expected = split /\n/, sessions($own, $since, $until);
	last if "@recorded" eq "@expected";
}
is_deeply(\@recorded, \@expected, 'sessions, waits, queries, texts, blockers and starts are recorded');
# One tick more or less at the window's edges is at most 0.1 of a session.
sub same_load
{
	my ($by) = @_;
	my ($recorded, $expected) = map {
		my @rows = ask($_, 'top', $by, '--since', $since, '--until', $until,
			'--application', join(',', map { "s_$_" } @names));
		+{ map { ($_->{key} // '') => $_->{avg_aas} } @rows };
	} $tape, $own;

	is_deeply([ sort keys %$recorded ], [ sort keys %$expected ], "load by $by has the same keys");
	is_deeply([ grep { abs($recorded->{$_} - ($expected->{$_} // 0)) > 0.15 } keys %$recorded ], [],
		"load by $by has the same sessions");
}
same_load($_) foreach qw(wait_event query_id state username blocked_by);
my $tree = sub {
	my ($dir) = @_;
	my @rows = ask($dir, 'blocking', '--at', $until);
	return join "\n", map {
		my $row = $_;
		join '|', map { $row->{$_} // '' } qw(level application kind prepared_xid prepared_gid
		  waiters depth via locktype mode mode_held)
	} @rows;
};
is($tree->($tape), $tree->($own), 'blocking() shows the tree of waits');
my %objects = map { ($_->{object} // '') => 1 } grep { ($_->{locktype} // '') eq 'relation' } ask($tape, 'blocking', '--at', $until);
is(join(' ', keys %objects), 'relation public.u', 'the tree has the name of a table that no query has read');
my $xid = $node->safe_psql('postgres', 'SELECT transaction FROM pg_prepared_xacts');
like($tree->($tape), qr{\|$xid\|it's stuck\|}, 'the tree has the prepared transaction that two sessions wait for');
my ($tick) = ask($tape, 'samples', '--since', $since, '--application', 'tacho record', '--scope', 'all');
is($tick, undef, 'the recorder leaves its own session out');

# The connection is killed: a gap says so, and recording continues.
my $gaps = () = markers($tape, 'gap');
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tacho record'});
my $gap = wait_for_gap($tape, $gaps + 1);
like($gap->{detail}, qr/terminating connection due to administrator command|connection to server was lost/,
	'a killed connection is a gap with its reason');
$since = moment($node);
wait_until('ticks after it', sub { ticks($tape, $since) >= 3 });
ok(1, 'recording goes on after the gap');

# Rights are taken away and given back.
$node->safe_psql('postgres', 'REVOKE pg_monitor FROM watcher');
my ($code, $out) = run_record('--check', $conninfo);
is($code, 3, 'a check without rights fails');
like($out, qr/^no   samples: only sessions of this role; \d+ others are hidden\n +run: GRANT pg_monitor TO watcher;$/m,
	'the check names the right that helps');
wait_until('hidden sessions', sub {
	my $now = moment($node);
	my @seen = ask($tape, 'samples', '--since', '1s', '--application', 's_sleeper');
	return @seen == 0;
});
$node->safe_psql('postgres', 'GRANT pg_monitor TO watcher');
wait_until('sessions again', sub {
	return ask($tape, 'samples', '--since', '1s', '--application', 's_sleeper') > 0;
});
($code, $out) = run_record('--check', $conninfo);
unlike($out, qr/^no   (?!system)/m, 'with pg_monitor everything is recorded');
like($out, qr/^yes  samples: sessions of all roles$/m, 'pg_monitor shows what other sessions do');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'it''s stuck'});
$_->finish for $holder, $writer, $first, $second, $advisory, $late, $row, $table;

# The server starts again: another life, with a marker; the recorder waits.
$node->restart;
wait_until('the second life', sub { grep { /^server restarted, PostgreSQL / } markers($tape, 'start') });
ok(1, 'a restart of the server is a marker');

# kill -9 loses at most the frames since the last sync; the gap is marked afterwards.
$since = moment($node);
wait_until('ticks', sub { ticks($tape, $since) >= 3 });
is($recorder->end('KILL'), -9, 'the recorder is killed');
my $before = ticks($tape, $since);
cmp_ok($before, '>=', 3, 'the history from before the kill is kept');
# ten slots without a recorder
$node->safe_psql('postgres', 'SELECT pg_sleep(1)');
$recorder = record($conninfo, $tape);
wait_until('more ticks', sub { ticks($tape, $since) > $before });
ok((grep { $_ eq 'the recorder did not run' } markers($tape, 'gap')), 'the time between two recorders is a gap');

# Another one for the same directory is refused.
my $error;
($code, $out, $error) = run_record($conninfo, '--tape', $tape);
is($code, 5, 'a second recorder of a directory ends');
like($error, qr/^error: directory .* is in use by another writer/, 'the second recorder says why');

# SIGTERM writes all and ends.
is($recorder->end('TERM'), 0, 'SIGTERM ends the recorder');
is((markers($tape, 'stop'))[-1], 'recorder stopped', 'the end of the recorder is a marker');

done_testing();
