/*
 * 00_schema.sql - tables
 *
 * Ticks enter `hot`, one row a tick. Once a minute they are merged into `pack`, a ring of
 * partitions that TRUNCATE empties. The dictionaries of `pack` are `session`, `activity`
 * and `awaited`, which rotate with it. Before a partition is emptied, its complete hours
 * are summed up in hour_tick, hour_key and hour_pair.
 *
 * Readers know only the format of pack. A pack has one tick or many, and each tick is in
 * exactly one pack. Ticks in hot have a smaller format, because each is a record of the
 * WAL of its own. 15_hot.sql shows them as packs.
 *
 * Columns of a pack:
 *   samples  sorted by session and tick. Sample i has a position: session number *
 *            n_ticks + tick number, both from 0, below 32,768. Positions are stored as
 *            ranges: run_lens[i] positions from run_ats[i] on.
 *            sessions[session number + 1] is the id in `session`.
 *   what[i]  id in `activity` - 32769. If an id does not fit, the array is NULL, and
 *            `wide` has the ids themselves.
 *   ticks    An array of ticks is NULL if all elements have the default. The default of
 *            tick_offsets is 0, 1, 2 …; of time_offsets tick_offsets * interval_ms; of
 *            intervals interval_ms; of statuses 1 (ok). Status 2 is late, 3 failed.
 *   blockers blockers[i] is the session that blocks sample blocked_at[i]. waits[i] is
 *            its wait, an id in `awaited`; null = not known.
 *   times    ms since 1970 UTC. *_starts and *_changes are relative to start_ms, and
 *            have one element an execution. Sample i has the last element whose
 *            start_at is not above i. If start_at is NULL, each sample has one.
 *
 * In `activity` the empty string and 0 mean null, so that an index can find a row.
 *
 * Locks: a session that adds ticks or switches the ring holds mutex_sampler. A session
 * that packs, sums up or rotates holds mutex_maintenance, and takes it first. Both are
 * tables, because any role could hold an advisory lock.
 */
do $$
begin
	if current_setting('server_version_num')::integer < 150000 then
		raise exception 'tacho needs PostgreSQL 15 or later'
			using errcode = 'feature_not_supported';
	end if;
	if exists (select from pg_extension where extname = 'tacho') then
		raise exception 'the extension tacho is installed in this database'
			using errcode = 'duplicate_object',
				detail = 'It has the functions of the SQL edition, and records more.',
				hint = 'Use it; or install the SQL edition into another database; or drop extension tacho, which leaves its history in files.';
	-- to_regclass() needs the right to use the schema
	elsif exists (select from pg_class where relname = 'setting' and relnamespace = to_regnamespace('tacho')) then
		raise exception 'tacho is installed already'
			using errcode = 'duplicate_schema',
				hint = 'Run sql/upgrade.sql, which keeps the history; tacho.uninstall(''yes'') removes it.';
	elsif to_regnamespace('tacho') is not null then
		raise exception 'schema "tacho" already exists'
			using errcode = 'duplicate_schema',
				detail = format('It is %s, and belongs to role "%s".',
					case when exists (select from pg_depend d
							where d.refclassid = 'pg_namespace'::regclass and d.refobjid = to_regnamespace('tacho'))
						then 'not of tacho' else 'empty' end,
					(select nspowner::regrole from pg_namespace where nspname = 'tacho')),
				hint = 'Rename or drop it, or install into another database.';
	elsif not has_database_privilege(current_database(), 'create') then
		raise exception 'permission denied for database "%"', current_database()
			using errcode = 'insufficient_privilege',
				hint = format('Its owner may say: grant create on database %I to %I', current_database(), current_user);
	end if;
end
$$;

create schema tacho;
comment on schema tacho is
'tacho, SQL edition: what the sessions of this server did and waited for. Start with: select * from tacho.periods();';
revoke all on schema tacho from public;

create table tacho.setting (
	only_row boolean primary key default true check (only_row),
	version text not null default '0.1.0',
	node text not null,
	enabled boolean not null default false,
	sample_interval interval not null default '1 second',
	partitions integer not null default 4,
	period interval not null default '1 day',
	hour_retention interval not null default '400 days',
	record_starts boolean not null default true,
	dictionary_limit integer not null default 500000,
	text_limit integer not null default 20000,
	utility_literals boolean not null default false,
	statements boolean not null default true,
	statement_retention interval not null default '8 days',
	vcpus numeric,
	installed_at timestamptz not null default now()
);
comment on table tacho.setting is 'settings of tacho, one row; change them with tacho.configure()';
insert into tacho.setting (node)
values (substr(md5(gen_random_uuid()::text), 1, 16));

