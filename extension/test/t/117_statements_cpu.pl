# Compares CPU time with the kernel's count for the backend. Some executions take a
# thousand times as long as the others. Frequent short executions are sampled; an
# execution that turns out long counts by itself.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('cpu');
my $session = $node->background_psql('postgres');
$session->set_query_timer_restart;
my $pid = $session->query_safe('select pg_backend_pid()');

sub sql { return $node->safe_psql('postgres', $_[0]) }

# CPU time of the backend so far, in ms
sub by_kernel { return (split ' ', slurp_file("/proc/$pid/schedstat"))[0] / 1e6 }

# Executes a statement of that name with each of the numbers, and notes its CPU time by
# the kernel.
my %kernel;
sub execute
{
	my ($name, $expression, @numbers) = @_;
	my $script = join '', map { sprintf("with $name as (select $expression as n) select n from $name;\n", $_) } @numbers;

	my $file = $node->basedir . "/$name.psql";

	append_to_file($file, $script);
	my $before = by_kernel();
	$session->query_safe("\\o /dev/null\n\\i $file\n\\o");
	$kernel{$name} = by_kernel() - $before;
	return;
}

# a counter of the statement of that name
sub of { return sql("select $_[1] from tacho.statements where query ~ '^with $_[0] '") }

# one execution in twenty is long, so the statement counts as short by its mean. The
# kernel's count includes the reading and planning of the statement. A statement whose
# executions do nothing, executed just before, shows how much that is: it is more if other
# processes take the caches. Long executions are so long that it is a tenth of their time.
my $long = 600000;
my @names = map { "skewed_$_" } 'a' .. 'h';
my $sum = '(select sum(i) from generate_series(1, %s) i)';
execute('first', $sum, 1);
for (@names)
{
	execute("idle_$_", $sum, (1) x 340);
	execute($_, $sum, (1) x 100, map { (1) x 19, $long } 1 .. 12);
}
my %expected = map { $_ => $kernel{$_} - $kernel{"idle_$_"} } @names;
my $all = 0;
$all += $_ for values %expected;
my $counted = sql(q{select sum(user_time + system_time) from tacho.statements where query ~ '^with skewed_. '});
cmp_ok($counted, '>', 0.9 * $all, 'CPU of skewed statements is at most a tenth less than the kernel says');
cmp_ok($counted, '<', 1.1 * $all, 'CPU of skewed statements is at most a tenth more than the kernel says');
for (@names)
{
	my ($cpu, $time, $sampled, $measured) = split /\|/,
		of($_, 'user_time + system_time, total_exec_time, n_sampled, sampled_exec_time');
	cmp_ok(abs($cpu / $expected{$_} - 1), '<', 0.2, "$_: sampled CPU is less than a fifth off");
	cmp_ok($cpu, '<=', $time, 'no statement has more CPU than time');
	cmp_ok($sampled, '>=', 12, 'long executions are all measured');
	cmp_ok($measured, '>', 0.9 * $time, 'the CPU of most of the time is known');
	cmp_ok($measured, '<=', $time * (1 + 1e-9), 'the CPU of no more than all of the time is known');
}

# long executions that wait have not used the CPU time of others
execute('waiting', 'pg_sleep(%s)', (0.000001) x 200, (map { (0.000001) x 9, 0.02 } 1 .. 20));
my ($cpu, $time) = split /\|/, of('waiting', 'user_time + system_time, total_exec_time');
cmp_ok($time, '>', 400, 'twenty executions wait');
cmp_ok($cpu, '<', 1.5 * $kernel{waiting}, 'waiting executions have the CPU of the kernel, not their waiting time');

# a statement in a function: both levels have the CPU time, each once
$session->query_safe(q{set tacho.statements_track = 'all'});
sql(q{create function spend(n int) returns bigint language plpgsql as $$
begin
	return (select sum(i) from generate_series(1, n) i);
end $$});
execute('calling', 'spend(%s)', (1) x 100, map { (1) x 19, $long } 1 .. 12);
my ($outer, $inner) = map { sql("select sum(user_time + system_time) from tacho.statements where query ~ '$_'") }
	'^with calling ', '^.select sum.i. from generate_series.* n. i.$';
cmp_ok(abs($outer / $kernel{calling} - 1), '<', 0.25, 'statements that execute others have the CPU of all');
cmp_ok($inner, '>', 0.6 * $outer, 'the executed statements have their CPU');
cmp_ok($inner, '<=', $outer * 1.1, 'CPU of the executed statements is within the CPU of the caller');

# switched off, nothing is read; switched on again, that time is not counted
$session->query_safe('set tacho.statements_cpu = off');
execute('unmeasured', $sum, (600000) x 5);
is(of('unmeasured', 'n_sampled, user_time'), '0|0', 'without measuring there is no CPU time');
$session->query_safe('set tacho.statements_cpu = sampled');
execute('afterwards', 'pg_sleep(%s)', (0.000001) x 100, (0.02) x 5);
cmp_ok(of('afterwards', 'user_time + system_time'), '<', 0.5 * $kernel{unmeasured}, 'later executions do not get CPU time that was not measured');

$session->quit;
$node->stop;
done_testing();
