-- Who sees what: members of pg_read_all_stats everything, others nothing; who
-- is granted a function sees the own sessions.
create extension tacho;
\getenv testdir PG_ABS_SRCDIR
\set history :testdir /data/history.psql
\set node 00000000000000b1
\i :history
create role regress_alice;
create role regress_member;
create role regress_nobody;
grant pg_read_all_stats to regress_member;
grant execute on function tacho.top, tacho.aas, tacho.samples to regress_alice;
grant all on schema public to regress_alice;
\set window 'since => ''2026-01-05 12:00+00'', until => ''2026-01-05 12:00:20+00'', node => ''00000000000000b1'''
\set VERBOSITY terse

set role regress_nobody;
select key, avg_aas from tacho.top('username', :window);
select * from tacho.status();

set role regress_member;
select key, avg_aas from tacho.top('username', :window);
select count(*) > 0 as any from tacho.status();

set role regress_alice;
select key, avg_aas from tacho.top('username', :window);
select distinct username from tacho.samples(:window, n => null, scope => 'all');
select avg_aas from tacho.aas(:window, username => 'regress_bob');
select key, query_text from tacho.top('query_id', :window, scope => 'foreground');
select * from tacho.status();

-- functions with helpers, as SECURITY.md lists them; overhead() reads a view of the server, too
reset role;
create role regress_carol;
grant execute on function tacho.report, tacho._report, tacho._with_relations, tacho._relation, tacho._moment to regress_carol;
grant execute on function tacho.blocking, tacho._blocking, tacho.changes, tacho._changes, tacho.overhead, tacho._overhead to regress_carol;
set role regress_carol;
select count(*) from tacho.report(:window);
select count(*) >= 0 as any from tacho.blocking(:window);
select count(*) >= 0 as any from tacho.changes(at => '2026-01-05 12:00:10+00', node => '00000000000000b1');
select count(*) from tacho.overhead();
reset role;
drop owned by regress_carol;
drop role regress_carol;

-- the role of the moment counts, as in pg_stat_activity
reset role;
create function public.load_of_all() returns numeric
language sql security definer set search_path = pg_catalog, tacho
as $$select avg_aas from aas(since => '2026-01-05 12:00+00', until => '2026-01-05 12:00:20+00', node => '00000000000000b1')$$;
set role regress_alice;
select public.load_of_all(), avg_aas from tacho.aas(:window);

-- a member that takes on another role sees what that role sees
reset role;
grant regress_alice to regress_member;
set session authorization regress_member;
select avg_aas from tacho.aas(:window);
set role regress_alice;
select avg_aas from tacho.aas(:window);
reset session authorization;

drop function public.load_of_all();
drop extension tacho;
revoke all on schema public from regress_alice;
drop role regress_alice, regress_member, regress_nobody;