create table tacho.mutex_sampler (nothing integer);
comment on table tacho.mutex_sampler is 'empty; locked by whoever adds ticks';
create table tacho.mutex_maintenance (nothing integer);
comment on table tacho.mutex_maintenance is 'empty; locked by whoever packs, sums up or rotates';

create table tacho.counter (
	name text primary key,
	value bigint not null
);
comment on table tacho.counter is 'how often something went wrong since the installation';

create table tacho.ring (
	slot smallint primary key,
	is_current boolean not null default false,
	since_ms bigint not null default 0,
	generation bigint not null default 0
);
comment on table tacho.ring is 'partitions of the ring; since_ms is when one became the current one, generation counts rotations, 0 = never used';
create sequence tacho.generation;
comment on sequence tacho.generation is 'rotations; read by readers whose snapshot may be older than the ring';

create table tacho.watermark (
	name text primary key,
	ms bigint not null
);
comment on table tacho.watermark is 'how far the history is packed and summed up: every tick before this time';
insert into tacho.watermark (name, ms)
values ('pack', 0), ('hour', 0), ('statements', 0), ('texts', 0);

create table tacho.failure (
	step text primary key,
	failed_at timestamptz not null,
	message text not null
);
comment on table tacho.failure is 'steps of the maintenance that failed and have not worked since';

create table tacho.session (
	slot smallint not null,
	id integer not null,
	pid integer not null,
	leader integer not null,
	backend_start timestamptz,
	backend_type text,
	category text,
	database_oid oid,
	database text,
	user_oid oid,
	username text,
	application text,
	client_addr text,
	primary key (slot, id)
) partition by list (slot);
comment on table tacho.session is 'sessions: identity (pid, backend_start) and attributes; a change of an attribute is a new row';
create index on tacho.session (slot, pid);

create table tacho.activity (
	slot smallint not null,
	id integer not null,
	marked smallint not null default 0,
	query_id bigint not null default 0,
	plan_id bigint not null default 0,
	text_id integer not null default 0,
	progress_relation bigint not null default 0,
	wait_event_type text not null default '',
	wait_event text not null default '',
	state text not null default '',
	cpu text not null default '',
	progress_command text not null default '',
	primary key (slot, id)
) partition by list (slot);
comment on table tacho.activity is 'distinct combinations of what a session did; marked: bit 0 = recorded only because it blocks others';
create index on tacho.activity (slot, query_id, wait_event);

create table tacho.awaited (
	slot smallint not null,
	id integer not null,
	is_hard boolean,
	locktype text not null,
	object text not null,
	lock_database bigint,
	lock_relation bigint,
	mode text,
	mode_held text,
	wait_start timestamptz not null,
	prepared_xid bigint,
	prepared_gid text,
	is_imported boolean,
	primary key (slot, id)
) partition by list (slot);
comment on table tacho.awaited is 'waits for locks: what is locked, how, and since when somebody waits; see the head of 18_locks.sql';
create index on tacho.awaited (slot, wait_start, object);

create table tacho.pack (
	first_tick bigint not null,
	start_ms bigint not null,
	last_ms bigint not null,
	slot smallint not null,
	n_ticks smallint not null,
	interval_ms integer not null,
	observed_ms integer not null,
	failed_ms integer not null,
	n_failed smallint not null,
	tick_offsets integer[],
	time_offsets integer[],
	intervals integer[],
	statuses smallint[],
	reasons text[],
	vcpus_x100 integer[],
	connections smallint[],
	sessions integer[] not null,
	run_ats smallint[] not null,
	run_lens smallint[] not null,
	what smallint[],
	wide integer[],
	blocked_at integer[],
	blockers integer[],
	start_at integer[],
	query_starts bigint[],
	xact_starts bigint[],
	state_changes bigint[],
	xmin_ages integer[],
	xid_ages integer[],
	waits integer[]
) partition by list (slot);
comment on table tacho.pack is 'session samples of up to a minute; see the head of 00_schema.sql';
create index on tacho.pack (start_ms);

