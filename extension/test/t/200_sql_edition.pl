# The SQL edition and the extension in one database: each refuses to be installed beside
# the other, and names it. The history of the edition can be moved: the same questions
# have the same answers, in SQL and on the command line.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $root = "$FindBin::RealBin/../../..";
my $node = tacho_cluster('edition', start => 0, conf => qq{
shared_preload_libraries = ''
max_prepared_transactions = 2
compute_query_id = on
tacho.retention_age = 0
});
my $files = $node->basedir . '/files';
my $window = "'2026-01-01', '2026-01-03'";
$node->start;

# Runs a script of the edition; returns its output and error.
sub script
{
	my ($db, $name, @variables) = @_;
	my ($stdout, $stderr);

	$node->psql($db, "\\i $root/sql/$name.sql", stdout => \$stdout, stderr => \$stderr,
		extra_params => [ map { ('-v', $_) } @variables ]);
	return ($stdout, join ' ', $stderr =~ /(?:ERROR|DETAIL|HINT):  (.*)$/mg);
}

# CSV files of conformance/inputs as history of the edition.
sub fill
{
	my ($db, $input, $with) = @_;
	my %table = (line => $input, map { ($_ => $with->{$_}) } grep { /^(locks|markers)$/ } keys %$with);
	my $locks = $table{locks} ? ", locks => 'locks'" : '';

	for my $table (sort keys %table)
	{
		my $file = "$root/conformance/inputs/$table{$table}";
		my ($columns) = split /\r?\n/, slurp_file($file);

		$node->safe_psql($db, "CREATE TABLE $table (" . join(', ', map { "\"$_\" text" } split /,/, $columns) . ");\n"
			  . "\\copy $table from '$file' csv header");
	}
	$node->safe_psql($db, "SELECT tacho.import_sessions('line'$locks)");
	$node->safe_psql($db, "SELECT tacho.import_markers('markers')") if $table{markers};
}

# Exports the history of a database; the command that imports it.
sub export
{
	my ($db) = @_;
	my $directory = "$files/$db";

	mkdir $directory or die "$directory: $!";
	my ($said, $error) = script($db, 'export', "directory=$directory");
	is($error, '', "$db: the history is exported");
	my ($command) = $said =~ /^tacho (import .*) --tape DIR$/m;
	return split / /, $command;
}

sub query
{
	my ($tape, $case) = @_;
	my %argument = %{ $case->{arguments} };

	delete $argument{node};
	my ($out, $error) = run_command([ $ENV{TACHO_PROGRAM}, 'query', $case->{function}, "--tape=$tape", '--format=copy',
		'--node=all', map { '--' . tr/_/-/r . "=$argument{$_}" } grep { defined $argument{$_} } sort keys %argument ]);
	# Findings need facts of locks that an import of sessions does not have.
	$out =~ s/"findings": \[.*?\], (?="markers")//s;
	return "$out\n$error";
}

mkdir $files or die "$files: $!";
$node->safe_psql('postgres', 'CREATE DATABASE edition');
is((script('edition', 'tacho'))[1], '', 'the edition is installed');

