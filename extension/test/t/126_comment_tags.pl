# A sample has the tags of the statement that its session executes: from the comments at
# both ends of the text, however the statement came to be executed. Untagged samples have
# a row of their own. Nothing but the listed keys is kept.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use TachoTest qw(at server_ms tacho_cluster tacho_session wait_for_ticks);
use Test::More;

my $node = tacho_cluster('comment_tags');
my $parallel = $node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(<<'END');
CREATE TABLE small (id int);
INSERT INTO small SELECT generate_series(1, 20);
CREATE TABLE locked (id int);
CREATE FUNCTION inner_query() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT pg_sleep(1) /*controller=''inner''*/';
END $$;
CREATE PROCEDURE inner_call() LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT pg_sleep(1) /*controller=''inner''*/';
END $$;
CREATE PROCEDURE short_call() LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(0.3);
END $$;
CREATE TABLE indexed (id int) WITH (parallel_workers = 1);
INSERT INTO indexed SELECT generate_series(1, 20);
CREATE FUNCTION slow(int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_sleep(0.1); RETURN $1; END';
CREATE TABLE deferred (id int);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v int;
BEGIN
  SELECT 1 INTO v FROM pg_sleep(1) /*controller='inner'*/;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION at_commit();
VACUUM ANALYZE small;
END

my $sleep = 'SELECT pg_sleep(1)';
my $generic = 'SET plan_cache_mode = force_generic_plan';
my $long = 'x' x 70;

# name => [ script, tags ], a session each; '-' = none
my %cases = (
	'no comment' => [ $sleep, '-' ],
	sqlcommenter => [ "$sleep /*action='show',controller='orders'*/", 'controller=orders,action=show' ],
	'URL encoding' => [ "$sleep /*route='%2Forders%2F%3Aid%2C%25',controller='it\\'s'*/", 'controller=it\'s,route=/orders/:id%2C%25' ],
	Marginalia => [ "$sleep /*application:shop,controller:orders,action:index*/", 'application=shop,controller=orders,action=index' ],
	first => [ "/*application:shop,controller:orders*/ $sleep", 'application=shop,controller=orders' ],
	'both ends' => [ "/*job:mail*/ $sleep /*release='v1.2'*/", 'job=mail,release=v1.2' ],
	'beside a hint' => [ "/*+ SeqScan(small) */ /*job:mail*/ $sleep /* a remark */", 'job=mail' ],
	'a key that is not listed' => [ "$sleep /*traceparent='00-5bd6',controller='orders',secret='s'*/", 'controller=orders' ],
	'a remark' => [ "$sleep /* see: the manual, page 3 */", '-' ],
	'no tag in a string' => [ "SELECT pg_sleep(1), '/*controller:orders*/'", '-' ],
	'no tag in the middle' => [ "SELECT /*controller:orders*/ pg_sleep(1)", '-' ],
	'a quote without end' => [ "$sleep /*controller='orders*/", '-' ],
	'a comment in a comment' => [ "$sleep /* /*controller='orders'*/ */", '-' ],
	'a long value' => [ "$sleep /*controller='$long',action='show'*/", 'controller=' . 'x' x 64 . ',action=show' ],
	'a long character' => [ "$sleep /*controller='" . 'x' x 63 . "\xC3\xA4'*/", 'controller=' . 'x' x 63 ],
	'an encoded character' => [ "$sleep /*controller='caf%C3%A9'*/", "controller=caf\xC3\xA9" ],
	'invalid bytes' => [ "$sleep /*controller='%ff%fe',action='%00'*/", 'controller=%25ff%25fe,action=%2500' ],
	'control characters' => [ "$sleep /*controller='a%1b[1mb'*/", 'controller=a?[1mb' ],
	'an empty value' => [ "$sleep /*controller='',action='show'*/", 'action=show' ],
	'two statements' => [ "$sleep\\; SELECT 1 /*controller='orders'*/", 'controller=orders' ],
	'after a tagged one' => [ "SELECT 1 /*controller='before'*/; $sleep", '-' ],
	function => [ "SELECT inner_query() /*controller='outer'*/", 'controller=outer' ],
	'function without' => [ 'SELECT inner_query()', '-' ],
	procedure => [ "CALL inner_call() /*controller='outer'*/", 'controller=outer' ],
	'procedure without' => [ 'CALL inner_call()', '-' ],
	'a deferred trigger' => [ 'INSERT INTO deferred VALUES (1)', '-' ],
	'a deferred trigger of a tagged one' => [ "INSERT INTO deferred VALUES (2) /*controller='outer'*/", 'controller=outer' ],
	command => [ "DO \$\$ BEGIN PERFORM pg_sleep(1); END \$\$ /*job='mail'*/", 'job=mail' ],
	'EXECUTE' => [ "$generic; PREPARE q AS $sleep /*controller='prepared'*/; EXECUTE q", 'controller=prepared' ],
	'EXECUTE with own' => [ "PREPARE q AS $sleep /*controller='prepared'*/; EXECUTE q /*controller='own'*/", 'controller=own' ],
	'two of EXECUTE' => [ "PREPARE q AS SELECT 1 /*controller='a'*/; PREPARE r AS $sleep /*controller='b'*/; EXECUTE q\\; EXECUTE r", 'controller=b' ],
	FETCH => [ "BEGIN; DECLARE c CURSOR FOR $sleep /*controller='cursor'*/; FETCH c; COMMIT", 'controller=cursor' ],
	'idle in transaction' => [ "BEGIN; SELECT 1 /*controller='idle'*/; \\! sleep 1\nCOMMIT", 'controller=idle' ],
	'after an error' => [ "SELECT 1 / 0 /*controller='failed'*/; $sleep", '-' ],
	parallel => [ "SET $parallel = on; SELECT pg_sleep(2) FROM small WHERE id = 1 /*controller='parallel'*/", 'controller=parallel' ],
	'parallel CREATE INDEX' => [ "CREATE INDEX ON indexed (slow(id)) /*controller='index'*/", 'controller=index' ],
	'a lock in the analysis' => [ "SELECT 1 FROM locked /*controller='waits'*/", 'controller=waits' ],
	'a text of 1 MB' => [ "/*job:mail*/ SELECT pg_sleep(1), length('" . 'y' x 1_000_000 . "') /*controller='last'*/", 'job=mail' ],
	'a comment of 1 MB' => [ "$sleep /*" . "controller='a'," x 70_000 . "action='show'*/", '-' ],
);

my $begin = server_ms($node);
my $lock = tacho_session($node, app => 'locks')->run('BEGIN; LOCK locked');
my @running = map {
	my $session = tacho_session($node, app => "t:$_");
	$session->send($cases{$_}[0]);
	$session;
} sort keys %cases;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE application_name = 't:a lock in the analysis' AND wait_event_type = 'Lock'}) or die 'no session waits';
wait_for_ticks($node, 5, server_ms($node));
$lock->run('COMMIT');
$lock->finish;
$_->finish for @running;

