# Whatever a statement does, the nesting is right afterwards, and nothing of
# tacho reaches the user.

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;
use TachoStatements qw(statements_cluster);

my $libraries = PostgreSQL::Test::Utils::tempdir();
my $node = statements_cluster('failures', conf => qq{
tacho.statements_track = all
max_stack_depth = 2MB
max_prepared_transactions = 5
dynamic_library_path = '\$libdir:$libraries'
});

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub row
{
	my ($pattern, $columns) = @_;
	return sql("select $columns from tacho.statements where query ~ '$pattern' and query !~ 'tacho' order by toplevel");
}

sql(q{
create table t (a int primary key, check (a < 100));
create function fails(int) returns int language plpgsql as $$ begin return 1 / $1; end $$;
create function deep(n int) returns int language plpgsql as $$ begin if n = 0 then return 0; end if; return deep(n - 1) + 1; end $$;
create function catches() returns int language plpgsql as $$ begin perform fails(0); exception when others then return 1; end $$;
create procedure commits() language plpgsql as $$ begin for i in 1..3 loop insert into t values (i); if i = 2 then rollback; else commit; end if; end loop; end $$;
create procedure drops() language plpgsql as $$ begin execute 'create table gone (a int)'; rollback; perform 1; commit; end $$;
create table trig (a int);
create function on_trig() returns trigger language plpgsql as $$ begin if new.a < 0 then raise exception 'negative' using errcode = 'T0001'; end if; return new; end $$;
create trigger later after insert on trig for each row execute function on_trig();
});

# after each failure a statement of the client is top level
my %failures = (
	'in the executor' => 'select fails(0)',
	'in the planner' => 'select 1 / 0',
	'while parsing' => 'select no_such_column',
	'in a trigger' => 'insert into trig values (-1)',
	'in ExecutorStart' => 'set role pg_monitor; select a from t',
	'in a utility command' => 'create table t (a int)',
	'in a nested utility command' => q{do $$ begin execute 'create table t (a int)'; end $$},
	'of depth' => 'select deep(100000)',
	'by cancel' => q{set statement_timeout = '1s'; select pg_sleep(60)},
	'in a cursor' => 'begin; declare c cursor for select 1 / (a - 2) from generate_series(1, 3) a; fetch all from c; rollback',
	'inside an exception block' => 'select catches()',
	'in COPY' => q{copy t from program 'echo 1000'},
	'in EXPLAIN ANALYZE' => 'explain analyze select fails(0)',
	'in a prepared statement' => 'prepare p as select fails($1); execute p(0)',);
for my $name (sort keys %failures)
{
	my ($code, $out, $err) = $node->psql('postgres',
		"$failures{$name};\nreset role; reset statement_timeout; rollback; select tacho.statements_reset() is null; select 41 + 1 as after;\nselect toplevel, calls from tacho.statements where query = 'select \$1 + \$2 as after'",
		on_error_stop => 0);
	like($out, qr/^t\|1$/m, "after a failure $name the next statement is top level");
}

sql('select tacho.statements_reset()');
$node->psql('postgres', 'insert into trig values (-1)');
is(row('^insert into trig', 'toplevel, calls, errors, last_sqlstate'), 't|0|1|T0001', 'an error of a trigger fails its statement');
$node->psql('postgres', 'set role pg_monitor; select a from t');
is(row('^select a from t$', 'calls, errors, last_sqlstate'), '0|1|42501', 'a missing permission fails its statement');
$node->psql('postgres', 'select 1 / 0');
is(row('^select .1 / .2$', 'calls, errors, last_sqlstate'), '0|1|22012', 'an error of planning fails its statement');
$node->psql('postgres', q{set statement_timeout = '1s'; select pg_sleep(60)});
is(row('^select pg_sleep', 'calls, errors, cancellations, last_sqlstate'), '0|0|1|57014', 'a cancelled statement counts as no error');
sql('select catches()');
is(row('^select catches', 'toplevel, calls, errors'), 't|1|0', 'a caught error does not count for the caller');
is(row('^SELECT fails\(0\)|^select fails|fails\(.1\)$', 'toplevel, calls, errors, last_sqlstate'), 'f|0|1|22012', 'a caught error counts for the statement that failed');

