# When a statement was last called, and a collector that reads only what has changed since
# its last reading.

use strict;
use warnings;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(pgbench_script);
use TachoTest qw(tacho_cluster);

my $node = tacho_cluster('last_call', interval => '20ms', conf => q{
tacho.statements_max = 5000
autovacuum = off
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

# The time before a reading. A call afterwards is not earlier, since a reading sets the clock.
sub now
{
	my $now = sql('select clock_timestamp()');
	sql('select count(*) from tacho.statements(false)');
	return $now;
}

# Statements of the test that are in a reading since a moment.
sub called
{
	my ($since) = @_;
	return sql(qq{select coalesce(string_agg(substring(query, 'from (\\w+)\$'), ' ' order by query), '')
		from tacho.statements(true, null, '$since') where query ~ '^with (first|second) '});
}

# the time
my $begin = now();
sql('with first as (select 1) select from first');
my $between = now();
is(called($begin), 'first', 'since => a time has the statements called since then');
is(called($between), '', 'no statement is called since a later moment');
my $later = now();
is(sql(qq{select last_call between '$begin'::timestamptz - interval '1 s' and '$between' from tacho.statements where query ~ '^with first'}),
	't', 'last_call is the time of the call, to a tick');
sql('with second as (select 1) select from second');
is(called($later), 'second', 'a reading has only the calls after the reading before');
is(called($begin), 'first second', 'a reading since the begin has both calls');
my $reset = now();
sql(q{select tacho.statements_reset(0::oid, 0::oid, (select queryid from tacho.statements where query ~ '^with first'), true)});
is(called($reset), 'first', 'a reset of extremes counts as a change');
my $failed = now();
$node->psql('postgres', 'select 1 / 0');
is(sql("select errors from tacho.statements(true, null, '$failed') where query = 'select \$1 / \$2'"), 1, 'a failed execution counts as a call');

# a collector under load: it never reads all, and misses nothing
my $script = pgbench_script($node, 'load', <<'END');
\set n random_zipfian(1, 2000, 1.1)
with hot:n as (select 1) select from hot:n;
END
sql('create table kept(queryid bigint primary key, calls bigint)');
my @load = (qw(pgbench -n -c 8 -j 2 -T 4), '-h', $node->host, '-p', $node->port, '-f', $script, 'postgres');
my $output = '';
my $load = IPC::Run::start(\@load, '<', \undef, '>&', \$output);
my $since = $begin;

sub collect
{
	my $at = now();
	my $rows = sql(qq{with new as (
			insert into kept select queryid, calls from tacho.statements(true, null, '$since')
				where query ~ '^with hot' on conflict (queryid) do update set calls = excluded.calls returning 1)
		select count(*) from new});
	$since = $at;
	return $rows;
}

my $readings = 0;
while ($load->pumpable)
{
	collect();
	$readings++;
	$load->pump_nb;
}
$load->finish;
like($output, qr/number of failed transactions: 0/, 'pgbench has run its load');
cmp_ok($readings, '>', 5, 'readings are taken beside the load');
collect();
is(sql(q{select count(*) from tacho.statements s full join kept k using (queryid)
	where (query ~ '^with hot' or k.queryid is not null) and s.calls is distinct from k.calls}), 0, 'the collector has each count');
is(sql(q{select evicted + skipped from tacho.statements_info}), 0, 'no execution was lost meanwhile');
cmp_ok(sql('select count(*) from kept'), '>', 500, 'the collector has many statements');
is(collect(), 0, 'without load a reading has no statement of it');

# without a sampler
sql(q{alter system set tacho.program = '/nonexistent'});
$node->restart;
my $restarted = now();
is(sql("select count(*) from tacho.statements(false, null, '$begin')") > 500, 1,
	'after a restart a reading since an earlier time has all rows: they are a new base');
is(sql(qq{select last_call < '$later' from tacho.statements where query ~ '^with first'}), 't', 'last_call is kept across a restart');
$since = now();
is(called($since), '', 'without a sampler and calls a reading is empty');
sql('with first as (select 1) select from first');
is(called($since), 'first', 'without a sampler a reading has the calls since the one before');
done_testing();
