# A text ends where it cannot be scanned in the way it was parsed, or where memory is
# refused. The backend can still be cancelled and terminated, and the server can be
# stopped.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $node = tacho_cluster('hostile', interval => '1s');

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub pid { return sql("SELECT pid FROM pg_stat_activity WHERE application_name = '$_[0]'") }

# Waits until the session sleeps, or no longer sleeps.
sub wait_for_sleep
{
	my ($app, $sleeps) = @_;

	return $node->poll_query_until('postgres',
		"SELECT count(*) = $sleeps FROM pg_stat_activity WHERE application_name = '$app' AND wait_event = 'PgSleep'");
}

# The second statement was parsed before the setting in the first one could forbid its
# strings. Each text is made only once, so each session uses more columns.
my $columns = '1';
my %message = (
	'a quote' => q{SET backslash_quote = off \; SELECT E'a\'b', 1 AS quote_, },
	'Unicode' => q{SET standard_conforming_strings = off \; SELECT true, U&'\0061', 1 AS unicode_, },);
# from 19 on strings have only one form
my $two_forms = $node->pg_version->major < 19;
delete $message{Unicode} if !$two_forms;
for my $what (sort keys %message)
{
	my %session;

	for my $end ('cancel', 'terminate', 'timeout')
	{
		$session{$end} = tacho_session($node, app => $end);
		$session{$end}->run($message{$what} . ($columns .= ', 1'));
	}
	$session{cancel}->send('SELECT pg_sleep(600)');
	wait_for_sleep('cancel', 1);
	sql('SELECT pg_cancel_backend(' . pid('cancel') . ')');
	ok(wait_for_sleep('cancel', 0), "$what: a statement can be cancelled");
	$session{cancel}->finish;

	$session{terminate}->send('SELECT pg_sleep(600)');
	wait_for_sleep('terminate', 1);
	sql('SELECT pg_terminate_backend(' . pid('terminate') . ')');
	ok($node->poll_query_until('postgres',
			q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'terminate'}),
		"$what: a session can be ended");

	$session{timeout}->run(q{SET statement_timeout = '100ms'; SELECT pg_sleep(600)});
	like($session{timeout}{out}, qr/due to statement timeout/, "$what: a timeout is kept");
	$session{timeout}->finish;
}
is(sql(q{SELECT count(*), min(query) FROM tacho.statements WHERE query ~ 'quote_' AND query !~ 'tacho'}),
	'3|SELECT $1, $2 AS quote_, ' . ($two_forms ? '$3, $4, $5, $6, $7' : '$3, $4'), 'text that a setting would forbid is scanned as it was parsed');
if ($two_forms)
{
	is(sql(q{SELECT count(*), max(query) FROM tacho.statements WHERE query ~ '^SELECT \$1, $'}),
		'3|SELECT $1, ', 'text that cannot be scanned ends the text');

	# A literal that was parsed before a setting took effect, and would end elsewhere
	# after it.
	sql(q{ALTER ROLE CURRENT_USER SET standard_conforming_strings = off; ALTER ROLE CURRENT_USER SET escape_string_warning = off});
	tacho_session($node)->run(q{SET standard_conforming_strings = on \; SELECT 1 AS first_, 'a\'geheim'})->finish;
	sql('ALTER ROLE CURRENT_USER RESET ALL');
	is(sql(q{SELECT query FROM tacho.statements WHERE query ~ 'first_'}),
		'SELECT $1 AS first_, $2', 'a literal that would end elsewhere now ends the text');

	sql('ALTER ROLE CURRENT_USER SET standard_conforming_strings = off; ALTER ROLE CURRENT_USER SET escape_string_warning = off');
	my $on = q{set_config('standard_' || 'conform' || 'ing_strings', 'on', false)};
	tacho_session($node)->run(qq{SELECT $on \\; SELECT 1 AS second_, 2.0, 'a\\'geheim'})->finish;
	is(sql(q{SELECT query FROM tacho.statements WHERE query ~ 'second_' AND query !~ 'tacho'}),
		'SELECT $1 AS second_, $2, $3', 'a literal ends the text although no statement names the setting');
	sql('CREATE TABLE again (a int)');
	tacho_session($node)->run(q{PREPARE p AS SELECT 1 AS third_, 'a\'geheim\'b', a FROM again})->run("SELECT $on")->run('SELECT 1 AS between_, 2.0, 3, 4, 5')
	  ->run('SELECT tacho.statements_reset() IS NULL; ALTER TABLE again ADD b int')->run('EXECUTE p')->finish;
	sql('ALTER ROLE CURRENT_USER RESET ALL');
	is(sql(q{SELECT query FROM tacho.statements WHERE query ~ 'third_' AND query !~ 'tacho'}),
		'PREPARE p AS SELECT $1 AS third_, $2', 'a literal of a statement that was prepared earlier ends the text');
	is(system("grep -rqa geheim '" . $node->data_dir . "/tacho'"), 256, 'the history has no part of the literal');
}

# Memory is refused at some point between the message and the result.
my $large = 4 * 1024 * 1024;
for my $step (0 .. 12)
{
	my $session = tacho_session($node, app => "memory $step");
	$session->run('SELECT 1');
	my $pid = pid("memory $step");
	my ($kb) = slurp_file("/proc/$pid/status") =~ /VmSize:\s+(\d+)/;
	system_or_bail('prlimit', '--pid', $pid, '--as=' . ($kb * 1024 + $step * $large) . ':');
	$session->run("SELECT '" . 'x' x $large . "', " . ($columns .= ', 1'));
	system_or_bail('prlimit', '--pid', $pid, '--as=unlimited:');
	$session->run(q{SET statement_timeout = '100ms'; SELECT pg_sleep(600)});
	like($session->{out}, qr/due to statement timeout/, "with $step times its size a text leaves a timeout kept");
	$session->finish;
}

# Fast shutdown.
my $last = tacho_session($node, app => 'last');
$last->run(($message{Unicode} // $message{'a quote'}) . ($columns .= ', 1'));
$last->send('SELECT pg_sleep(600)');
wait_for_sleep('last', 1);
ok($node->stop('fast'), 'the server can be stopped');

done_testing();
