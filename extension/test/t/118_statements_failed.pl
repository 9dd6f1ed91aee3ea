# Failed and cancelled executions have their resources in separate columns. The columns
# of pg_stat_statements have the same values as contrib's.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $node = statements_cluster('failed');

sub sql { return $node->safe_psql('postgres', $_[0]) }

# executes a statement that fails; returns an upper limit of its duration, in ms
sub fail
{
	my ($settings, $statement, $error) = @_;
	$node->psql('postgres', "$settings\n\\timing on\n$statement;", on_error_stop => 0, stdout => \my $out, stderr => \my $err);
	like($err, $error, 'a statement fails');
	return $out =~ /Time: ([\d.]+) ms/ ? $1 : die $out;
}

# counters of the statement that begins with this pattern
sub of { return sql("select $_[1] from tacho.statements where query ~ '^$_[0]'") }
my $counted = 'calls, errors, cancellations, total_exec_time, user_time, shared_blks_hit + shared_blks_read, wal_records';

# cancelled after some work
my $took = fail(q{set work_mem = '64kB'; set statement_timeout = '300ms';}, 'with cancelled as (select sum(i) from generate_series(1, 100000000) i) select from cancelled',
	qr/statement timeout/);
is(of('with cancelled', $counted), '0|0|1|0|0|0|0', 'a cancelled execution is no call');
my ($time, $cpu, $files) = split /\|/, of('with cancelled', 'failed_exec_time, failed_cpu_time, failed_temp_blks_written');
cmp_ok($time, '>', 250, 'the time of the cancelled execution is counted as failed time');
cmp_ok($time, '<=', $took, 'failed time is at most what the execution took');
cmp_ok($cpu, '>', 0, 'CPU time of the cancelled execution is counted as failed CPU time');
cmp_ok($cpu, '<=', $time, 'failed CPU time is at most the failed time');
cmp_ok($files, '>', 0, 'temporary blocks of the cancelled execution are counted');

# failed amid writing
sql('create table t(n int primary key)');
fail('', 'with broken as (insert into t select 1000 - i from generate_series(0, 1000) i returning 1 / n) select count(*) from broken',
	qr/division by zero/);
is(of('with broken', $counted), '0|1|0|0|0|0|0', 'a failed execution is no call');
my ($blocks, $records, $bytes) = split /\|/,
	of('with broken', 'failed_shared_blks_hit, failed_wal_records, failed_wal_bytes');
cmp_ok($blocks, '>', 1000, 'blocks of the failed execution are counted');
cmp_ok($records, '>=', 2001, 'WAL records of the failed execution are at least one for each row and each key');
cmp_ok($bytes, '>', $records * 24, 'WAL bytes of the failed execution are counted');

# an utility command, and one that is tried twice
fail(q{set statement_timeout = '200ms';}, 'do $$ begin perform pg_sleep(10); end $$', qr/statement timeout/);
cmp_ok(of('do', 'failed_exec_time'), '>', 150, 'a cancelled command has failed time');
sql('select 1; create function twice(n int) returns int language plpgsql as $$ begin return 1 / n; exception when others then return 0; end $$');
sql(q{set tacho.statements_track = 'all'; select twice(0); select twice(1)});
my ($inner, $outer) = map { of($_, 'calls, errors, failed_exec_time > 0, failed_exec_time < 1000') } 'select twice', '.?1 / n|^select .1 / n';
is($inner, '2|0|f|t', 'a statement that catches an error has not failed');

# cursors: rows fetched before the error count with it
$node->psql('postgres', q{\set FETCH_COUNT 10
with fetched as (select pg_sleep(0.01), 1 / (25 - i) as n from generate_series(1, 100) i) select n from fetched;}, on_error_stop => 0);
ok(sql(q{select sum(failed_exec_time) >= 50 from tacho.statements}) eq 't', 'pieces of a failed execution are counted once');

# without an error these columns are 0, and planning does not fill them
fail('', 'select * from missing_table', qr/does not exist/);
fail('', 'select 1 / 0 as planned', qr/division by zero/);
is(of('select .* as planned', 'errors, failed_exec_time'), '1|0', 'an error while planning took no execution');
is(sql(q{select count(*) from tacho.statements where errors + cancellations = 0 and
	failed_exec_time + failed_cpu_time + failed_shared_blks_hit + failed_wal_bytes > 0}), 0, 'a statement that has not failed has zeros in these columns');

# kept over restarts and resets
my $all = q{select sum(failed_exec_time), sum(failed_wal_records), sum(failed_temp_blks_written) from tacho.statements};
my $before = sql($all);
$node->restart;
is(sql($all), $before, 'the counters survive a restart');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process of the server died');
done_testing();
