# tacho-web reads servers through connections: the answers equal those from files, for
# the extension and the SQL edition. Also: missing rights, missing objects, cancelled
# questions, and a server that goes away and comes back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoRecord qw(wait_until);
use TachoTest qw(server_ms tacho_cluster wait_for_ticks);
use TachoWeb qw(web web_program);
use Test::More;

web_program();
my $root = "$FindBin::RealBin/../../..";
my $data = "$root/conformance";
my $node = tacho_cluster('dsn', start => 0, conf => "tacho.retention_age = 0\ntacho.statements_interval = 1s\ntacho.tables_interval = 1s\n");
my $tape = $node->data_dir . '/tacho';

# Every input is a node of its own; the edition's input is also a tape of its own.
my %file = map { m{([^/]+)\.json$} ? ($1 => TachoWeb::Program::exact(slurp_file($_))) : () } glob "$data/cases/*.json";
for my $name (sort keys %file)
{
	my %with = %{ $file{$name}{with} // {} };

	system_or_bail($ENV{TACHO_PROGRAM}, 'import', 'sessions', "$data/inputs/$file{$name}{input}",
		(map { "--with=$_=$data/inputs/$with{$_}" } sort keys %with), '--tape', $tape, '--node', $file{$name}{node});
}
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION tacho;
	CREATE ROLE nobody LOGIN;
	CREATE ROLE "Own" LOGIN;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tacho TO "Own";
	-- the owner of a database may set this, and must gain nothing by it
	CREATE SCHEMA evil;
	GRANT USAGE ON SCHEMA evil TO "Own";
	CREATE FUNCTION evil.raised(name, name) RETURNS bool LANGUAGE plpgsql AS
		$$BEGIN RAISE 'an operator of the owner was called'; END$$;
	CREATE OPERATOR evil.= (FUNCTION = evil.raised, LEFTARG = name, RIGHTARG = name);
	ALTER ROLE "Own" IN DATABASE postgres SET search_path = evil, pg_catalog;
	CREATE DATABASE nothing;
	CREATE DATABASE slow;
	CREATE DATABASE edition});
wait_for_ticks($node, 1, server_ms($node)) or die 'no tick';
# Simulates an edition with slow or large answers.
$node->safe_psql('slow', q{
	CREATE SCHEMA tacho;
	CREATE TABLE tacho.setting ();
	CREATE FUNCTION tacho.status(node text DEFAULT NULL) RETURNS TABLE (metric text, value text) LANGUAGE plpgsql AS
		$$BEGIN
			RAISE NOTICE 'about to sleep' USING DETAIL = 'It is late.', HINT = 'Wait.';
			RAISE WARNING 'somewhat damaged' USING ERRCODE = '01004';
			PERFORM pg_sleep(node::int);
			RETURN QUERY VALUES ('slept', node);
		END$$;
	CREATE FUNCTION tacho.markers(since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, node text DEFAULT NULL)
		RETURNS TABLE (marker_time timestamptz, kind text, period_start timestamptz, period_end timestamptz) LANGUAGE sql AS
		$$SELECT now(), repeat('x', 1000), NULL::timestamptz, NULL::timestamptz FROM generate_series(1, 1000000)$$});

sub conninfo
{
	my ($name, $db, $user) = @_;
	return ('--dsn', "$name=" . $node->connstr($db) . ($user ? " user=$user" : ''));
}

my $web = web($node->basedir, '--tape', "files=$tape",
	conninfo('asked', 'postgres'), conninfo('nobody', 'postgres', 'nobody'), conninfo('own', 'postgres', 'Own'),
	conninfo('nothing', 'nothing'), conninfo('slow', 'slow'), conninfo('edition', 'edition'));