# failed planning and failed starting count alike, whichever hook sees the error first
sub planning_failed
{
	my ($settings, $expected, $name) = @_;

	sql('select tacho.statements_reset()');
	$node->psql('postgres', "$settings; select 1 / 0 as planned");
	$node->psql('postgres', "$settings; set role pg_monitor; select a as started from t");
	is(join("\n", sort split /\n/, row('as planned$|as started', 'query, calls, errors, last_sqlstate')), $expected, $name);
}
my @planned = ('select $1 / $2 as planned|0|1|22012', 'select a as started from t|0|1|42501');
planning_failed('select 1', join("\n", sort @planned), 'in a message of its own, failed planning counts');
planning_failed('set log_min_messages = fatal', join("\n", sort @planned), 'where errors are not logged, failed planning counts');
planning_failed('set tacho.statements_track_planning = on', join("\n", sort @planned), 'where planning is tracked, failed planning counts');
sql('select tacho.statements_reset()');
$node->psql('postgres', 'set tacho.statements_track_utility = off; explain select 1 / 0 as planned');
is(row('planned', 'calls, errors'), '0|1', 'a statement inside of an EXPLAIN is not counted');
sql('select tacho.statements_reset()');
$node->pgbench("-n -t 1 -M $_", 2, [], [qr/division by zero/], "a client of protocol $_", { "planned_$_" => 'select 1 / 0 as planned' })
  for qw(simple extended prepared);
is(row('planned', 'query, calls, errors'), 'select $1 / $2 as planned|0|3', 'a failed statement is counted in any protocol');

# a failure counts for who ran the statement, not for the owner of a function
sql(q{create role owner; grant create on schema public to owner; create role caller; set role owner;
create function secret(a int) returns int immutable security definer language plpgsql as $$ begin return 1 / a; end $$;
create function nested(a int) returns int security definer language plpgsql as $$ begin return (select secret(a) from pg_class limit 1); end $$});
sql('select tacho.statements_reset()');
$node->psql('postgres', "set role caller; $_") for 'select secret(0) as planned', 'select secret(a - a) as executed from (values (1)) v(a)',
	'select nested(0) as called', 'explain analyze select nested(0) as explained';
is(sql(q{select r.rolname, toplevel, substring(query from '(planned|executed|called|explained|limit)'), errors
	from tacho.statements join pg_roles r on r.oid = userid where errors > 0 and (toplevel or query ~ 'limit')
	order by 1, 3}),
	"caller|t|called|1\ncaller|t|executed|1\ncaller|t|explained|1\ncaller|t|planned|1\nowner|f|limit|2", 'errors count for statements in functions of others');

# errors outside of statements
sub outside
{
	return sql(q{select r.rolname, d.datname, toplevel, queryid, query, calls, errors, last_sqlstate
		from tacho.statements s join pg_database d on d.oid = dbid join pg_roles r on r.oid = userid where queryid is null
		order by rolname collate "C"});
}
sql('create role other; create table deferred (a int unique deferrable initially deferred); select tacho.statements_reset()');
$node->psql('postgres', 'selec 1', on_error_stop => 0);
my $me = sql('select current_user');
is(outside(), "$me|postgres||||0|1|42601", 'a syntax error counts for the user and the database');
$node->psql('postgres', 'set role other; select 1 from nowhere', on_error_stop => 0);
is((split /\n/, outside())[0], 'other|postgres||||0|1|42P01', 'a missing table counts for the user and the database');
$node->psql('postgres', 'insert into deferred values (1), (1)');
is((split /\n/, outside())[-1], "$me|postgres||||0|2|23505", 'an error at commit counts for the user and the database');
is(row('^insert into deferred', 'calls, errors'), '1|0', 'an error at commit does not count for its statement');
$node->psql('postgres', "$failures{$_}; rollback; reset role", on_error_stop => 0)
  for grep { !/parsing/ } sort keys %failures;
