-- Everybody sees the counters; texts and query ids only of the own statements,
-- unless a member of pg_read_all_stats.
create extension tacho;
create role regress_alice;
create role regress_bob;
create role regress_reader in role pg_read_all_stats;
select tacho.statements_reset() is not null as reset;
set role regress_alice;
select 1 as of_alice;
set role regress_bob;
select 1 as of_bob;
select 2 as of_bob;
select r.rolname, s.queryid is null as hidden, s.query, s.calls
	from tacho.statements s join pg_roles r on r.oid = s.userid
	where s.query ~ 'as of_' or r.rolname = 'regress_alice'
	order by r.rolname, s.query collate "C";
select count(*) from tacho.statements(false) where query is not null;
-- nor what last failed, of a statement or outside of one
select 1 / (bob - bob) as bob from (select 1 as bob) b;
selec 1;
set role regress_alice;
select count(*) as failed, count(last_sqlstate) as states, count(last_error_at) as times
	from tacho.statements s join pg_roles r on r.oid = s.userid
	where r.rolname = 'regress_bob' and s.errors > 0;
set role regress_bob;
select last_sqlstate, last_error_at <= now() as seen
	from tacho.statements s join pg_roles r on r.oid = s.userid
	where r.rolname = 'regress_bob' and s.errors > 0 order by 1;
-- not for everybody
select tacho.statements_reset();
select tacho.install_pg_stat_statements();
select tacho.uninstall_pg_stat_statements();
set role regress_reader;
select r.rolname, s.queryid is null as hidden, s.query, s.calls
	from tacho.statements s join pg_roles r on r.oid = s.userid
	where r.rolname in ('regress_alice', 'regress_bob') and s.query ~ 'as of_' and s.query !~ 'tacho'
	order by r.rolname, s.query collate "C";
reset role;
-- superuser-only by default, but can be granted
grant execute on function tacho.statements_reset to regress_bob;
set role regress_bob;
select tacho.statements_reset() is not null as reset;
reset role;
-- not in place of pg_stat_statements here
select tacho.install_pg_stat_statements();
drop extension tacho;
drop role regress_alice, regress_bob, regress_reader;
