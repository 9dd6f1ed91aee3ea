# Stripes under contention. If a writer is stopped while it holds the lock of a stripe,
# no other session waits. Every execution is counted as long as other stripes are free;
# after that, executions are counted as skipped.

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster pgbench_script run_pgbench);
use TachoTest qw(tacho_session);
use Time::HiRes 'usleep';

my $extension = "$FindBin::RealBin/../..";
my $library = PostgreSQL::Test::Utils::tempdir() . '/stripes.so';

sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -O1 -g -fPIC -shared -Wl,-Bsymbolic -o $library"
	  . " -I '" . config('--includedir-server') . "' -I '$extension/src' '$extension/test/unit/stripes.c'") == 0
  or die 'could not build the library that holds stripes';

my $node = statements_cluster('stripes', conf => "max_connections = 40\ntacho.statements_max = 300\n");

sub sql { return $node->safe_psql('postgres', $_[0]) }

sql("create function stripes_lock(bigint, int) returns int strict language c as '$library'");
sql("create function stripes_unlock(bigint) returns void strict language c as '$library'");
sql("create function stripes_hold(bigint, text, int) returns bool strict language c as '$library'");
sql("create function stripes_storm(bigint, text) returns bigint strict language c as '$library'");
sql("create function stripes_hot() returns void language c as '$library'");
sql("create function stripes_hand() returns bigint language c as '$library'");
sql("create function stripes_used(bigint) returns int strict language c as '$library'");

sub query_id { return sql("select queryid from tacho.statements where query ~ '^with $_[0] '") }
sub calls { return sql("select coalesce(sum(calls), 0) from tacho.statements where query ~ '^with $_[0] '") }
sub info { return sql("select $_[0] from tacho.statements_info") }

# Several clients execute the statement of that name.
sub load
{
	my ($name, @options) = @_;
	my $script = pgbench_script($node, $name . int(rand(1e9)), "with $name as (select 1) select from $name;\n");

	return run_pgbench($node, $script, '-j', 2, @options);
}

# one writer stopped: the others get stripes of their own
is(load('hot', '-c', 1, '-t', 100), 100, 'a statement without contention is counted');
my $hot = query_id('hot');
is(sql("select stripes_lock($hot, 1)"), 1, 'the statement has one stripe, whose lock is held');
is(load('hot', '-c', 16, '-t', 250), 4000, '16 clients execute the statement while the lock is held');
is(info('promotions || $$ $$ || skipped'), '1 0', 'the statement got more stripes once, and no execution was skipped');
is(calls('hot'), 4100, 'a reader counts each execution while the lock is held');
cmp_ok(sql("select stripes_used($hot)"), '>=', 4, 'executions are counted on several stripes');
sql("select stripes_unlock($hot)");
load('hot', '-c', 16, '-t', 250);
is(calls('hot'), 8100, 'executions are counted once the first stripe is free');
is(sql(q{select calls = rows and calls = (select sum(b) from unnest(histogram) b)
	and min_exec_time > 0 and max_exec_time <= total_exec_time from tacho.statements where query ~ '^with hot '}),
	't', 'the other counters agree with the calls');

# no stripe is left: executions are skipped and reported, and no session waits
is(sql("select stripes_lock($hot, 8)"), 8, 'locks of all eight stripes are held');
load('hot', '-c', 4, '-t', 25);
is(info('skipped'), 100, 'an execution without a free stripe is counted as skipped');
is(calls('hot'), 8100, 'a skipped execution is counted nowhere else');
sql("select stripes_unlock($hot)");

# as on many processors: six sessions lock random stripes all the time, while clients
# execute
my $ceased = PostgreSQL::Test::Utils::tempdir() . '/ceased';
my $skipped = info('skipped');
my $counted = calls('hot');
my @storm = map { tacho_session($node) } 1 .. 6;
$_->send("select 'had: ' || stripes_storm($hot, '$ceased')") for @storm;
$node->poll_query_until('postgres',
	q{select count(*) = 6 from pg_stat_activity where state = 'active' and query like 'select ''had: %'})
	or die 'the storm has not begun';
load('hot', '-c', 8, '-t', 500);
append_to_file($ceased, 'now');
$_->finish for @storm;
is(scalar(grep { $_->{out} =~ /had: [1-9]/ } @storm), 6, 'each of six statements has held stripes');
is(calls('hot') - $counted + info('skipped') - $skipped, 4000, 'each execution of the six is counted or skipped');
is(sql(q{select calls = rows and calls = (select sum(b) from unnest(histogram) b) from tacho.statements
	where query ~ '^with hot '}), 't', 'each execution is counted as a whole');