is((split /\n/, outside())[-1], "$me|postgres||||0|2|23505", 'errors of statements do not count for user and database');
sql(q{set tacho.statements_track = none; do $$ begin perform 1 / 0; exception when others then null; end $$});
$node->psql('postgres', q{set tacho.statements_track_utility = off; do $$ begin perform 1 / 0; exception when others then null; end $$; selec 1}, on_error_stop => 0);
is((split /\n/, outside())[-1], "$me|postgres||||0|3|42601", 'a caught error hides no later error');

# an error at commit counts once, for the innermost statement of the top level or for none
sql(q{create function at_commit() returns trigger language plpgsql as $$ begin if tg_argv[0] = '' then raise division_by_zero; end if;
	execute tg_argv[0]; return new; end $$});
for my $inside ('', 'select fails(0)', 'select 1 / 0 from t', 'create table t (a int)', 'do $$ begin perform fails(0); end $$')
{
	sql('drop table if exists failing; create table failing (a int)');
	sql("create constraint trigger at_commit after insert on failing deferrable initially deferred for each row execute function at_commit(\$x\$$inside\$x\$)");
	for my $message ('insert into failing values (1)', "begin; insert into failing values (1); commit",
		"begin; savepoint s; insert into failing values (1); prepare transaction 'x'", 'begin\; insert into failing values (1)\; commit')
	{
		sql('select tacho.statements_reset()');
		$node->psql('postgres', $message, on_error_stop => 0);
		is(sql(q{select sum(errors), count(*) filter (where queryid is null) from tacho.statements where errors > 0 and toplevel is distinct from false}),
			$inside eq '' ? '1|1' : '1|0', "$message: " . ($inside || 'no statement') . ' fails once');
	}
}
sql(q{drop table failing; select tacho.statements_reset()});

# ... nor an error that was caught where no statement is executed any more
sql(q{create table late (a int);
create function on_late() returns trigger language plpgsql as $$ begin perform fails(0); return new; exception when others then return new; end $$;
create constraint trigger late after insert on late deferrable initially deferred for each row execute function on_late();
select tacho.statements_reset()});
$node->psql('postgres', "insert into late values (1);\nselec 1;", on_error_stop => 0);
is(row('^insert into late', 'calls, errors'), '1|0', 'a caught error at commit is counted');
is((split /\n/, outside())[-1], "$me|postgres||||0|1|42601", 'a caught error at commit hides no later error');

# depth
sql('select tacho.statements_reset()');
is(sql('select deep(200)'), 200, 'nesting far deeper than 64 is counted');
is(row('^select deep', 'toplevel, calls'), 't|1', 'deep nesting leaves the top statement alone');

# procedures that end transactions free plans and portals under our feet
sql('select tacho.statements_reset()');
sql('call commits()') for 1;
is(row('^call commits', 'toplevel, calls, errors'), 't|1|0', 'CALL with COMMIT and ROLLBACK is counted once');
is(row('^insert into t values', 'toplevel, calls, rows'), 'f|3|3', 'each statement of the CALL is counted');
sql('call drops()');
is(row('^call drops', 'toplevel, calls, errors'), 't|1|0', 'a CALL that rolls back its own DDL is counted');

# cursors that outlive a subtransaction, and many open ones
sql(q{begin; savepoint s; declare a cursor for select 1; rollback to s; declare b cursor for select 2; fetch b; commit});
sql('begin;' . join(';', map { "declare c$_ cursor for select $_ from t" } 1 .. 300) . '; fetch c150; fetch c1; fetch c300; commit');
is(sql('select 1'), 1, 'hundreds of open cursors are counted');
sql(q{begin; insert into t values (50); prepare transaction 'x'; rollback prepared 'x'});

