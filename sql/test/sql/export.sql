-- Exported rows: in the order of time, in a window, whatever the session's
-- settings. That "tacho import" reads them and answers alike is shown by
-- extension/test/t/200_sql_edition.pl.
set datestyle = 'German';
set timezone = 'Europe/Berlin';
create function test.sample(pid integer, blocked_by integer default null, lock tacho.waiting default null)
returns tacho.sampled
language sql
return row(pid, null, timestamptz '2026-03-01 00:00:00.123456+00', 'client backend', 'foreground', 5, 'shop', 10, 'ann', null, '[local]', 'active', 'Lock', 'relation', null,
	0, 7, null, null, timestamptz '2026-03-01 11:59:50+00', timestamptz '2026-03-01 11:59:40+00', timestamptz '2026-03-01 11:59:50+00', 3, null, null, null, blocked_by, lock)::tacho.sampled;
select tacho._store_tick(row(1, tacho._ms('2026-03-01 11:59:59+00'), 1000, 1, null, 250, 9)::tacho.tick, array[test.sample(1), test.sample(2, 1,
	tacho._waiting(true, 'relation', 5, 16400, null, null, 'ShareLock', 'RowExclusiveLock', '2026-03-01 11:59:51+00', null, null))]);
select tacho._pack(tacho._ms('2026-03-01 12:00+00'));
select tacho._store_tick(row(2, tacho._ms('2026-03-01 12:00+00'), 1000, 3, 'a "lock", timed out', null, 9)::tacho.tick, null);
select tacho._store_tick(row(3, tacho._ms('2026-03-01 12:00:01+00'), 1000, 1, null, null, 9)::tacho.tick, array[test.sample(2)]);

select test.equal(
	test.rows($$select time, tick, tick_status, tick_reason, connections, vcpus, pid, next_xid - 4294967296 - xmin as xmin_age, xid, blocked_by from tacho.export_sessions()$$),
	'("2026-03-01 11:59:59",1,ok,,9,2.50,1,3,,) ("2026-03-01 11:59:59",1,ok,,9,2.50,2,3,,1) '
	'("2026-03-01 12:00:00",2,failed,"a ""lock"", timed out",9,,,,,) ("2026-03-01 12:00:01",3,ok,,9,,2,3,,)', 'ticks and samples');
select test.equal(test.rows($$select backend_start, query_start, blocked_by_start from tacho.export_sessions() where pid = 2 limit 1$$),
	'("2026-03-01 00:00:00.123456","2026-03-01 11:59:50","2026-03-01 00:00:00.123456")', 'times are UTC');
select test.equal(test.rows($$select tick from tacho.export_sessions('2026-03-01 12:00+00', '2026-03-01 12:00:01+00')$$), '(2)', 'a window is half-open');
select test.equal(test.rows($$select tick from tacho.export_sessions(until => '2026-03-01 12:00+00')$$), '(1) (1)', 'a window may have no begin');
select test.equal(test.rows($$select tick from tacho.export_sessions('2026-03-01 12:00:00.0001+00', 'infinity')$$), '(3)', 'microseconds count');
select test.equal(test.rows($$select waiter, blocker, hard, locktype, lock_database, field1, field2, modes_held, mode_requested, wait_start from tacho.export_locks()$$),
	'(2,1,1,relation,5,16400,,8,5,"2026-03-01 11:59:51")', 'locks');

-- every kind of object comes back as it was written
create table tags (locktype text, v bigint[]);
insert into tags
select t, v from unnest('{relation,extend,page,tuple,frozenid,transactionid,virtualxid,spectoken,object,userlock,applytransaction}'::text[]) t,
	(values (array[5, 16400, 3, 4]::bigint[]), (array[0, 4294967295, 0, 65535])) x (v)
union all values ('advisory', array[5, 4294967295, 4294967289, 1]), ('advisory', array[5, 0, 7, 1]), ('advisory', array[5, 4294967295, 7, 2]);
select test.equal((select count(*)::text from tags), '25', 'kinds of objects');
select test.equal(test.rows($$
	select t.locktype, o.object
	from tags t, lateral (select tacho._lock_object(t.locktype, t.v[1], t.v[2], t.v[3], t.v[4]) as object) o, tacho._lock_fields(t.locktype, o.object) f
	where o.object <> tacho._lock_object(t.locktype, coalesce(f[1], 0), coalesce(f[2], 0), coalesce(f[3], 0), coalesce(f[4], 0))$$), null, 'their numbers');
select test.equal(tacho._lock_fields('advisory', 'advisory')::text, '{NULL}', 'an object that was not kept');

-- rows are made while they are read: no function call in the way that would keep them all
create function test.plan(query text) returns setof text language plpgsql as $$ begin return query execute 'explain ' || query; end $$;
select test.equal((select (count(*) filter (where p ~ 'Function Scan on export_'))::text from (
	select test.plan('select * from tacho.export_sessions()') union all select test.plan('select * from tacho.export_locks()')
	union all select test.plan('select * from tacho.export_texts()') union all select test.plan('select * from tacho.export_statements()')) x (p)), '0', 'rows are not collected first');

create role export_reader;
select tacho.grant_reader('export_reader');
set role export_reader;
select count(*) as read from tacho.export_sessions() \gset
reset role;
select test.equal(:'read', '4', 'a reader exports');
drop owned by export_reader;
drop role export_reader;