# A case of a driver that prepares its statements by the protocol, and runs them in rounds.
sub prepared
{
	my ($name, $rounds, $script, $what) = @_;

	append_to_file($node->basedir . "/$name.sql", $script);
	local $ENV{PGAPPNAME} = "t:$name";
	$node->command_ok([ 'pgbench', '-n', '-M', 'prepared', '-t', $rounds, '-f', $node->basedir . "/$name.sql",
		'-h', $node->host, '-p', $node->port, 'postgres' ], "pgbench prepares $what");
	$cases{$name} = [ undef, "controller=$name" ];
	return;
}
prepared('driver', 3, "SELECT pg_sleep(0.5) /*controller='driver'*/;\n", 'a statement');
# COMMIT has the address of CALL in each round
prepared('called', 9, "BEGIN;\nCALL short_call() /*controller='called'*/;\nCOMMIT;\n", 'a command');

wait_for_ticks($node, 3, server_ms($node));

# the tags of the samples of an application, except in moments of setting up
sub tags
{
	my ($app) = @_;
	my $event = $app =~ /lock/ ? 'relation' : $app =~ /idle/ ? 'ClientRead' : 'PgSleep,ExecuteGather';

	return sql(qq{SELECT string_agg(coalesce(key, '-'), ' ' ORDER BY key) FROM tacho.top('tags', since => @{[at($begin)]},
		application => '"t:$app"', wait_event => '$event', scope => 'all', state => 'active,"idle in transaction"', n => null)});
}
is(tags($_), $cases{$_}[1], "tags: $_") for sort keys %cases;

