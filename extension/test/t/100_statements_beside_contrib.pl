# pg_stat_statements beside tacho, loaded before and after: both count the same.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $common = join ', ', qw(calls rows plans
  shared_blks_hit shared_blks_read shared_blks_dirtied shared_blks_written
  local_blks_hit local_blks_read temp_blks_read temp_blks_written
  wal_records wal_fpi wal_bytes jit_functions);

my $workload = <<'END';
create table t (a int primary key, b text);
insert into t select g, 'row ' || g from generate_series(1, 2000) g;
select count(*) from t where a < 1000;
select count(*) from t where a < 500;
select * from t where a in (1, 2, 3);
select * from t where a in (1, 2, 3, 4);
update t set b = 'x' where a between 10 and 20;
begin; delete from t where a = 5; rollback;
prepare p (int) as select b from t where a = $1;
execute p (1); execute p (2);
deallocate p;
create function f (int) returns bigint language plpgsql as
$$ declare n bigint; begin select count(*) into n from t where a > $1; execute 'select 1 + ' || $1; return n; end $$;
select f(1); select f(2), f(3);
do $$ begin for i in 1..3 loop perform f(i); end loop; end $$;
create procedure q () language plpgsql as $$ begin insert into t values (9001, 'q'); commit; update t set b = 'y' where a = 9001; rollback; end $$;
call q();
select 1 / (a - 1) from t where a = 1;
set work_mem = '64kB';
select count(*) from (select a, b from t order by b, a desc offset 0) s;
reset work_mem;
create temp table tt as select * from t where a < 100;
select count(*) from tt;
begin;
declare c cursor for select a from t order by a;
fetch 5 from c; fetch 10 from c; move 3 from c;
close c;
commit;
copy t to '/dev/null';
copy (select a from t where a < 50) to '/dev/null';
explain select * from t where a = 1;
explain (analyze, costs off, timing off, summary off) select count(*) from t where a = 2;
create view v as select a from t; select * from v where a = 7;
create materialized view mv as select a from t; refresh materialized view mv;
vacuum t; analyze t; truncate t;
select 1 as one \; select 2, 'two' \; select 3.0;
savepoint outside;
set role pg_read_all_data; select 1; reset role;
END
# Both see the very same executions.
sub compare
{
	my ($preload, $track, $conf) = @_;
	my $node = statements_cluster(
		'beside',
		preload => $preload,
		conf => qq{
# texts of utility statements as contrib has them
tacho.query_text = raw
pg_stat_statements.track = $track
tacho.statements_track = $track
pg_stat_statements.track_planning = on
tacho.statements_track_planning = on
track_io_timing = on
} . ($conf // q{}) . "\n");

	$node->safe_psql('postgres', 'create extension pg_stat_statements');
	$node->psql('postgres',
		"select pg_stat_statements_reset(); select tacho.statements_reset();");
	$node->psql('postgres', $workload, on_error_stop => 0);
	my $differences = $node->safe_psql(
		'postgres', qq{
		set tacho.statements_track = none; set pg_stat_statements.track = none;
		with ours as (
			select userid, dbid, toplevel, queryid, $common,
					md5(query) as text
				from tacho.statements where calls + plans > 0 and queryid is not null
					and query !~ '_reset'
		), theirs as (
			select userid, dbid, toplevel, queryid, $common, md5(query)
				from pg_stat_statements where query !~ '_reset|^set pg_stat_statements'
		), differ as (
			(select 'tacho', * from ours except select 'tacho', * from theirs)
			union all
			(select 'contrib', * from theirs except select 'contrib', * from ours)
		)
		select d.*, s.query from differ d left join pg_stat_statements s using (userid, dbid, toplevel, queryid)
	});
	$differences =~ s/^SET\n//mg;
	is($differences, '', join(' ', "$preload, track = $track:", $conf // (), 'equal counters and texts'));

	is($node->safe_psql('postgres', q{
		select count(*) > 20, bool_and(o.total_exec_time > 0)
			from tacho.statements o
			join pg_stat_statements t using (userid, dbid, toplevel, queryid)
			where t.calls > 0 and t.total_exec_time > 0}),
		't|t', 'tacho and pg_stat_statements time the same executions');
	$node->stop;
	$node->clean_node;
}

my $probe = PostgreSQL::Test::Cluster->new('probe');
my $contrib = $probe->config_data('--pkglibdir');
plan skip_all => 'pg_stat_statements is not installed'
  unless -e "$contrib/pg_stat_statements.so";
compare('pg_stat_statements, tacho', 'top');
compare('tacho, pg_stat_statements', 'all');
compare('pg_stat_statements, tacho', 'all');
# every plan that can be runs in a parallel worker
my $force = $probe->config_data('--version') =~ / 15/ ? 'force_parallel_mode' : 'debug_parallel_query';
compare('tacho, pg_stat_statements', 'top', "$force = regress");
done_testing();
