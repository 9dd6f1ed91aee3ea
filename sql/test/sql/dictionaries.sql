-- Dictionaries are bounded: entries without room are counted, and no session is lost.
update tacho.setting set dictionary_limit = 10;
create table line as
select t as time, 100 + s + 40 * n as pid, 'db' as database, 'IO' as wait_event_type, 'Read' || s % 2 as wait_event, s + 100 * n as query_id
from generate_series(0, 5) n,
	lateral (select timestamptz '2026-03-01 20:00+00' + n * interval '1 second') x (t),
	generate_series(1, 8) s;
select tacho.import_sessions('line');
select test.equal((select backend_seconds::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:01+00')), '48.0000', 'every session counts');
select test.equal((select peak_sessions::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:01+00')), '8', 'every session counts in its tick');
select test.equal(test.rows($$select key, backend_seconds from tacho.top('wait_event', '2026-03-01 20:00+00', '2026-03-01 20:01+00')$$),
	'(IO:Read0,24.0000) (IO:Read1,24.0000)', 'waits are kept');
select test.equal((select string_agg(name || ' ' || value, ', ' order by name) from tacho.counter),
	'activities without query 32, sessions without identity 38', 'sessions and activities without room are counted');
select test.equal((select string_agg(metric || ' ' || value, ', ' order by metric) from tacho.status() where metric like '%without%'),
	'activities without query 32, sessions without identity 38', 'status() shows their numbers');
select test.equal((select count(*)::text from tacho.session) || ' ' || (select count(*) from tacho.activity), '11 18', 'dictionaries stay small');

-- ids that do not fit into two bytes
update tacho.setting set dictionary_limit = 500000;
insert into tacho.activity (slot, id, query_id) select 0, i, -i from generate_series(19, 70000) i;
create table far as
select timestamptz '2026-03-01 20:00:10+00' + n * interval '1 second' as time, s as pid, 'Lock' as wait_event_type, 'tuple' as wait_event, 5000 + s as query_id
from generate_series(0, 2) n, generate_series(1, 2) s;
select tacho.import_sessions('far');
create view answers as
select 'top' as q, test.rows($$select key, by_key, backend_seconds from tacho.top('query_id', '2026-03-01 20:00:10+00', '2026-03-01 20:01+00', by => 'wait_event')$$) as rows
union all
select 'samples', test.rows($$select tick, pid, query_id, wait_event from tacho.samples('2026-03-01 20:00:10+00', '2026-03-01 20:01+00')$$);
create table before as select * from answers;
select test.equal((select rows from before where q = 'top'), '(5001,Lock:tuple,3.0000) (5002,Lock:tuple,3.0000)', 'ids above 65,536');
select tacho._pack(tacho._ms('2026-03-02'));
select test.equal((select string_agg(case when wide is null then 'narrow' else 'wide' end, ' ' order by start_ms) from tacho.pack), 'wide', 'a wide pack');
select test.equal((select string_agg(a::text, ' ') from answers a), (select string_agg(b::text, ' ') from before b), 'packed the same');

-- a dropped database keeps its name
select test.equal((select avg_aas::text from tacho.aas('2026-03-01 20:00+00', '2026-03-01 20:00:01+00', database => 'db')), '8.0000', 'the database "db" does not exist');

-- lock waits without room lose since when, then the object; each has its row
truncate tacho.counter;
create function test.store_waits(first integer, last integer, relations integer, room integer)
returns integer
language sql
return cardinality(array_remove(tacho._store_waits((select slot from tacho.ring where is_current), array(
	select jsonb_populate_record(null::tacho.sampled, jsonb_build_object('pid', n, 'lock', jsonb_build_object(
		'is_hard', true, 'locktype', 'relation', 'object', 'relation 5/' || n % relations, 'lock_relation', n % relations,
		'mode', 'ShareLock', 'wait_start', timestamptz '2026-03-01 20:00+00' + n * interval '1 second')))
	from generate_series(first, last) n), room), null));
create view waits as
select count(*) filter (where wait_start > '-infinity') as whole, count(*) filter (where wait_start = '-infinity' and object ~ '/') as no_start,
	string_agg(concat_ws(' ', object, lock_relation, mode, wait_start), ', ') filter (where object !~ '/') as no_object
from tacho.awaited;
create view wait_counters as
select string_agg(name || ' ' || value, ', ' order by name) as counters from tacho.counter where name like '%waits%';
select test.equal(test.store_waits(1, 20, 2, 20)::text, '20', 'waits with room');
select test.equal(test.store_waits(1, 20, 2, 20)::text, '20', 'the same waits again need no room');
select test.equal((select waits::text from waits), '(20,0,)', 'a wait is one row');
select test.equal((select counters from wait_counters), null, 'nothing was left out');
select test.equal(test.store_waits(21, 520, 2, 20)::text, '500', 'fresh waiters for the same without room');
select test.equal((select waits::text from waits), '(20,2,)', 'share a row of the object');
select test.equal((select counters from wait_counters), 'lock waits without start 500', 'waits without a start are counted');
select test.equal(test.store_waits(521, 1020, 500, 20)::text, '500', 'too many objects');
select test.equal((select waits::text from waits), '(20,2,"relation ShareLock -infinity")', 'share a row of the mode');
select test.equal((select counters from wait_counters), 'lock waits without object 498, lock waits without start 1000', 'waits without an object are counted');
select test.equal((select value from tacho.status() where metric = 'waits_in_partition'), (select max(id)::text from tacho.awaited), 'status() says how many');

-- the greatest limit leaves numbers for entries without room
select test.equal(test.error($$select tacho.configure('dictionary_limit', '1000000001')$$),
	'22023: dictionary_limit must be between 1000 and 1000000000, text_limit at least 0, vcpus positive', 'a limit that ids cannot reach');
select tacho.configure('dictionary_limit', '1000000000');
create table last as
select timestamptz '2026-03-01 20:01+00' as time, 7 as pid, 'Lock' as wait_event_type, 'tuple' as wait_event, 7 as query_id;
select test.equal(tacho.import_sessions('last')::text, '1', 'a tick is stored with the greatest limit');

-- texts that came with samples and have no room
update tacho.setting set text_limit = (select count(*) + 1 from tacho.text);
truncate tacho.counter;
create table vacuums as
select timestamptz '2026-03-01 20:02+00' as time, n as pid, 'autovacuum: VACUUM t' || n as query_text from generate_series(1, 3) n;
select tacho.import_sessions('vacuums');
select test.equal((select count(*)::text from tacho.text where body ~ 'VACUUM'), '1', 'one has room');
select test.equal((select string_agg(name || ' ' || value, ', ') from tacho.counter), 'texts without room 2', 'the others are counted');
