# Errors of statements by SQLSTATE: the history tells which query failed with what.
use strict;
use warnings;
use TachoTest qw(server_ms tacho_cluster tacho_session wait_for_ticks wait_until_in_history);
use Test::More;

my $node = tacho_cluster('errors', conf => q{
tacho.statements_interval = 500ms
tacho.statements_track = all
tacho.flush_interval = 100ms
max_connections = 50
});
my $ever = "since => '2000-01-01', n => null";

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub history { return sql("SELECT $_[0] FROM tacho.errors_history($ever, " . ($_[1] // "database => 'app'") . ')') }

# Runs statements that fail, each as a message of its own.
sub fail_with
{
	my ($user, @statements) = @_;
	$node->psql('app', join(";\n", "SET ROLE $user", @statements), on_error_stop => 0);
	return;
}

sub record_every
{
	sql("ALTER SYSTEM SET tacho.statements_interval = '$_[0]'");
	sql('SELECT pg_reload_conf()');
	return;
}

sql('CREATE DATABASE app');
sql("CREATE ROLE $_") for qw(ana bob);
$node->safe_psql('app', q{
	CREATE TABLE item (id int PRIMARY KEY);
	INSERT INTO item VALUES (1);
	GRANT ALL ON item TO ana, bob;
	CREATE FUNCTION fails(code text) RETURNS int LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'failed' USING errcode = code; END $$;
	CREATE PROCEDURE inserts(n int) LANGUAGE plpgsql AS $$ BEGIN
		FOR i IN 1 .. n LOOP
			BEGIN INSERT INTO item AS nested VALUES (1); EXCEPTION WHEN unique_violation THEN NULL; END;
		END LOOP; END $$;
	CREATE PROCEDURE codes(n int) LANGUAGE plpgsql AS $$ BEGIN
		FOR i IN 1 .. n LOOP
			BEGIN EXECUTE 'SELECT fails($1)' USING 'Z' || lpad(i::text, 4, '0'); EXCEPTION WHEN OTHERS THEN NULL; END;
		END LOOP; END $$});

# several queries and codes
fail_with('ana', ('INSERT INTO item VALUES (1)') x 7, 'SELECT 1 / 0', 'SELEC 1', "SELECT fails('40P01')");
fail_with('bob', ('INSERT INTO item VALUES (1)') x 2, "SELECT fails('40P01')", "SELECT fails('40001')",
	"SET statement_timeout = '1ms'", 'SELECT pg_sleep(60)');
wait_until_in_history($node);
is(history(q{string_agg(concat_ws(' ', errors, sqlstate, condition, username, coalesce(query_text, key)), E'\n'
		ORDER BY errors DESC, sqlstate, username, query_text)}, "database => 'app', toplevel => 'true'"),
	'7 23505 unique_violation ana INSERT INTO item VALUES ($1)
2 23505 unique_violation bob INSERT INTO item VALUES ($1)
1 22012 division_by_zero ana SELECT $1 / $2
1 40001 serialization_failure bob SELECT fails($1)
1 40P01 deadlock_detected ana SELECT fails($1)
1 40P01 deadlock_detected bob SELECT fails($1)
1 42601 syntax_error ana (no query id)
1 57014 query_canceled bob SELECT pg_sleep($1)', 'each query has its errors by SQLSTATE');
is(history('sum(errors)', "sqlstate => '40', username => 'bob'"), '2', 'a filter takes a class of SQLSTATEs');
is(sql("SELECT sum(errors + cancellations) FROM tacho.statements_history($ever, database => 'app')"),
	history('sum(errors)'), 'all errors have an SQLSTATE');

# many sessions at once
my @sessions = map { tacho_session($node, db => 'app') } 1 .. 8;
$_->send('CALL inserts(200)') for @sessions;
$_->finish for @sessions;
wait_until_in_history($node);
is(history('sum(errors)', "toplevel => 'false', sqlstate => '23505'"), '1600', 'sessions count beside each other');

# more pairs than a record has room for
record_every('1h');
# the change of the interval makes a record
wait_for_ticks($node, 5, server_ms($node));
$node->safe_psql('app', 'CALL codes(1500)');
record_every('500ms');
wait_until_in_history($node);
is(sql("SELECT sum(errors) FROM tacho.errors_history($ever) WHERE sqlstate IS NULL OR sqlstate LIKE 'Z%'"),
	'1500', 'errors beyond the room are counted');
my $apart = history('count(*)', "sqlstate => 'Z0,Z1'");
cmp_ok($apart, '<=', 1024, 'a record tells 1,024 pairs apart');
cmp_ok($apart, '>', 900, 'a record uses its room');

# a server that stops has recorded the errors before
record_every('1h');
fail_with('ana', ('SELECT 1 / 0') x 4);
$node->restart;
$node->poll_query_until('postgres', "SELECT sum(errors) = 5 FROM tacho.errors_history($ever, sqlstate => '22012')")
  or diag history('sum(errors)', "sqlstate => '22012'");
is(history('sum(errors)', "sqlstate => '22012'"), '5', 'errors before a stop of the server are recorded');
done_testing();
