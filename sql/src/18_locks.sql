/*
 * 18_locks.sql - the lock that a session waits for
 *
 * Rows of `awaited`, by slot of the ring. A wait is one row for as long as it lasts.
 * Objects are written as the extension writes them: the type, then its numbers. If the
 * dictionary is full, waits are stored without their start; all waits for an object are
 * one row. If these are too many, too, `object` is the type alone.
 */
create type tacho.waiting as (
	is_hard boolean,
	locktype text,
	object text,
	lock_database bigint,
	lock_relation bigint,
	mode text,
	mode_held text,
	wait_start timestamptz,
	prepared_xid bigint,
	prepared_gid text,
	is_imported boolean
);
comment on type tacho.waiting is
'wait of a session for a lock; is_hard: the blocker holds it, false: it is only ahead in the queue, null: no blocker was seen; prepared_*: the blocker is a prepared transaction; is_imported: its numbers may be of another server, null = not';

-- From the weakest to the strongest.
create function tacho._lock_modes()
returns text[]
language sql immutable parallel safe
return array['AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock',
	'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'];
comment on function tacho._lock_modes is 'names of lock modes by number';

create function tacho._lock_object(locktype text, database bigint, a bigint, b bigint, c bigint)
returns text
language sql immutable parallel safe
return locktype || ' ' || case
	when locktype in ('relation', 'extend') then format('%s/%s', database, a)
	when locktype = 'page' then format('%s/%s block %s', database, a, b)
	when locktype = 'tuple' then format('%s/%s (%s,%s)', database, a, b, c)
	when locktype = 'frozenid' then database::text
	when locktype = 'transactionid' then a::text
	when locktype in ('virtualxid', 'spectoken') then format('%s/%s', a, b)
	when locktype = 'advisory' and c = 1 then (a << 32 | b)::text
	when locktype = 'advisory' then format('%s,%s', a::bit(32)::integer, b::bit(32)::integer)
	else format('%s/%s/%s/%s', database, a, b, c)
end;
comment on function tacho._lock_object is 'a locked object as text, from its numbers';

create function tacho._waiting(is_hard boolean, locktype text, database bigint, a bigint, b bigint, c bigint,
	mode text, mode_held text, wait_start timestamptz, prepared_xid bigint, prepared_gid text, is_imported boolean default null)
returns tacho.waiting
language sql immutable parallel safe
return row(
	is_hard,
	locktype,
	tacho._lock_object(locktype, coalesce(database, 0), coalesce(a, 0), coalesce(b, 0), coalesce(c, 0)),
	case when locktype in ('relation', 'extend', 'page', 'tuple') then coalesce(database, 0) end,
	case when locktype in ('relation', 'extend', 'page', 'tuple') then a end,
	mode,
	mode_held,
	coalesce(wait_start, '-infinity'),
	prepared_xid,
	prepared_gid,
	is_imported)::tacho.waiting;
comment on function tacho._waiting is 'a wait from the numbers of what is locked; wait_start -infinity is not known';

create function tacho._coarser(w tacho.waiting, level integer)
returns tacho.waiting
language sql immutable parallel safe
return case level
	when 0 then w
	when 1 then row((w).is_hard, (w).locktype, (w).object, (w).lock_database, (w).lock_relation, (w).mode, (w).mode_held,
		'-infinity', (w).prepared_xid, (w).prepared_gid, (w).is_imported)::tacho.waiting
	else row((w).is_hard, (w).locktype, (w).locktype, null, null, (w).mode, (w).mode_held, '-infinity', null, null, (w).is_imported)::tacho.waiting
end;
comment on function tacho._coarser is 'a wait without (1) since when, (2) the object, too';