# extremes, and all counters of the entry, over all stripes
sql("select tacho.statements_reset(0, 0, $hot, true)");
is(sql(q{select min_exec_time + max_exec_time from tacho.statements where query ~ '^with hot '}), 0,
	'a reset of extremes resets the extremes of all stripes');
my $kept = calls('hot');
$node->restart;
is(calls('hot'), $kept, 'a restart keeps what all stripes have counted');
load('hot', '-c', 1, '-t', 100);
is(calls('hot'), $kept + 100, 'statements go on counting after the restart');

# more contended statements than there are groups of stripes, all groups being free
sql('select tacho.statements_reset()');
my $before = info('skipped');
my $promotions = info('promotions');
my $each = join ';', map { "with many$_ as (select 1) select from many$_" } 1 .. 65;
sql($each);
my @many = split /\n/, query_id('many[0-9]+');
is(scalar(@many), 65, '65 statements contend');
sql(join ';', map { "select stripes_lock($_, 1)" } @many);
sql($each);
is(info('promotions') - $promotions, 64, '64 statements have more stripes');
is(info('skipped') - $before, 1, 'executions of the 65th statement are skipped without waiting');
sql(join ';', map { "select stripes_unlock($_)" } @many);
is(calls('many[0-9]+'), 65 + 64, 'executions of all other statements are counted');

# eviction takes the counters of all stripes along
my $all = q{select sum(calls) + (select skipped from tacho.statements_info) from tacho.statements};
sql('select tacho.statements_reset()');
load('gone', '-c', 1, '-t', 10);
my $gone = query_id('gone');
sql("select stripes_lock($gone, 1)");
load('gone', '-c', 8, '-t', 100);
cmp_ok(sql("select stripes_used($gone)"), '>', 2, 'a group of stripes that a reset gave back is used again');
sql("select stripes_unlock($gone)");
my $sum = sql($all);
sql(join ';', map { "with other$_ as (select 1) select from other$_" } 1 .. 3000);
is(sql("select count(*) from tacho.statements where queryid = $gone"), 0, 'a statement with eight stripes was evicted');
is(sql($all), $sum + 1 + 3000 + 1, 'eviction of stripes loses nothing: entries + evicted + skipped = executed');

# a statement fails while the lock of its partition is held. Its client gets the error
# at once, and so does a client that fails outside of statements. The entry is found
# without the lock.
sql('select tacho.statements_reset()');
sql(q{create or replace function fails() returns int language plpgsql as $$ begin raise 'failed'; end $$});

sub fails_meanwhile
{
	my ($statement, $id, $name) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$name";
	my $holder = tacho_session($node);
	my ($code, $out, $error);

	$holder->send("select 'came: ' || stripes_hold($id, '$file', $PostgreSQL::Test::Utils::timeout_default)");
	usleep(10_000) until -e "$file.held";
	($code, $out, $error) = $node->psql('postgres', $statement);
	append_to_file($file, 'go on');
	$holder->finish;
	like($holder->{out}, qr/came: true/, "$name: the error comes while the lock is held");
	return $error;
}
$node->psql('postgres', 'select fails()');
$node->psql('postgres', 'selec');
like(fails_meanwhile('select fails()', sql(q{select queryid from tacho.statements where query = 'select fails()'}), 'failure'),
	qr/failed/, 'the client of a failed statement gets its error');
like(fails_meanwhile('selec', 0, 'syntax'), qr/syntax error/, 'a client gets an error outside of statements');
is(sql(q{select errors from tacho.statements where query = 'select fails()'}), 2, 'failed executions are counted');

# no room, and every entry is used all the time: one statement pays for at most one
# rotation of the clock, and is counted
my $most = 0;
$before = info('skipped');
my $hands = sql(join '', map { "select stripes_hot(); select 'from ' || stripes_hand();
	with new$_ as (select 1) select from new$_; select 'to ' || stripes_hand();" } 1 .. 330);
while ($hands =~ /from (\d+)\s+to (\d+)/g)
{
	$most = $2 - $1 if $2 - $1 > $most;
}
cmp_ok($most, '>=', 300, 'all entries were examined');
# each of the three statements may have needed room, because the others were evicted,
# too
cmp_ok($most, '<=', 3 * (300 + 64 + 2 * 16), 'one statement pays for at most one rotation of the clock');
is(info('skipped'), $before, 'every statement was counted');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process of the server died');
done_testing();