# Arguments of a case as the interface takes them.
sub arguments
{
	my ($name, $case) = @_;
	my %argument = (node => $file{$name}{node}, tz => $case->{zone}, %{ $case->{arguments} });

	$argument{n} = 'all' if exists $argument{n} && !defined $argument{n};
	for my $value (values %argument)
	{
		$value = $value ? 'true' : 'false' if JSON::PP::is_bool($value);
	}
	return %argument;
}

# A document without the names of relations, which files do not know.
sub without_relations
{
	my ($part) = @_;

	return [ map { without_relations($_) } @$part ] if ref $part eq 'ARRAY';
	return $part unless ref $part eq 'HASH';
	return { map { $_ => without_relations($part->{$_}) } grep { $_ ne 'relation' } keys %$part };
}

sub answer
{
	my ($web, $server, $function, %argument) = @_;
	my ($status, $body) = $web->ask($function, server => $server, %argument);

	for my $row (ref $body ? @{ $body->{rows} // [] } : ())
	{
		$row->{report} = without_relations(TachoWeb::Program::exact($row->{report})) if defined $row->{report};
	}
	# an edition has one node
	delete $body->{hint} if ref $body && ($body->{hint} // '') =~ /^Available are all, /;
	return { status => "$status", body => $body };
}

sub encoded
{
	return JSON::PP->new->canonical->ascii->encode($_[0]);
}

# True if two answers are equal.
sub same
{
	my ($got, $expected) = @_;
	my ($one, $other) = map { encoded($_) } $got, $expected;

	return 1 if $one eq $other;
	diag("files: $one\nasked: $other");
	return 0;
}

# An answer without the findings of a report: the SQL edition has no changes().
sub without_findings
{
	my ($answer) = @_;

	foreach my $row (@{ $answer->{body}{rows} // [] })
	{
		next unless $row->{report};
		if (ref $row->{report}) { delete $row->{report}{findings} }
		else { $row->{report} =~ s/"findings": ?\[.*?\], ?(?="markers")//s }
	}
	return $answer;
}

# All questions of the cases, answered and refused.
my %asked;
for my $name (sort keys %file)
{
	my @wrong;

	for my $case (@{ $file{$name}{cases} })
	{
		my %argument = arguments($name, $case);
		next if $case->{function} eq 'status';
		my ($files, $asked) = map { answer($web, $_, $case->{function}, %argument) } qw(files asked);

		$asked{ $case->{function} } = 1 if $files->{status} eq '200' && @{ $files->{body}{rows} };
				push @wrong, $case->{name} unless same($files, $asked);
	}
	is_deeply(\@wrong, [], "$name: a connection answers as files do");
}
# Questions about the present: the servers' own status, and statements.
is(answer($web, 'asked', 'status')->{status}, 200, 'a connection answers status() as files do');
$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM tacho.statements_history()') or die 'no statements';
my $now = $node->safe_psql('postgres', q{SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});
# the last record of the window may still be under way
wait_until('the same statements', sub {
	my ($files, $asked) = map { answer($web, $_, 'statements_history', until => $now, n => 'all') } qw(files asked);
	my ($took, $took_asked) = map { answer($web, $_, 'latency_history', until => $now, bucket => '10min') } qw(files asked);
	my @plans = map { my $function = $_; [ map { encoded(answer($web, $_, $function, until => $now, n => 'all')) } qw(files asked) ] } qw(plans plan_changes queries tables_history indexes_history errors_history);
	push @plans, [ map { encoded(answer($web, $_, 'plan', plan_id => '1')) } qw(files asked) ];

	return @{ $files->{body}{rows} } && encoded($files) eq encoded($asked) && encoded($took) eq encoded($took_asked) &&
	  !grep { $_->[0] ne $_->[1] } @plans;
});
$asked{$_} = 1 for qw(status statements_history latency_history plans plan_changes queries tables_history indexes_history errors_history plan);
is_deeply([ grep { !$asked{$_} } map { $_->{name} } @{ ($web->ask('functions'))[1]{functions} } ], [],
	'each function has a case of conformance/ with rows, or a question above');

# The SQL edition, as far as it records: one database per input.
sub fill
{
	my ($db, $input, $with) = @_;
	my %table = (line => $input, map { ($_ => $with->{$_}) } grep { /^(locks|markers)$/ } keys %$with);
	my $locks = $table{locks} ? ", locks => 'locks'" : '';

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE edition");
	for my $table (sort keys %table)
	{
		my ($columns) = split /\r?\n/, slurp_file("$data/inputs/$table{$table}");

		$node->safe_psql($db, "CREATE TABLE $table (" . join(', ', map { "\"$_\" text" } split /,/, $columns) . ");\n"
			  . "\\copy $table from '$data/inputs/$table{$table}' csv header");
	}
	$node->safe_psql($db, "SELECT tacho.import_sessions('line'$locks)");
	$node->safe_psql($db, "SELECT tacho.import_markers('markers')") if $table{markers};
	$node->safe_psql($db, "UPDATE tacho.setting SET node = '$file{$db}{node}', enabled = true");
}
my @filled = qw(basic compare dimensions locks storm times);
my $edition = web($node->basedir, '--tape', "files=$tape", map { conninfo($_, $_) } @filled);
$node->psql('edition', "\\i $root/sql/tacho.sql", stdout => \my $installed);
for my $name (@filled)
{
	my @wrong;

	fill($name, $file{$name}{input}, $file{$name}{with} // {});
	for my $case (grep { !$_->{needs} && $_->{function} ne 'status' } @{ $file{$name}{cases} })
	{
		my %argument = arguments($name, $case);
		my ($files, $edition) = map { without_findings(answer($edition, $_, $case->{function}, %argument)) } 'files', $name;

		push @wrong, $case->{name} unless same($files, $edition);
	}
	is_deeply(\@wrong, [], "$name: the SQL edition answers as files do");
}
my $history = answer($edition, 'storm', 'server_history', since => '2026-01-01T00:00:00Z', until => '2026-01-02T00:00:00Z');
is_deeply($history->{body}{rows}, [], 'the SQL edition has no rows of the server');
is($history->{body}{notices}[0]{message}, 'the SQL edition does not record the server and its host', 'a notice says that the edition does not record the server');
$edition->end;

# A question that cannot be answered gets the reason.
is_deeply({ map { $_->{name} => $_->{state} } @{ ($web->ask('servers'))[1]{servers} } },
	{ asked => 'recorded', edition => 'recorded', files => 'recorded', nobody => 'refused', nothing => 'empty',
		own => 'recorded', slow => 'recorded' }, 'servers have their states');
my $none = answer($web, 'nobody', 'aas');
is($none->{status}, 403, 'a role without rights is refused');
is($none->{body}{hint}, 'Run: GRANT pg_read_all_stats TO nobody;', 'the message names the right that helps');
$none = answer($web, 'nothing', 'aas');
is_deeply([ $none->{status}, $none->{body}{sqlstate} ], [ 404, '42704' ], 'a database without tacho is refused');
is($none->{body}{message}, 'tacho is not installed in the database', 'the message says that tacho is missing');
like($none->{body}{hint}, qr/CREATE EXTENSION tacho/, 'the message names the step that helps');
$none = answer($web, 'slow', 'aas');
is_deeply([ $none->{status}, $none->{body}{message}, $none->{body}{sqlstate} ],
	[ 404, 'function aas() does not exist on the server', '42883' ], 'a function that a server lacks is an error');
my %storm = (node => $file{storm}{node}, since => '2026-01-01T00:00:00Z', until => '2026-01-03T00:00:00Z');
cmp_ok(scalar @{ answer($web, 'asked', 'samples', %storm)->{body}{rows} }, '>', 0, 'the history has sessions of others');
is_deeply(answer($web, 'own', 'samples', %storm)->{body}{rows}, [], 'a role that may see its own sessions does not see others');
$node->safe_psql('postgres', 'GRANT pg_read_all_stats TO nobody');
is(answer($web, 'nobody', 'aas', %storm)->{status}, 200, 'a new right counts for the next question');

# Notices and warnings beside an answer.
my $said = answer($web, 'slow', 'status', node => 0);
is_deeply($said->{body}{rows}, [ { metric => 'slept', value => '0' } ], 'a question is answered');
is_deeply($said->{body}{notices}, [
	{ severity => 'NOTICE', message => 'about to sleep', detail => 'It is late.', hint => 'Wait.', sqlstate => '00000' },
	{ severity => 'WARNING', message => 'somewhat damaged', sqlstate => '01004' } ], 'the answer has notices and warnings');
my $much = answer($web, 'slow', 'markers');
is_deeply([ $much->{status}, $much->{body}{sqlstate} ], [ 503, '53200' ], 'an answer that is too long is an error');

# Closing a request cancels the question on the server; the connection stays usable.
my $sessions = q{SELECT count(*) FROM pg_stat_activity WHERE datname = 'slow' AND application_name = 'tacho web'};
my $socket = $web->send('status', server => 'slow', node => 600);
$node->poll_query_until('postgres', "$sessions AND state = 'active' AND wait_event = 'PgSleep'", '1') or die 'no question';
close $socket;
ok($node->poll_query_until('postgres', "$sessions AND state = 'active'", '0'), 'a question that the client leaves ends on the server');
is(answer($web, 'slow', 'status', node => 0)->{status}, 200, 'other questions are answered');
cmp_ok($node->safe_psql('postgres', $sessions), '<=', 4, 'the server has few connections');

# Live: ticks come through a connection.
my ($live, $text) = ($web->send('live', server => 'asked'), '');
while (my $line = <$live>)
{
	$text .= $line;
	last if $line =~ /^event: tick/;
}
like($text, qr/"state": "recording"/, 'live events have the state of the server');
like($text, qr/^event: tick/m, 'live events have the ticks');
close $live;

# A server goes away and comes back.
$node->stop('fast');
my $gone = answer($web, 'asked', 'aas', %storm);
is($gone->{status}, 502, 'a server that is gone fails');
like($gone->{body}{sqlstate}, qr/^08/, 'the SQLSTATE belongs to a connection');
my ($state) = grep { $_->{name} eq 'asked' } @{ ($web->ask('servers'))[1]{servers} };
is($state->{state}, 'unreachable', 'the list calls the server unreachable');
is(answer($web, 'files', 'aas', %storm)->{status}, 200, 'files of the server answer');
$node->start;
wait_until('an answer', sub { answer($web, 'asked', 'aas', %storm)->{status} == 200 });
ok(same(answer($web, 'files', 'aas', %storm), answer($web, 'asked', 'aas', %storm)), 'the server that is back answers');
$web->end;

# Users who may not read texts get none.
$web = web($node->basedir, '--tape', "files=$tape", conninfo('asked', 'postgres'), '--hide-texts');
for my $question ([ 'top', dimension => 'query_id' ], ['report'], ['samples'])
{
	my ($function, %argument) = @$question;

	ok(same(map { answer($web, $_, $function, %storm, %argument) } qw(files asked)), "$function answers alike without texts");
}
is(answer($web, 'asked', 'summary', %storm)->{status}, 403, 'summary, which mixes texts with all else, is refused');
is(answer($web, 'asked', 'plan', plan_id => 1)->{status}, 403, 'the tree of a plan, which has names and conditions, is refused');
$web->end;

# A password in an argument is an error, with a hint at the other ways.
my ($out, $error) = run_command([ web_program(), '--dsn', 'host=db password=s3cret', '--listen', '127.0.0.1:0' ]);
like($error, qr/^error: connection string contains "password": .*\nhint: .*--password-command/, 'a password in a connection string is refused');

$node->stop;
done_testing();