create table tacho.hot (
	start_ms bigint primary key,
	tick bigint not null,
	interval_ms integer not null,
	slot smallint not null,
	connections smallint,
	session_base integer,
	status smallint,
	is_apart boolean,
	vcpus_x100 integer,
	samples integer[],
	wide bigint[],
	xmin_ages integer[],
	xid_ages integer[],
	start_at smallint[],
	query_starts bigint[],
	xact_starts bigint[],
	state_changes bigint[],
	blocked_at integer[],
	blockers integer[],
	reason text,
	waits integer[]
);
comment on table tacho.hot is 'ticks of the last minutes, one row each; see the head of 15_hot.sql';

create table tacho.text (
	id integer generated always as identity primary key,
	query_id bigint not null,
	database text,
	username text,
	body text not null
);
comment on table tacho.text is 'query texts by query id and database, and of activity without a query id';
create unique index on tacho.text (query_id, database, md5(body)) nulls not distinct;

create table tacho.text_missing (
	query_id bigint primary key,
	tries integer not null,
	retry_ms bigint not null
);
comment on table tacho.text_missing is 'query ids whose text was not found or had no room; retry_ms is the time of the next look-up';

create table tacho.marker (
	marker_time timestamptz not null,
	kind text not null,
	period_start timestamptz,
	period_end timestamptz,
	detail text,
	command text,
	object_class text,
	object_oid bigint,
	object_name text,
	database text,
	username text,
	application text,
	client_addr text,
	old_value text,
	new_value text,
	outcome text,
	left_out bigint
);
comment on table tacho.marker is 'events that explain the history; of a change detail is what no other column has';
create index on tacho.marker (marker_time);

create table tacho.word (
	id integer generated always as identity primary key,
	value text
);
comment on table tacho.word is 'keys of the hour rows';
create unique index on tacho.word (value) nulls not distinct;

create table tacho.hour_tick (
	hour integer primary key,
	last_ms bigint not null,
	observed_ms integer[] not null,
	failed_ms integer[] not null,
	n_observed integer[] not null,
	n_failed integer[] not null,
	intervals_ms integer[] not null,
	vcpus_x100 integer[]
);
comment on table tacho.hour_tick is 'observed ticks by minute of an hour; hour counts from 1970 UTC';

create table tacho.hour_key (
	hour integer not null,
	dimension smallint not null,
	first_minute smallint not null,
	key integer not null,
	sessions integer not null,
	sum_ms bigint not null,
	unit_ms integer not null,
	weights smallint[],
	wide integer[],
	peaks smallint[],
	primary key (dimension, hour, key)
);
comment on table tacho.hour_key is 'load (scope load) by key and minute: weights[i] * unit_ms in minute first_minute + i - 1, in all sum_ms; sessions: most in one tick of the hour, peaks: of each minute';

create table tacho.hour_pair (
	hour integer not null,
	query integer not null,
	unit_ms integer not null,
	waits integer[] not null,
	sessions smallint[] not null,
	weights integer[] not null,
	primary key (query, hour)
);
comment on table tacho.hour_pair is 'load (scope load) by query id, wait event and hour: weights[i] * unit_ms for waits[i], at most sessions[i] in one tick';

create procedure tacho._add_partitions(first_slot integer, last_slot integer)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
	v_slot integer;
	v_table text;
	v_reader name;
begin
	for v_slot in first_slot .. last_slot loop
		foreach v_table in array array['session', 'activity', 'awaited', 'pack'] loop
			execute format('create %4$s table tacho.%1$I partition of tacho.%2$I for values in (%3$s)',
				v_table || '_' || v_slot, v_table, v_slot,
				(select case k.relpersistence when 'u' then 'unlogged' else '' end from pg_class k where k.oid = 'tacho.hot'::regclass));
			-- roles that may read the other partitions
			for v_reader in
				select r.rolname
				from pg_class k
				cross join lateral aclexplode(k.relacl) a
				join pg_roles r on r.oid = a.grantee
				where k.oid = format('tacho.%I', v_table)::regclass
					and a.privilege_type = 'SELECT'
					and a.grantee <> k.relowner
			loop
				execute format('grant select on tacho.%I to %I', v_table || '_' || v_slot, v_reader);
			end loop;
		end loop;
		insert into tacho.ring (slot, is_current, generation)
		values (v_slot, v_slot = 0, case when v_slot = 0 then 1 else 0 end);
	end loop;
end
$$;
comment on procedure tacho._add_partitions is 'creates partitions of the ring';
call tacho._add_partitions(0, 3);
