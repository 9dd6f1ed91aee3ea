# Rare counters lie apart from the others. A later statement in the same place finds
# their memory as it was left. Each must begin with zeros, have all its counts, and
# leave nothing to the next.

use strict;
use warnings;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('rare', conf => q{
tacho.statements_max = 100
tacho.statements_max_reserved = 100
tacho.statements_track_planning = on
max_connections = 20
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# Counters of the statement of that name.
my $rare = q{sum(plans), sum(temp_blks_written) > 0, sum(local_blks_hit) > 0, sum(errors), count(last_sqlstate)};
sub of { return sql("select sum(calls), $rare from tacho.statements where query ~ '/[*] $_[0] [*]/'") }

my $plain = 'set tacho.statements_track_planning = off';
my $heavy = "set work_mem = '64kB'; set temp_buffers = '4MB'";

# executes a statement that sorts on disk and reads a temporary table: N times without
# and FAILED times with an error
sub execute_heavy
{
	my ($name, $times, $failed) = @_;
	my $statement = "select /* $name */ count(*), 1 / sum(n) from (select n from t order by -n) x";

	my $script = "$heavy; create temp table t as select 0 as n from generate_series(1, 20000);\n";
	$script .= "$statement;\n" x $failed;
	$script .= "update t set n = 1;\n" . "$statement;\n" x $times;
	$node->psql('postgres', $script, on_error_stop => 0, stderr => \my $errors);
	is(() = $errors =~ /division by zero/g, $failed, "$name: $failed executions failed");
	return;
}

sub execute_plain
{
	my ($name, $times) = @_;

	return sql(join ';', $plain, ("select /* $name */ 1") x $times);
}

execute_heavy('heavy', 3, 2);
is(of('heavy'), '3|5|t|t|2|1', 'planning, temporary files and tables, and errors are counted');

# minima and maxima of planning are unset, counts stay
my $planned = q{select plans, min_plan_time > 0, max_plan_time > 0 from tacho.statements where query ~ '/[*] extremes'};
sql('select /* extremes */ 1, 2');
is(sql($planned), '1|t|t', 'extremes of planning are counted');
sql(q{select tacho.statements_reset(0, 0, queryid, true) from tacho.statements where query ~ '/[*] extremes'});
is(sql($planned), '1|f|f', 'a reset of extremes unsets the extremes of planning and keeps counts');
sql('select /* extremes */ 1, 2');
is(sql($planned), '2|t|t', 'extremes of planning are set again');

# a restart keeps them, and a statement without them continues without
execute_plain('plain', 2);
$node->restart;
is(of('heavy'), '3|5|t|t|2|1', 'a restart keeps rare counters');
is(of('plain'), '2|0|f|f|0|0', 'a restart leaves another statement without rare counters');
execute_plain('plain', 1);
is(of('plain'), '3|0|f|f|0|0', 'a statement without rare counters goes on without them');

# every place has had all counters, and then gets plain statements
sub everywhere
{
	my ($name, $n) = @_;

	sql(join ';', $heavy, 'create temp table t as select n from generate_series(1, 20000) n',
		map { "with /* $name */ w$_ as (select n from t order by -n) select count(*), 1 from w$_" } 1 .. $n);
	return;
}
everywhere('first', 80);
my $before = sql(q{select count(*) filter (where plans > 0 and temp_blks_written > 0) >= 60 from tacho.statements});
is($before, 't', 'most places have counted plans and temporary files');
sql('select tacho.statements_reset()');
sql(join ';', $plain, map { "with /* second */ p$_ as (select 1) select 2 from p$_" } 1 .. 80);
is(sql(q{select count(*), sum(calls), sum(plans), sum(temp_blks_written), sum(local_blks_hit), max(max_plan_time),
	sum(errors), sum(shared_blk_read_time), count(last_sqlstate)
	from tacho.statements where query ~ '/[*] second'}),
	'80|80|0|0|0|0|0|0|0', 'statements in reused places begin with no rare counters');
sql(join ';', map { "with /* second */ p$_ as (select 1) select 2 from p$_" } 1 .. 80);
is(sql(q{select sum(calls), sum(plans), sum(temp_blks_written), bool_and(min_plan_time > 0) from tacho.statements
	where query ~ '/[*] second'}), '160|80|0|t', 'statements in reused places count their own');

# eviction: entries come and go in the same places, and their counts are kept
sql('select tacho.statements_reset()');
everywhere('many', 150);
my $sums = sql(q{select sum(plans), sum(temp_blks_written) > 0,
	(select evicted > 0 from tacho.statements_info) from tacho.statements
	where queryid is null or query ~ '/[*] many'});
is($sums, '150|t|t', 'evicted statements keep their counters in the sum');
sql(join ';', $plain, map { "with /* last */ l$_ as (select 1) select 3 from l$_" } 1 .. 150);
is(sql(q{select sum(plans), sum(temp_blks_written) from tacho.statements where query ~ '/[*] last'}),
	'0|0', 'evicted statements leave no counters to later ones');
$node->stop;
done_testing();