# the dimension of one key, its untagged samples and its filters
sub load
{
	my ($dimension, $filters) = (@_, '');

	return sql(qq{SELECT string_agg(DISTINCT coalesce(key, 'none'), ' ' ORDER BY coalesce(key, 'none')) FROM tacho.top('$dimension',
		since => @{[at($begin)]}, n => null, wait_event => 'PgSleep', application => '!locks' $filters)});
}
is(load('tag:job'), 'mail none', 'a dimension of one key has its values and a row without');
is(load('tag:nothing'), 'none', 'a key that nothing has gives one row without');
is(load('tag:action', ", tags => 'controller=orders'"), 'index none show', 'a filter of a key');
is(load('tag:action', ", tags => 'controller=orders,action=show,action=index'"), 'index show', 'a filter of two keys wants both');
is(load('tag:action', ", tags => '!controller=orders'"), '%00 none show', 'a refused value keeps samples without the key');
is(load('tag:job', ", tags => 'job=(null)'"), 'none', 'a filter for samples without a key');
is(load('tag:controller', ", tags => '(null)'"), 'none', 'a filter for samples without tags');

# all samples are in some row: the sum by a tag is the load
my $window = "since => @{[at($begin)]}, until => @{[at(server_ms($node))]}";
is(sql(qq{SELECT sum(backend_seconds) = (SELECT sum(backend_seconds) FROM tacho.aas($window, bucket => '1 day'))
	FROM tacho.top('tag:controller', $window, n => null)}), 't', 'no sample is dropped');

# nothing else of a comment is in the files
my $directory = $node->data_dir . '/tacho';
my $files = join '', map { slurp_file($_) } glob "$directory/*/* $directory/*.open $directory/*.tape";
like($files, qr/controller=orders/, 'the tags are recorded');
unlike($files, qr/secret=|00-5bd6/, 'nothing that is not listed is recorded');

# the setting
my ($failed, undef, $message) = $node->psql('postgres', "ALTER SYSTEM SET tacho.comment_tags = 'a=b'");
like($message, qr/must be a list of keys.*A key has only letters/s, 'a list that is none is refused');
($failed, undef, $message) = $node->psql('postgres', "ALTER SYSTEM SET tacho.comment_tags = '" . join(',', 1 .. 17) . "'");
like($message, qr/It has at most 16 keys/, 'a list of 17 keys is refused');
for (['job, secret', 'job=mail,secret=s'], ['', '-'])
{
	my ($keys, $tags) = @$_;

	sql("ALTER SYSTEM SET tacho.comment_tags = '$keys'");
	sql('SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT current_setting('tacho.comment_tags') = '$keys'");
	$begin = server_ms($node);
	my $session = tacho_session($node, app => "t:set $keys");
	$session->send("$sleep /*controller:orders,secret:s,job:mail*/");
	$session->finish;
	wait_for_ticks($node, 3, server_ms($node));
	is(tags("set $keys"), $tags, "tags with the setting \"$keys\"");
}

$node->stop;
done_testing();
