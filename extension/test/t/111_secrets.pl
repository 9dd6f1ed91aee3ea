# A client's message with a password is kept without the password, whichever process
# reports it and wherever it is shown.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TachoStatus qw(wait_until_written);
use TachoTest qw(tacho_cluster tacho_session);
use Test::More;

my $node = tacho_cluster('secrets',
	interval => '20ms',
	init => { allows_streaming => 1 },
	conf => q{
max_parallel_workers_per_gather = 2
max_parallel_maintenance_workers = 2
maintenance_work_mem = 128MB
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(q{
CREATE ROLE app;
CREATE TABLE big (a int) WITH (fillfactor = 10, parallel_workers = 2);
INSERT INTO big SELECT generate_series(1, 100000);
ANALYZE big;
});

# The text of samples of a kind of process.
sub text_of
{
	my ($type, $pattern) = @_;
	my $rows = "FROM tacho.samples(n => 1000, scope => 'all', backend_type => '$type') WHERE query_id IS NULL AND query_text ~ '$pattern'";

	$node->poll_query_until('postgres', "SELECT count(*) > 0 $rows");
	return sql("SELECT DISTINCT query_text $rows");
}

sub finish
{
	my ($session, $app) = @_;

	sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$app'");
	return $session->finish;
}

my $session = tacho_session($node, app => 'build');
# from 18 on workers report the query identifier of their leader, if there is one
$session->send('SET compute_query_id = off') if $node->pg_version >= 18;
$session->send(q{ALTER ROLE app PASSWORD 's3cret-1' \; CREATE INDEX built ON big (md5(repeat('x', 1000000 + a)))});
is(text_of('parallel worker', 'built'),
	'ALTER ROLE app PASSWORD $1 ; CREATE INDEX built ON big (md5(repeat($2, $3 + a)));',
	'a parallel worker shows the text of the client of its leader');
finish($session, 'build');

$session = tacho_session($node, app => 'no id');
# workers report the query identifier of the first statement that has one
$session->send(q{SET compute_query_id = off});
$session->send(q{SELECT count(*), 's3cret-2' FROM big WHERE md5(repeat('x', 1000000 + a)) > ''});
is(text_of('parallel worker', 'count'),
	'SELECT count(*), $1 FROM big WHERE md5(repeat($2, $3 + a)) > $4;', 'the text is shown without a query identifier');
finish($session, 'no id');

my ($in, $out) = ('', '');
my $walsender = IPC::Run::start(
	[ 'psql', '-X', '-d', $node->connstr('postgres') . " replication=database options='-c compute_query_id=off'",
		'-c', q{SELECT pg_sleep(1000), 's3cret-3'} ], '<', \$in, '>', \$out, '2>&1');
is(text_of('walsender', 'pg_sleep'), 'SELECT pg_sleep($1), $2', 'a walsender shows the text of its SQL');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender'});
$walsender->finish;

my $receiver = IPC::Run::start(
	[ 'pg_receivewal', '-D', PostgreSQL::Test::Utils::tempdir(), '-d', $node->connstr('postgres') ],
	'<', \$in, '>', \$out, '2>&1');
like(text_of('walsender', 'REPLICATION'), qr{^START_REPLICATION [0-9A-F]+/[0-9A-F]+ TIMELINE 1$},
	'a replication command is kept unchanged');
$receiver->signal('TERM');
$receiver->finish;

# the text of a query inside of a command has no literals of other statements
for my $command ('EXPLAIN', 'EXPLAIN CREATE TABLE no AS', 'CREATE TEMP TABLE of_neighbour AS', 'DECLARE c CURSOR WITH HOLD FOR')
{
	tacho_session($node)->run(qq{SET tacho.statements_track = 'all'})
	  ->run(qq{$command SELECT 1 AS neighbour, 'x' \\; SELECT 's3cret-14' \\; COMMENT ON TABLE big IS 's3cret-15'})
	  ->run(qq{$command SELECT relname AS neighbour FROM pg_class \\; SELECT 's3cret-16'})->finish;
}
my @neighbours = split /\n/, sql(q{SELECT DISTINCT query FROM tacho.statements WHERE query ~ 'neighbour' AND query !~ 'tacho'});
is(scalar(grep { /s3cret/ } @neighbours), 0, 'a query inside of a command is kept with the text of that command');

wait_until_written($node);
is(system("grep -rqa s3cret '" . $node->data_dir . "/tacho'"), 256, 'no password is in the history');

# statistics of statements
$node->psql('postgres', $_) for
  q{ALTER ROLE app PASSWORD 's3cret-4' VALID UNTIL '2030-01-01'},
  q{ALTER ROLE nobody PASSWORD 's3cret-5'},
  q{DO $$ BEGIN EXECUTE 'ALTER ROLE app PASSWORD ''s3cret-6'''; END $$},
  q{CREATE FOREIGN DATA WRAPPER w},
  q{CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (host 's3cret-7')},
  q{CREATE USER MAPPING FOR app SERVER s OPTIONS (user 'u', "key" 's3cret-8')},
  q{SET app.PassWord = 's3cret-9'},
  q{CREATE TABLE copied AS SELECT 's3cret-10' AS password},
  q{CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere user=s3cret-11' PUBLICATION p},
  q{COPY copied FROM PROGRAM 'echo password=s3cret-12'},
  q{DO $$ BEGIN PERFORM 'postgresql://u:s3cret-13@nowhere/d'; END $$},
  q{CREATE PROCEDURE make_user(text, text) LANGUAGE sql AS 'SELECT 1'},
  q{CALL make_user('bob', 's3cret-17')},
  q{CALL make_user('bob', 's3cret-18' || missing)},
  q{BEGIN; PREPARE TRANSACTION 's3cret-19'},
  q{SET work_mem = '1MB'; PREPARE p AS SELECT 1; SET search_path = 'public'};
my $utility = q{FROM tacho.statements WHERE query ~ '\m(app|nobody|DO|SERVER|CONNECTION|PROGRAM|copied)\M' AND query !~ 'big|tacho|CREATE ROLE'};
is(sql(qq{SELECT query, calls, errors $utility ORDER BY query COLLATE "C"}), join("\n",
		'ALTER ROLE app PASSWORD $1|1|0',
		'ALTER ROLE app PASSWORD $1 VALID UNTIL $2|1|0',
		'ALTER ROLE nobody PASSWORD $1|0|1',
		'COPY copied FROM PROGRAM $1|1|0',
		'CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (host $1)|1|0',
		'CREATE SUBSCRIPTION s CONNECTION $1 PUBLICATION p|0|1',
		'CREATE TABLE copied AS SELECT $1 AS password|1|0',
		'CREATE USER MAPPING FOR app SERVER s OPTIONS (user $1, "key" $2)|1|0',
		'DO $1|1|0',
		'DO $1|1|0',
		'SET app.PassWord = $1|1|0'), 'statistics have no secret of utility statements')
  if $node->pg_version < 18;
is(sql(q{SELECT count(*) FROM tacho.statements WHERE query ~ 's3cret' AND query !~ 'tacho'}), '0', 'statistics have no other secret');
is(sql(q{SELECT query FROM tacho.statements WHERE query ~ '^(SET work_mem|CALL|PREPARE TR)' ORDER BY query COLLATE "C"}),
	join("\n", 'CALL make_user($1, $2)', 'PREPARE TRANSACTION $1', 'SET work_mem = $1'), 'statistics have no literal of utility statements');
$node->stop('fast');
is(system("grep -rqa s3cret '" . $node->data_dir . "/pg_stat'"), 256, 'saved statistics have no secret');

done_testing();