# parallel workers count nothing of their own
sql('create table big as select g from generate_series(1, 100000) g; analyze big; select tacho.statements_reset()');
is(sql(q{set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2; select count(*) from big}), 100000, 'the query runs in parallel');
is(row('^select count\(\*\) from big', 'calls, rows, shared_blks_hit + shared_blks_read >= (select relpages from pg_class where relname = $$big$$)'),
	'1|1|t', 'a parallel query is one execution with the blocks of its workers');

# the same work costs the same CPU time, with or without workers
sub cpu_time
{
	my ($settings) = @_;
	sql("select tacho.statements_reset(); set jit = off; $settings; select count(md5(md5(g::text))) from big");
	return row('^select count.md5', 'calls, user_time + system_time');
}
my ($calls, $alone) = split /\|/, cpu_time('set max_parallel_workers_per_gather = 0');
my ($calls2, $workers) = split /\|/, cpu_time('set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2; set parallel_leader_participation = off');
is("$calls $calls2", '1 1', 'each statement is one execution');
cmp_ok($workers, '>', $alone / 2, 'CPU time of parallel workers counts for their statement');

# a reader in a parallel worker sees what all see
my $force = sql('show server_version_num') >= 160000 ? 'debug_parallel_query' : 'force_parallel_mode';
is(sql("set $force = regress; select sum(calls) from tacho.statements where query ~ '^select count.* from big'"),
	1, 'a parallel worker can read the view');
# in a function of another role, workers count for the caller, and make no entry
my $parallel = 'set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2; set parallel_leader_participation = off';
sql(q{grant select on big to owner;
create function work() returns bigint language plpgsql security definer as $$ begin perform count(md5(md5(g::text))) from big; return 1; end $$;
alter function work owner to owner});

# Number of entries that parallel workers make for statements that have an entry. The
# view does not show entries without calls.
sub made_by_workers
{
	my ($work) = @_;
	my $entries = 'select entries from tacho.statements_info';

	sql("$parallel; set max_parallel_workers_per_gather = 0; $work") for 1 .. 2;
	sql($entries);
	my $before = sql($entries);
	sql("$parallel; $work");
	return sql($entries) - $before;
}
is(made_by_workers('select work()'), 0, 'the owner of a function gets no entry for its parallel workers');

# the workers of an EXECUTE work for its statement
sql("select tacho.statements_reset(); $parallel; prepare counting as select count(md5(md5(g::text))) from big; execute counting");
my ($calls3, $executed) = split /\|/, row('count.md5', 'calls, user_time + system_time');
is($calls3, 1, 'an EXECUTE in parallel is one execution');
cmp_ok($executed, '>', $alone / 2, 'the EXECUTE has the CPU time of its workers');
is(made_by_workers('prepare counting as select count(md5(md5(g::text))) from big; execute counting'), 0, 'workers of the EXECUTE make no entry of their own');
# a background worker that aborts its transaction before its error is reported
sub config { chomp(my $value = `$ENV{PG_CONFIG} $_[0]`); return $value; }
system("cc -O1 -g -fPIC -shared -o $libraries/worker.so -I '" . config('--includedir-server')
	  . "' '$FindBin::RealBin/../unit/worker.c'") == 0
  or die 'could not build the library of a background worker';
sql(q{create function worker_run(text) returns bool strict language c as 'worker'});
sql('select tacho.statements_reset()');
is(sql(q{select worker_run('select 1 / (a - 1) as worked from generate_series(1, 3) a')}), 't',
	'a statement of a background worker fails');
is(row('as worked from', 'calls, errors, last_sqlstate'), '0|1|22012', 'the failed statement counts for the background worker');
is(sql('select sum(errors) from tacho.statements'), 1, 'the failed statement counts for no other role');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process of the server died');
done_testing();
