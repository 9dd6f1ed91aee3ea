-- Attributes of a blocker in blocking(), and sessions counted for workers and for
-- sessions with several rows in the dictionary.
create table line (time timestamptz, pid integer, backend_start timestamptz, leader_pid integer, application text, state text, blocked_by integer, marked integer, query_id bigint, xact_start timestamptz, tick_status text);
insert into line
select t, x.*
from (values (timestamptz '2026-03-01 20:00:00+00', 'old', null), ('2026-03-01 20:00:01+00', 'new', null)) k (t, application, s)
cross join lateral (values
	(1, timestamptz '2026-03-01 19:00+00', null::integer, 'w', 'active', 9, 0, 11::bigint, null::timestamptz, s),
	-- a worker of 1 waits for the same lock
	(2, '2026-03-01 19:30+00', 1, 'w', 'active', 9, 0, 11, null, s),
	-- members of a group do not block each other
	(3, '2026-03-01 19:30+00', 1, 'w', 'active', 1, 0, 11, null, s),
	(4, '2026-03-01 19:00+00', null, 'w', 'active', 1, 0, 12, null, s),
	(9, '2026-03-01 18:00+00', null, k.application, 'idle in transaction', null, 0, 99, '2026-03-01 19:59:30.5+00', s)) x;
insert into line (time, tick_status) values ('2026-03-01 20:00:02+00', 'failed');
insert into line
select '2026-03-01 20:00:05+00', x.*
from (values
	(4, timestamptz '2026-03-01 19:00+00', null::integer, 'w', 'active', 9, 0, 12::bigint, null::timestamptz, null),
	(9, '2026-03-01 20:00:04+00', null, 'reused', 'active', null, 0, null, null, null)) x;
select tacho.import_sessions('line');

create view heads as
select tree, kind, backend_start, application, state, xact_age, query_id, blocked_seconds, waiters, depth, waited, relation, first_seen::time, last_seen::time
from tacho.blocking(since => '2026-03-01 20:00+00', until => '2026-03-01 20:01+00');
create function test.check_blocking(mode text)
returns void
language plpgsql
as $$
begin
	perform test.equal(test.rows('select * from heads'),
		'(9,session,"2026-03-01 18:00:00+00",new,"idle in transaction",00:00:30.5,99,8.0000,4,2,,,20:00:00,20:00:01)'
		' (9,session,"2026-03-01 20:00:04+00",reused,active,,,1.0000,1,1,,,20:00:05,20:00:05)', mode || ': heads');
	perform test.equal(test.rows($q$select tree, level, waiters, depth from tacho.blocking(at => '2026-03-01 20:00:04+00')$q$),
		'(9,0,2,2) ("  1",1,1,1) ("    4",2,0,0)', mode || ': a group is one, a failed tick shows nothing');
	perform test.equal(test.rows($q$select tree from tacho.blocking(at => '2026-03-01 20:00:05+00')$q$), '(9) ("  4")', mode || ': the moment itself');
	perform test.equal(test.rows($q$select tree from tacho.blocking(at => '2026-03-01 20:01:05.5+00')$q$), null, mode || ': a minute is too far');
end
$$;
select test.check_blocking('hot');
select tacho._pack(tacho._ms(now()));
select test.check_blocking('packed');
select test.equal(test.error($$select * from tacho.blocking(n => 0)$$), '22023: n must be at least 1', 'n');
select test.equal(test.error($$select * from tacho.blocking(at => 'infinity')$$), '22023: since and until must be finite', 'at');

create role blocking_reader;
select tacho.grant_reader('blocking_reader');
grant usage on schema test to blocking_reader;
set role blocking_reader;
select test.equal((select string_agg(tree, ' ') from tacho.blocking(since => '2026-03-01 20:00+00', until => '2026-03-01 20:01+00')), '9 9', 'a reader may ask');
reset role;
select tacho.revoke_reader('blocking_reader');
drop owned by blocking_reader;
drop role blocking_reader;

-- lock waits of a table of texts: times are compared as times, blockers as numbers, holders come first
create table texts (time text, pid text, backend_start text, wait_event_type text);
insert into texts select '2026-03-02T10:00:00Z', pid::text, '2026-03-02T09:00:00Z', 'Lock' from generate_series(1, 10) pid;
insert into texts values ('2026-03-02T10:00:00Z', '11', '', 'Lock');
create table lock_texts (time text, waiter text, waiter_start text, blocker text, hard text, locktype text, lock_database text, field1 text, mode_requested text);
insert into lock_texts
select '2026-03-02 10:00:00.000+00', x.waiter, x.start, x.blocker, x.hard, 'relation', '5', '16400', '8'
from (values ('1', '2026-03-02 09:00+00', '10', '1'), ('1', '2026-03-02 10:00+01', '9', '1'),
	('2', '2026-03-02 09:00+00', '3', ''), ('2', '2026-03-02 09:00+00', '4', '1'),
	('3', '2026-03-02 08:00+00', '4', '1'), ('11', '', '4', '1')) x (waiter, start, blocker, hard);
select test.equal(tacho.import_sessions('texts', locks => 'lock_texts')::text, '1', 'a tick with lock waits as texts');
select test.equal(test.rows($$select tree, via, mode from tacho.blocking(at => '2026-03-02 10:00+00')$$),
	'("(unknown)",,) ("  3",,) ("  4",,) ("    2",lock,AccessExclusiveLock) ("    11",lock,AccessExclusiveLock) ("  5",,) ("  6",,) ("  7",,) ("  8",,)'
	' ("  9",,) ("    1",lock,AccessExclusiveLock) ("  10",,)', 'one blocker each, and those of whom none is known');

-- relation numbers of another server name no relation here; numbers recorded here do
insert into texts (time, pid, wait_event_type) values ('2026-03-02T10:00:10Z', '1', 'Lock');
insert into lock_texts
select '2026-03-02T10:00:10Z', '1', '', '9', '1', 'relation', d.oid::text, 'line'::regclass::oid::text, '8'
from pg_database d where d.datname = current_database();
delete from texts where time < '2026-03-02T10:00:10Z';
select test.equal(tacho.import_sessions('texts', locks => 'lock_texts')::text, '1', 'a lock on a number known here');
create view locked as
select h.relation, h.lock_relation = 'line'::regclass::oid as same, h.lock_database = d.oid as here
from tacho.blocking(since => '2026-03-02 10:00:10+00', until => '2026-03-02 10:00:11+00') h
join pg_database d on d.datname = current_database();
select test.equal((select locked::text from locked), '(,t,t)', 'an imported lock has its numbers, and no name');
update tacho.awaited set is_imported = null;
select test.equal((select locked::text from locked), '(public.line,t,t)', 'one recorded here has its name');
