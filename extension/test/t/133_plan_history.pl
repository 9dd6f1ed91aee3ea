# The history of plans: in every interval the plans of a statement add up to the
# statement, and each has its own executions.
use strict;
use warnings;
use TachoStatements qw(pgbench_script run_pgbench);
use TachoTest qw(tacho_cluster wait_until_in_history);
use PostgreSQL::Test::Utils;
use Test::More;

my $node = tacho_cluster('plan_history', conf => q{
tacho.statements_interval = 500ms
tacho.statements_max = 100
tacho.statements_max_reserved = 100
tacho.statements_save_interval = 1s
jit = off
});
my @counters = qw(calls total_exec_time_ms rows shared_blks_hit shared_blks_read temp_blks_written);

# Waits until statistics have just been recorded.
sub just_recorded
{
	my $value = "(SELECT value FROM tacho.status() WHERE metric = 'statements_recorded')";
	my $last = $node->safe_psql('postgres', "SELECT $value");

	$node->poll_query_until('postgres', "SELECT $value <> '$last'") or die 'nothing is recorded';
	return;
}

# Waits until the history has all executions of a statement, also if its record was put off
# because another process held a lock.
sub wait_until_counted
{
	my ($text) = @_;

	wait_until_in_history($node);
	$node->poll_query_until('postgres', "SELECT calls = (SELECT sum(calls) FROM tacho.statements_history('2000-01-01', query_id => queryid::text))
		FROM tacho.statements WHERE query LIKE '$text%'") or die "the history lacks executions of $text";
	return;
}

# Rows of a kind of history, each a hash by column.
sub exported
{
	my ($kind) = @_;
	my ($csv, $error) = run_command([ $ENV{TACHO_PROGRAM}, 'export', $kind, '--tape', $node->data_dir . '/tacho', '--since', '2000-01-01' ]);
	my ($names, @lines) = split /\n/, $csv;
	my @names = split /,/, $names // die $error;
	return map { my %row; @row{@names} = split /,/, $_, -1; \%row } @lines;
}

# Differences between the plans of an interval and the statement: none has more; and if the
# statement has one row, it has no more.
sub differences
{
	my (%sum, %rows, %plans, @found);
	my $key = sub { join '|', map { $_[0]{$_} // '' } qw(time query_id database username toplevel) };

	for my $row (exported('statements'))
	{
		$rows{ $key->($row) }++;
		$sum{ $key->($row) }{$_} += $row->{$_} || 0 for @counters;
		$sum{ $key->($row) }{cpu_time_ms} += $row->{$_} || 0 for qw(user_time_ms system_time_ms);
	}
	for my $row (exported('plan_stats'))
	{
		$plans{ $key->($row) }{$_} += $row->{$_} || 0 for @counters, 'cpu_time_ms';
		push @found, 'negative: ' . $key->($row) if grep { ($row->{$_} || 0) < 0 } @counters, 'cpu_time_ms';
	}
	for my $at (keys %plans)
	{
		for (@counters, 'cpu_time_ms')
		{
			my $more = sprintf '%.2f', ($sum{$at}{$_} || 0) - $plans{$at}{$_};

			push @found, "$at $_ $more" if $more < 0 || ($more > 0 && $rows{$at} == 1);
		}
	}
	return join "\n", sort @found;
}

# "calls rows max_is_known" of each plan that a statement has in the history of plans, as they appeared
sub plans_of
{
	my ($text) = @_;
	my ($id) = $node->safe_psql('postgres', "SELECT queryid FROM tacho.statements WHERE query LIKE '$text%'");
	my (%calls, %rows, %since, %lacks);

	for (grep { $_->{query_id} eq $id } exported('plan_stats'))
	{
		my $plan = $_->{plan_id} || 'none';

		$calls{$plan} += $_->{calls} || 0;
		$rows{$plan} += $_->{rows} || 0;
		$since{$plan} = $_->{plan_since} if !defined $since{$plan} || $_->{plan_since} lt $since{$plan};
		$lacks{$plan} = 1 if $_->{calls} && !$_->{max_exec_time_ms};
	}
	return join ', ', map { "$calls{$_} $rows{$_}" . ($_ eq 'none' ? ' none' : $lacks{$_} ? '' : ' max') } sort { $since{$a} cmp $since{$b} } grep { $calls{$_} } keys %calls;
}

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (a int, b int, c int, d text);
INSERT INTO t SELECT n, n % 10, n, 'x' FROM generate_series(1, 1000) n;
CREATE INDEX t_a ON t (a);
CREATE INDEX ON t (b);
VACUUM ANALYZE t;
END

my $by_index = 'RESET ALL; SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $by_bitmap = 'RESET ALL; SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;';
my $by_table = 'RESET ALL; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;';
my $query = 'SELECT d FROM t WHERE a =';
my $lookup = pgbench_script($node, 'lookup', "\\set a random(1, 1000)\n$query :a;\n");

# one plan: the statement has it all
run_pgbench($node, $lookup, '-c', 4, '-t', 50);
wait_until_counted($query);
is(plans_of($query), '', 'a statement of one plan has no rows of plans');

# its index goes
$node->safe_psql('postgres', 'DROP INDEX t_a');
run_pgbench($node, $lookup, '-c', 4, '-t', 25);
wait_until_counted($query);
is(plans_of($query), '100 100 max', 'the new plan has its executions');
is( $node->safe_psql('postgres', "SELECT old_calls, new_calls FROM tacho.plan_changes('2000-01-01') WHERE query_text LIKE '$query%'"),
	'200|100', 'the old plan is known, though no sample has it and it is not executed again');
$node->safe_psql('postgres', 'CREATE INDEX t_a ON t (a)');
run_pgbench($node, $lookup, '-c', 2, '-t', 30);
wait_until_counted($query);
is(plans_of($query), '60 60 max, 100 100 max', 'the plan that came back has its executions');
my %alone = map { $_->{plan_id} => $_->{was_alone} } exported('plan_stats');
is(join(' ', map { $_ || 0 } sort values %alone), '0 1', 'the first plan was alone before');
is( join(' ', sort keys %alone),
	$node->safe_psql('postgres', "SELECT string_agg(plan_id::text, ' ' ORDER BY plan_id::text COLLATE \"C\") FROM tacho.statement_plans
		JOIN tacho.statements USING (userid, dbid, toplevel, queryid) WHERE query LIKE '$query%'"),
	'plan ids equal the statistics');
is(differences(), '', 'plans add up to their statements in every interval');

# the readers: 200 executions by the index, 100 by the table, 60 by the index again
my $id = $node->safe_psql('postgres', "SELECT queryid FROM tacho.statements WHERE query LIKE '$query%'");
my $window = "since => '2000-01-01', query_id => '$id'";
is( $node->safe_psql('postgres', "SELECT calls, rows, rows_per_call, max_exec_time IS NOT NULL, source, query_text ~ '^SELECT d' FROM tacho.plans($window) ORDER BY first_seen"),
	"260|260|1.0000|f|counters|t\n100|100|1.0000|t|counters|t", 'plans() has the executions of each plan, from when the first was alone');
is( $node->safe_psql('postgres', "SELECT p.plan_id, p.calls, p.shared_blks_hit + p.shared_blks_read, abs(p.total_exec_time - s.total_exec_time::numeric) < 0.1
		FROM tacho.plans($window) p JOIN tacho.statement_plans s USING (plan_id) WHERE s.queryid = $id AND
			(p.calls, p.shared_blks_hit, p.shared_blks_read) = (s.calls, s.shared_blks_hit, s.shared_blks_read) ORDER BY first_seen") =~ tr/\n//,
	1, 'both plans are in tacho.statement_plans');
is( $node->safe_psql('postgres', "SELECT sum(p.calls) = max(h.calls), abs(sum(p.total_exec_time) - max(h.total_exec_time)) = 0, sum(p.cpu_time) = max(h.user_time + h.system_time), sum(p.pct)
		FROM tacho.plans($window) p, tacho.statements_history($window) h"),
	't|t|t|100.0000', 'the plans add up to the statement');
is( $node->safe_psql('postgres', "SELECT old_calls, new_calls, grain IS NULL, old_plan_id <> new_plan_id, time_lost > 0, ratio > 1, new_blocks_per_call > old_blocks_per_call
		FROM tacho.plan_changes($window) ORDER BY changed_at"),
	"200|100|t|t|t|t|t\n100|60|f|t|f|f|f", 'plan_changes() has both changes, the first one to the millisecond');
is( $node->safe_psql('postgres', "SELECT abs(time_lost - new_calls * (new_mean_exec_time - old_mean_exec_time)) <= new_calls * 0.0002 FROM tacho.plan_changes($window)"),
	"t\nt", 'time lost is calls by the difference of means');
is( $node->safe_psql('postgres', "SELECT changed_at BETWEEN d.marker_time AND (SELECT max(period_start) FROM tacho.markers('2000-01-01') WHERE command = 'CREATE INDEX')
		FROM tacho.plan_changes($window) c, tacho.markers('2000-01-01') d WHERE c.grain IS NULL AND d.kind = 'schema changed' AND d.command = 'DROP INDEX'"),
	't', 'the change lies between the drop of the index and its return');
my ($printed) = run_command([ $ENV{TACHO_PROGRAM}, 'plan-changes', '--tape', $node->data_dir . '/tacho', '--since', '1d', '--query-id', $id, '--json' ]);
is(() = $printed =~ /"new_plan_id":/g, 2, 'the command line shows both changes');
$node->safe_psql('postgres', "SELECT pg_sleep(1.2) /* alone */");
wait_until_in_history($node);
is( $node->safe_psql('postgres', "SELECT calls, mean_exec_time >= 1200, plan_id = (SELECT plan_id FROM tacho.statement_plans JOIN tacho.statements USING (userid, dbid, toplevel, queryid)
		WHERE query LIKE '%/* alone */'), source FROM tacho.plans('2000-01-01', query_id => (SELECT queryid::text FROM tacho.statements WHERE query LIKE '%/* alone */'))"),
	'1|t|t|samples', 'a statement with one plan has the id that samples show');
is( $node->safe_psql('postgres', "SELECT p.p95_exec_time = h.p95_exec_time, p.p95_exec_time >= 1200
		FROM (SELECT queryid::text AS id FROM tacho.statements WHERE query LIKE '%/* alone */') s,
			tacho.plans('2000-01-01', query_id => s.id) p, tacho.statements_history('2000-01-01', query_id => s.id) h"),
	't|t', 'the only plan has the 95th percentile of the statement');
is( $node->safe_psql('postgres', "SELECT count(*), bool_and(p95_exec_time > 0 AND p95_exec_time <= total_exec_time) FROM tacho.plans($window)"),
	'2|t', 'plans that followed each other have percentiles');

# both within an interval
run_pgbench($node, pgbench_script($node, 'index', "$by_index\nSELECT count(d) /* c */ FROM t WHERE a < 10;\n" =~ s/; /;\n/gr),
	'-f', pgbench_script($node, 'table', "$by_table\nSELECT count(d) /* c */ FROM t WHERE a < 10;\n" =~ s/; /;\n/gr), '-c', 8, '-j', 2, '-t', 300);
wait_until_in_history($node);
is($node->safe_psql('postgres', q{SELECT sum(calls) FROM tacho.statements WHERE query LIKE '%/* c */%'}), 2400, 'eight sessions have executed two plans');
is(differences(), '', 'plans add up to their statements in every interval');

# CPU time of both
my $busy = 'SELECT sum(sqrt(n)) /* cpu */ FROM t, generate_series(1, 10000) n WHERE a <';
$node->safe_psql('postgres', "$_ $busy 50; $busy 60;") for $by_index, $by_table;
wait_until_in_history($node);
my $busy_id = $node->safe_psql('postgres', "SELECT queryid FROM tacho.statements WHERE query LIKE '%/* cpu */%' AND query !~ 'tacho'");
is( $node->safe_psql('postgres', "SELECT count(*), bool_and(p.cpu_time > 0), sum(p.cpu_time) = max(h.user_time + h.system_time), max(h.calls)
		FROM tacho.plans('2000-01-01', query_id => '$busy_id') p, tacho.statements_history('2000-01-01', query_id => '$busy_id') h"),
	'2|t|t|4', 'both plans together have the CPU time of the statement');
is( $node->safe_psql('postgres', "SELECT count(*) FROM tacho.plans('2000-01-01', query_id => '$busy_id') p JOIN tacho.statement_plans s USING (plan_id)
		WHERE s.queryid = $busy_id AND abs(p.cpu_time - s.cpu_time::numeric) <= 0.02"),
	2, 'both plans have the CPU time of tacho.statement_plans');

# five plans and more: those that were executed longest ago make room
my $many = 'SELECT count(*) FROM t x JOIN t y USING (a) WHERE x.b = ';
my $joins = sub { join ' ', map { 'SET enable_' . ($_ eq $_[0] ? "$_ = on;" : "$_ = off;") } qw(hashjoin mergejoin nestloop) };
my @ways = map { my $scan = $_; map { "$scan " . $joins->($_) } qw(hashjoin mergejoin nestloop) } $by_table, $by_bitmap;
for my $way (@ways)
{
	$node->safe_psql('postgres', "$way $many 1; $many 2;");
	wait_until_in_history($node);
}
my @plans = split /, /, plans_of('SELECT count(*) FROM t x JOIN');
is(scalar @plans, 5, 'each plan after the first has rows');
is("@plans", join(' ', ('2 2 max') x 5), 'each plan has its own executions');
is(differences(), '', 'plans add up to their statements in every interval');
$node->safe_psql('postgres', join ' ', map { "$_ $many 3;" } @ways, $ways[0]);
wait_until_in_history($node);
is(differences(), '', 'plans add up to their statements in every interval');
like(plans_of('SELECT count(*) FROM t x JOIN'), qr/\d+ \d+ none/, 'some executions of more than four plans in one interval have no id');

# evicted, reset
for (1 .. 3)
{
	$node->safe_psql('postgres', join '', map { my $n = $_; map { "$_ SELECT count(*) AS n$n FROM t WHERE a < 5;\n" } $by_index, $by_table } 1 .. 150);
	run_pgbench($node, $lookup, '-c', 4, '-t', 25);
	$node->safe_psql('postgres', 'SELECT tacho.statements_reset()') if $_ == 2;
}
wait_until_in_history($node);
is(differences(), '', 'plans add up to their statements in every interval');
# within one interval, also on a busy machine
my $interval = sub { $node->safe_psql('postgres', $_) for "ALTER SYSTEM SET tacho.statements_interval = '$_[0]'", 'SELECT pg_reload_conf()'; just_recorded() for 1 .. 2 };
$interval->('6s');
$node->safe_psql('postgres', "SELECT tacho.statements_reset(); $by_index $query 1; $by_table $query 2; $query 3; SELECT tacho.statements_reset();");
$interval->('500ms');
wait_until_in_history($node);
my $after_reset = sub { my $last = (sort map { $_->{time} } @_)[-1]; return grep { $_->{time} eq $last } @_ };
is(differences(), '', 'plans add up to their statements in every interval');
is( join(' ', sort map { ($_->{plan_id} ? 'known ' : '') . $_->{calls} } $after_reset->(grep { $_->{query_id} eq $id } exported('plan_stats'))),
	'known 1 known 2', 'plans of a statement that was reset before it was recorded are counted separately');

# restarts: of the sampler, of the server
my $count = 'SELECT count(c) FROM t WHERE a =';
my $known = sub { return $node->safe_psql('postgres', "SELECT string_agg(calls::text, ' ' ORDER BY calls) FROM tacho.plans('2000-01-01', query_id => '$_[0]') WHERE plan_id IS NOT NULL") };
$node->safe_psql('postgres', "$by_index $count 1;" . "$by_table $count 2;" x 2);
my $other = $node->safe_psql('postgres', "SELECT queryid FROM tacho.statements WHERE query LIKE '$count%'");
wait_until_in_history($node);
is($known->($other), '1 2', 'the statement has two plans');
my $pid = $node->safe_psql('postgres', q{SELECT value FROM tacho.status() WHERE metric = 'sampler_pid'});
kill 'TERM', $pid;
$node->poll_query_until('postgres', "SELECT value <> '$pid' FROM tacho.status() WHERE metric = 'sampler_pid'");
$node->safe_psql('postgres', "$by_index $count 1;" . "$by_table $count 2;" x 2);
wait_until_in_history($node);
is(differences(), '', 'plans add up to their statements when the sampler starts again');
$node->safe_psql('postgres', "$by_table $count 2;" x 37);
wait_until_in_history($node);
is(differences(), '', 'plans add up to their statements in every interval');
like($known->($other), qr/^1 (39|4[01])$/, 'the plans go on counting, executions in between have no plan');
$node->safe_psql('postgres', "$by_table $count 2;" x 3);
$node->restart;
$node->safe_psql('postgres', "$by_table $count 2;" x 61);
$node->safe_psql('postgres', "$by_index $count 1;");
wait_until_in_history($node);
is(differences(), '', 'plans add up to their statements when the server starts again');
like($known->($other), qr/^2 10[0-5]$/, 'later executions have their plan');

$node->stop;
is(differences(), '', 'plans add up to their statements at the end');
done_testing();