# All questions of conformance/ after a move, except of clock.csv: its clock goes back,
# which the edition never records.
for my $file (sort glob "$root/conformance/cases/*.json")
{
	my $cases = JSON::PP->new->decode(slurp_file($file));
	my $name = $file =~ s{.*/(.*)\.json$}{$1}r;
	my ($moved, $direct) = map { "$files/$name.$_" } 'moved', 'direct';
	next if $cases->{input} eq 'clock.csv';

	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE edition");
	fill($name, $cases->{input}, $cases->{with});
	# single ticks, or packs
	$node->safe_psql($name, 'SELECT tacho._pack(9223372036854775807)') if length($name) % 2;
	system_or_bail($ENV{TACHO_PROGRAM}, export($name), '--tape', $moved);
	my %with = %{ $cases->{with} // {} };
	system_or_bail($ENV{TACHO_PROGRAM}, 'import', 'sessions', "$root/conformance/inputs/$cases->{input}",
		(map { "--with=$_=$root/conformance/inputs/$with{$_}" } grep { /locks|markers/ } sort keys %with), '--tape', $direct);
	my @wrong = grep { query($moved, $_) ne query($direct, $_) }
	  grep { !$_->{needs} && !$_->{error} } @{ $cases->{cases} };
	is_deeply([ map { $_->{name} } @wrong ], [], "$name: answers alike after the move");
}

# Sessions of this server, and counters as pg_stat_statements would have had them
fill('edition', 'storm.csv', {});
$node->safe_psql('edition', q{
	UPDATE tacho.setting SET enabled = true;
	INSERT INTO tacho.statement (query_id, database, username, toplevel, user_oid, database_oid) VALUES (7, 'edition', 'tester', true, 10, 5);
	INSERT INTO tacho.statement_counters SELECT id, 1767225661000, 60000, 3, 9, 4200, 100, 0, 1, 2, 3, 4, 5, 6, 7 FROM tacho.statement;
	INSERT INTO tacho.text (query_id, database, username, body) VALUES (7, 'edition', 'tester', E'select "7",\n 8');
	CREATE TABLE stock (id int);
	BEGIN;
	CREATE TABLE paid (id int PRIMARY KEY);
	INSERT INTO paid VALUES (1);
	PREPARE TRANSACTION 'paid 4711'});
my $holder = tacho_session($node, db => 'edition', app => 'holder');
$holder->run('BEGIN')->run('LOCK TABLE stock');
my @waiter = map { tacho_session($node, db => 'edition', app => $_) } 'waiter', 'buyer';
$waiter[0]->send('SELECT FROM stock');
$waiter[1]->send('CREATE TABLE paid (id int)');
$node->poll_query_until('edition', 'SELECT count(*) = 2 FROM pg_locks WHERE NOT granted');
for my $tick (1 .. 3)
{
	$node->poll_query_until('edition', q{SELECT tacho.take_sample() IN ('ok', 'late')});
}
$node->safe_psql('edition', q{ROLLBACK PREPARED 'paid 4711'});
$holder->finish;
$_->finish for @waiter;
# the extension must begin later
my $end = $node->safe_psql('edition', q{SELECT max(sample_time) + interval '1 second' FROM tacho.samples(scope => 'all')});
$node->poll_query_until('edition', "SELECT now() >= '$end'");
my $begin = $node->safe_psql('edition', qq{SELECT date_trunc('minute', timestamptz '$end' - interval '1 hour')});
my %question = (
	'top wait_event' => "SELECT key, avg_aas, peak_aas, peak_sessions, pct, ticks_observed FROM tacho.top('wait_event', $window)",
	'top query_id' => "SELECT key, by_key, query_text, backend_seconds FROM tacho.top('query_id', $window, by => 'wait_event')",
	timeline => "SELECT * FROM tacho.timeline($window, bucket => '10 minutes', by => 'application')",
	'top of real ticks' => "SELECT key, backend_seconds, ticks_observed FROM tacho.top('application', '$begin', '$end', scope => 'all')",
	samples => q{SELECT sample_time, tick, pid, backend_start, backend_type, category, database, username, application, client_addr,
		state, wait_event_type, wait_event, cpu, query_id, xmin_age, xid_age, blocked_by, weight_ms }
	  . "FROM tacho.samples('$begin', '$end', n => NULL, scope => 'all')",
	blocking => 'SELECT kind, pid, prepared_gid, application, blocked_seconds, waiters, locktype, object, lock_relation, mode, mode_held '
	  . "FROM tacho.blocking(since => '$begin', until => '$end')",
	statements => 'SELECT query_id, query_text, sum(calls), sum(rows), sum(shared_blks_read) '
	  . "FROM tacho.statements_history(since => '2025-12-31', until => '2026-01-03') WHERE query_id = 7 GROUP BY 1, 2",
	'statements of a minute' => 'SELECT sum(calls), sum(rows) '
	  . "FROM tacho.statements_history(since => '2026-01-01 00:00+00', until => '2026-01-01 00:01+00') WHERE query_id = 7");
my $starts = qq{SELECT extract(epoch FROM u) FROM tacho.samples('$begin', '$end', n => NULL, scope => 'all'),
	unnest(ARRAY[query_start, xact_start, state_change]) WITH ORDINALITY x (u, n) WHERE u IS NOT NULL ORDER BY tick, pid, n};
my @starts = split /\n/, $node->safe_psql('edition', $starts);
my %before = map { $_ => $node->safe_psql('edition', $question{$_}) } keys %question;
like($before{samples}, qr/\|waiter\|.*\|Lock\|relation\|/, 'a session waits for a lock');
like($before{blocking}, qr/paid 4711/, 'a session waits for a prepared transaction');
isnt($before{$_}, '', "$_: the server gives an answer") for sort keys %question;

my ($code, $stdout, $stderr) = $node->psql('edition', 'CREATE EXTENSION tacho');
is(join(' ', $stderr =~ /(?:ERROR|DETAIL|HINT):  (.*)$/mg),
	'the SQL edition of tacho is installed in this database It has schema "tacho" and functions of the same names. '
	  . q{To keep its history, export it with sql/export.sql, call tacho.uninstall('yes'), create the extension again }
	  . 'and give the files to "tacho import". Or create the extension in another database.',
	'the extension names the edition and the way to move');

# Moves the history in this way
my @import = export('edition');
$node->safe_psql('edition', q{SELECT tacho.uninstall('yes')});
$node->stop;
system_or_bail($ENV{TACHO_PROGRAM}, @import, '--tape', $node->data_dir . '/tacho');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tacho'");
$node->start;
$node->safe_psql('edition', 'CREATE EXTENSION tacho');
# from then on the server knows its nodes
$node->poll_query_until('edition', "SELECT ticks_observed > 0 FROM tacho.aas(since => '$end', bucket => '1 day')");
is($node->safe_psql('edition', $question{$_}), $before{$_}, "$_: the answer is the same after the move") for sort keys %question;
# files store them in whole seconds
my @kept = split /\n/, $node->safe_psql('edition', $starts);
is_deeply([ grep { abs($starts[$_] - $kept[$_]) >= 2 } 0 .. $#starts ], [], 'starts are the same after the move');
cmp_ok(scalar(@kept), '==', scalar(@starts), 'all starts are there after the move');
my ($id) = grep { /^[0-9a-f]{16}$/ } @import;
like($node->safe_psql('edition', "SELECT string_agg(key, ' ') FROM tacho.top('wait_event', $window, node => '$id')"),
	qr/^\S/, 'the moved history is a node of its own');

is((script('edition', 'tacho'))[1],
	'the extension tacho is installed in this database It has the functions of the SQL edition, and records more. '
	  . 'Use it; or install the SQL edition into another database; or drop extension tacho, which leaves its history in files.',
	'the edition names the extension');
is((script('edition', 'upgrade'))[1], 'tacho is not installed here Run sql/tacho.sql.', 'the upgrade of the edition says that it is not installed');
$node->safe_psql('edition', 'DROP EXTENSION tacho');
is((script('edition', 'tacho'))[1], '', 'the edition can be installed after DROP EXTENSION');

$node->stop;
done_testing();
