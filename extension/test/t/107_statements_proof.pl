# Under churn, stops and long transactions: every execution is counted, hot statements
# stay, and a reader sees one moment of each entry.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster pgbench_script run_pgbench);

my $node = statements_cluster('proof', conf => q{
tacho.statements_max = 5000
max_connections = 60
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# all executions that the statistics know, without the reset at their begin
my $counted = q{select sum(calls) + (select skipped from tacho.statements_info) - 1 from tacho.statements};

# max + 1 statements in turns: all are counted
sql('select tacho.statements_reset()');
my $all = join "\n", map { "with q$_ as (select 1) select from q$_;" } 1 .. 5001;
sql($all) for 1 .. 2;
is(sql($counted), 10002, 'entries + evicted + skipped = executed, in turns through one more than fit');
is(sql(q{select count(*) from tacho.statements where query ~ '^with q(5000|5001) '}),
	2, 'the 5,001st statement has its entry beside the one before');
is(sql('select skipped from tacho.statements_info'), 0, 'nothing was skipped');

# hot statements stay while 100,000 others pass
my $churn = pgbench_script($node, 'churn', <<'END');
\set roll random(1, 100)
\set hot random(1, 1000)
\set cold random(1, 100000)
\if :roll <= 80
with hot:hot as (select 1) select from hot:hot;
\else
with cold:cold as (select 1) select from cold:cold;
\endif
END
my $hot = join "\n", map { "with hot$_ as (select 1) select from hot$_;" } 1 .. 1000;
sql('select tacho.statements_reset()');
sql($hot) for 1 .. 3;
my $since = sql('select clock_timestamp()');
my $executed = 3001 + run_pgbench($node, $churn, '-c', 32, '-j', 2, '-t', 750);
is(sql($counted), $executed, 'entries + evicted + skipped = executed, 32 clients');
is(sql("select count(*) from tacho.statements where query ~ '^with hot' and stats_since < '$since'"),
	1000, 'each of 1,000 hot statements has kept its entry');
cmp_ok(sql('select evicted from tacho.statements_info'), '>', 500, 'hundreds of statements were evicted meanwhile');

# ... also when they leave room for few others
$node->append_conf('postgresql.conf', 'tacho.statements_max = 1500');
$node->reload;
$node->poll_query_until('postgres', 'select max = 1500 from tacho.statements_info');
sql('select tacho.statements_reset()');
sql($hot) for 1 .. 3;
$since = sql('select clock_timestamp()');
is(3001 + run_pgbench($node, $churn, '-c', 8, '-j', 2, '-t', 1500), sql($counted), 'entries + evicted + skipped = executed');
cmp_ok(sql("select count(*) from tacho.statements where query ~ '^with hot' and stats_since < '$since'"),
	'>=', 950, 'hot statements stay although they leave few places for others');

# a limit far above the reserved number does not overflow
$node->append_conf('postgresql.conf', 'tacho.statements_max = 1073741823');
$node->reload;
ok($node->poll_query_until('postgres', 'select max = reserved from tacho.statements_info'), 'the limit is the reserved number');

# one transaction with thousands of statements: others see it meanwhile
sql('select tacho.statements_reset()');
my ($in, $out, $err) = ("begin;\n" . join("\n", map { "with long$_ as (select 1) select from long$_;" } 1 .. 5000) . "\n\\echo there\n", '', '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-h', $node->host, '-p', $node->port, 'postgres' ], '<', \$in, '>', \$out, '2>', \$err);
$session->pump until $out =~ /there/;
is(sql(q{select count(*), sum(calls) from tacho.statements where query ~ '^with long'}), '5000|5000',
	'a transaction of 5,000 statements is visible before its end');
$in .= "rollback;\n\\q\n";
$session->finish;
is(sql(q{select count(*), sum(calls) from tacho.statements where query ~ '^with long'}), '5000|5000', 'a transaction of 5,000 statements stays counted when it rolls back');

# writers stopped at any moment hold up neither others nor readers
sub pgbench_start
{
	my ($script, @options) = @_;
	return IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-f', $script, @options, 'postgres' ],
		'>', \my $o, '2>', \my $e);
}
my $one = pgbench_script($node, 'one', "SELECT 1 AS stopped;\n");
my $paced = pgbench_script($node, 'paced', "SELECT 1 AS stopped;\n\\sleep 5 ms\n");
my $consistent = pgbench_script($node, 'consistent', <<'END');
select case when bool_and(calls = rows and calls = (select sum(b) from unnest(histogram) b)) then 1 else 1 / (count(*) - count(*)) end
	from tacho.statements where query ~* '^select .1 as stopped$';
END
sql('select tacho.statements_reset(); select 1 as stopped');
my $load = pgbench_start($paced, '-c', 4, '-t', 500);
my $stops = 0;
$node->poll_query_until('postgres', q{select count(*) > 0 from pg_stat_activity where query ~ '^SELECT 1 AS stopped'});
for (1 .. 10)
{
	my $pid = sql(q{select max(pid) from pg_stat_activity where query ~ '^SELECT 1 AS stopped'});
	next unless $pid;
	kill 'STOP', $pid;
	sql(q{select calls from tacho.statements where query ~* '^select .1 as stopped$'});
	kill 'CONT', $pid;
	$stops++;
}
$load->finish;
cmp_ok($stops, '>', 0, 'the view answered while a writer was stopped');
is(sql(q{select calls + (select skipped from tacho.statements_info) from tacho.statements where query ~* '^select .1 as stopped$'}),
	2001, 'every execution is counted');

# a reader sees one moment of each entry
$load = pgbench_start($one, '-c', 8, '-t', 1000);
is(run_pgbench($node, $consistent, '-c', 1, '-t', 100), 100, 'calls, rows and histogram agree in every reading under load');
$load->finish;

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process of the server died');
done_testing();
