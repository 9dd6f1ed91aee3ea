/*
 * 05_dimensions.sql - the dimensions by which rows are filtered and grouped
 *
 * `side` is the dictionary that has the key. `expression` is the key of one of its rows
 * as text, null = missing. blocked_by and root_blocker belong to a sample, not to a
 * dictionary row: their side is "blocker", and their expression is the key of the
 * blocking session. `position` is part of stored rows (hour_key), so never change one.
 */
create table tacho.dimension (
	position smallint primary key,
	name text not null unique,
	side text not null check (side in ('activity', 'session', 'blocker')),
	is_number boolean not null,
	in_hours boolean not null default false,
	labels text[],
	expression text not null
);
comment on table tacho.dimension is 'the dimensions, in the order of the catalog; in_hours: summed up by hour';

insert into tacho.dimension (position, name, side, is_number, in_hours, labels, expression)
values
	(1, 'wait_event_type', 'activity', false, true, null,
		$$case when wait_event_type <> '' then wait_event_type when wait_event <> '' then null when cpu <> '' then 'CPU' end$$),
	(2, 'wait_event', 'activity', false, true, null,
		$$case when wait_event_type <> '' and wait_event <> '' then wait_event_type || ':' || wait_event when wait_event_type <> '' or wait_event <> '' then wait_event_type || wait_event when cpu like 'CPU%' then cpu when cpu <> '' then 'CPU:' || cpu end$$),
	(3, 'query_id', 'activity', true, true, null, $$nullif(query_id, 0)::text$$),
	(4, 'plan_id', 'activity', true, false, null, $$nullif(plan_id, 0)::text$$),
	(5, 'tags', 'activity', false, false, null, $$null::text$$),
	(6, 'pid', 'session', true, false, null, $$nullif(pid, 0)::text$$),
	(7, 'backend_type', 'session', false, false, null, $$backend_type$$),
	(8, 'category', 'session', false, false, array['foreground', 'maintenance', 'background', 'replication'], $$category$$),
	(9, 'database', 'session', false, true, null, $$database$$),
	(10, 'username', 'session', false, true, null, $$username$$),
	(11, 'application', 'session', false, true, null, $$application$$),
	(12, 'client_addr', 'session', false, false, null, $$client_addr$$),
	(13, 'leader', 'session', true, false, null, $$nullif(leader, 0)::text$$),
	(14, 'state', 'activity', false, false, array['active', 'idle', 'idle in transaction', 'idle in transaction (aborted)', 'fastpath function call', 'disabled', 'starting'], $$nullif(state, '')$$),
	(15, 'cpu', 'activity', false, false, array['CPU*', 'running', 'runnable', 'uninstrumented'], $$nullif(cpu, '')$$),
	(16, 'blocked_by', 'blocker', true, false, null, $$nullif(pid, 0)::text$$),
	(17, 'root_blocker', 'blocker', true, false, null, $$nullif(pid, 0)::text$$);

create function tacho._category(backend_type text)
returns text
language sql immutable parallel safe
return case
	when backend_type is null or backend_type in ('client backend', 'parallel worker') then 'foreground'
	when backend_type in ('autovacuum worker', 'autovacuum launcher') then 'maintenance'
	when backend_type in ('walsender', 'walreceiver') or backend_type like 'logical replication%' then 'replication'
	else 'background'
end;
comment on function tacho._category is 'category of a type of process';
