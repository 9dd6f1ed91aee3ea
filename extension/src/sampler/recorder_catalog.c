/*
 * recorder_catalog.c
 *	  Every tacho.catalog_interval the sampler records names, kinds, sizes and
 *	  use of tables and indexes.
 *
 * recorder_tables.c names those that did most. Their databases are read by
 * the catalog worker, one after the other: these tables, and all their
 * indexes. So an index that no query uses is known, too. The sampler then
 * reads the counters of all known tables and indexes, without a connection. A
 * row is recorded once a day and when something has changed.
 *
 * Example: orders is among the 100 that did most, its index orders_old is not.
 * The worker reads both. A week later the newest row of orders_old has as many
 * scans as the first. No query has used it.
 *
 * A reading of tables leaves rows in the statistics of system catalogs.
 * Therefore a system catalog that did much is no reason to connect. A template
 * and a database without connections are never read. A database that
 * a session has locked is left for the next round. When a database may have
 * been dropped, the next round looks at all of them.
 *
 * Locking: none of its own; see relation_stats.c and catalog_shared.c. Memory:
 * about 130 bytes for each table and index, at most MAX_KNOWN.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "core/clocks.h"
#include "core/compat.h"
#include "core/guarded.h"
#include "core/settings.h"
#include "history/dictionary.h"
#include "history/names.h"
#include "history/writer.h"
#include "sampler/catalog_shared.h"
#include "sampler/catalog_worker.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"
#include "sampler/recorder_catalog.h"
#include "sampler/recorder_relations.h"

#define TURN_US			250
#define BATCH			16		/* entries between two readings of the clock */
#define MAX_KNOWN		8192
#define MAX_KEPT		6144	/* more are forgotten at the end of the day */
#define FIRST_ROOM		256
#define PATIENCE_US		60000000	/* for the postmaster to start a worker */
#define TRIES			3		/* to read a busy entry */
#define INVALID_DATABASE (-2)	/* datconnlimit after an interrupted DROP */
#define DAY_MS			(24 * 60 * 60 * 1000)

/* A table or index, with the counters that its last row has. */
typedef struct Known
{
	RelationKey key;
	Oid			table;			/* of an index, else 0 */
	uint32		name;			/* hash of the name recorded today, 0 = none */
	uint32		asked;			/* number of the last request for it */
	uint32		reading;		/* number of the last answer with it */
	uint64		bytes;			/* plus one, 0 = not known */
	uint64		rows;			/* likewise */
	int64		scans;
	int64		tuples_returned;
	int64		tuples_fetched;
	TimestampTz last_scan;
	uint8		kind;			/* RelationKind; 0 = not read yet */
	bool		wanted;			/* it did something since it was read */
	bool		changed;		/* since its last row */
	bool		gone;			/* the database does not have it any more */
	char		status;			/* of the hash table */
} Known;

#define SH_PREFIX known
#define SH_ELEMENT_TYPE Known
#define SH_KEY_TYPE RelationKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) relation_hash(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef enum Phase
{
	PHASE_NONE,
	PHASE_CHOOSE,				/* the next database */
	PHASE_WAIT,					/* for its worker */
	PHASE_TAKE,					/* the worker's answer */
	PHASE_COUNT					/* reads counters, records rows */
} Phase;

typedef enum Choice
{
	CHOICE_NONE,				/* its catalog could not be read */
	CHOICE_READ,
	CHOICE_LATER,
	CHOICE_NEVER,
	CHOICE_DROPPED
} Choice;

/* The counters of a key. */
typedef struct Counted
{
	RelationKey key;
	RelationRead result;
	RelationCounts counts;
	RelationState state;
} Counted;

static MemoryContext context;	/* NULL while nothing is known */
static known_hash *known;
static Phase phase;
static Oid	database;			/* the chosen one; 0 at the begin of a round */
static Choice choice;
static bool look_at_all;		/* this round: a database may have been dropped */
static uint64 changes_seen;		/* names_changes() of the last round */
static uint32 number;			/* of the request */
static bool asked_all;			/* the request has all known tables */
static int64 asked_us;			/* CLOCK_BOOTTIME of the request */
static int	next;				/* row of the answer, or index of keys[] */
static RelationKey *keys;		/* PHASE_COUNT: what it reads */
static int	key_count;
static Counted counted[BATCH];	/* read in one transaction */
static int	counted_count;
static int64 round_us = 0;		/* CLOCK_BOOTTIME of the last round, 0 = none */
static UnixMs known_since;		/* first rows of this memory, 0 = none yet */
static int64 read_day = -1;		/* of the last round */
static int64 row_day = -1;		/* of the last rows */
static UnixMs now_ms;
static UnixMs count_ms;			/* PHASE_COUNT: time of all rows */

static void
remember_nothing(void)
{
	if (context != NULL)
		MemoryContextDelete(context);
	context = NULL;
	phase = PHASE_NONE;
	round_us = 0;
}

static void
make_room(void)
{
	context = AllocSetContextCreate(TopMemoryContext, "tacho catalog",
									ALLOCSET_DEFAULT_SIZES);
	known = known_create(context, FIRST_ROOM, NULL);
	known_since = 0;
	keys = MemoryContextAlloc(context, MAX_KNOWN * sizeof(RelationKey));
}

/*
 * The entry of a key, or a new one; NULL if there is no room. Half of the room
 * is for tables and indexes of users: each database has some system catalogs
 * that do something, so a thousand databases would fill all of it.
 */
static Known *
find_known(RelationKey key)
{
	Known	   *entry = known_lookup(known, key);
	uint32		room = RELATION_OID(key) >= FirstNormalObjectId ? MAX_KNOWN : MAX_KNOWN / 2;
	bool		found;

	if (entry != NULL || known->members >= room)
		return entry;
	entry = known_insert(known, key, &found);
	memset((char *) entry + sizeof(RelationKey), 0,
		   offsetof(Known, status) - sizeof(RelationKey));
	return entry;
}

void
catalog_want(RelationKey key)
{
	Known	   *entry;

	if (tacho_catalog_interval == 0)
		return;
	if (context == NULL)
		make_room();
	entry = find_known(key);
	if (entry != NULL)
		entry->wanted = true;
}

void
catalog_record_again(void)
{
	read_day = row_day = -1;
}

/* ---- choosing a database ---- */

/* True if the entry is a reason to read its database. */
static bool
did_something(const Known *entry)
{
	return entry->wanted && RELATION_OID(entry->key) >= FirstNormalObjectId;
}

static bool
database_did_something(void)
{
	known_iterator iterator;
	Known	   *entry;
	bool		found = false;

	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
		found |= RELATION_DATABASE(entry->key) == database && did_something(entry);
	return found;
}

/* The database with the next higher OID to look at; 0 = none. */
static Oid
next_database(void)
{
	Oid			found = InvalidOid;
	known_iterator iterator;
	Known	   *entry;

	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		Oid			of = RELATION_DATABASE(entry->key);

		if ((look_at_all || did_something(entry)) &&
			of > database && (found == InvalidOid || of < found))
			found = of;
	}
	return found;
}

/* Sets `choice` for the database. */
static void
look_at_database(void)
{
	HeapTuple	tuple;
	Form_pg_database form;

	if (!ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock))
		return;
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	choice = HeapTupleIsValid(tuple) ? CHOICE_NEVER : CHOICE_DROPPED;
	if (choice == CHOICE_DROPPED)
		return;
	form = (Form_pg_database) GETSTRUCT(tuple);
	if (form->datallowconn && !form->datistemplate && form->datconnlimit != INVALID_DATABASE)
		choice = catalog_database_is_free(database) ? CHOICE_READ : CHOICE_LATER;
	ReleaseSysCache(tuple);
}

static bool
is_index(const Known *entry)
{
	return OidIsValid(entry->table);
}

/* True if the request for the database asks for the entry. */
static bool
belongs(const Known *entry)
{
	Oid			of = RELATION_DATABASE(entry->key);

	return of == database || of == InvalidOid;
}

/* Adds the wanted entries of the database to the request, or the other tables. */
static void
add_asked(bool wanted)
{
	known_iterator iterator;
	Known	   *entry;

	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		if (!belongs(entry) || entry->wanted != wanted || (!wanted && is_index(entry)))
			continue;
		if (catalog_shared->asked_count == CATALOG_ASKED)
		{
			asked_all = false;
			return;
		}
		catalog_shared->asked[catalog_shared->asked_count++] = RELATION_OID(entry->key);
		entry->asked = number;
	}
}

/*
 * Leaves a database that was dropped or does not allow connections. If it was
 * dropped, all that was read of it is gone. Else the counters are still read.
 */
static void
leave_database(void)
{
	known_iterator iterator;
	Known	   *entry;

	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		if (RELATION_DATABASE(entry->key) != database)
			continue;
		entry->gone |= choice == CHOICE_DROPPED;
		entry->wanted = false;
		if (entry->kind == 0)
			known_delete_item(known, entry);
	}
}

/*
 * Ends the phase of requests; the counters follow. Once a day everything is
 * recorded: all rows of a round have the time, and so the day, of this moment.
 */
static void
begin_count(void)
{
	bool		is_new_day = row_day != now_ms / DAY_MS;
	known_iterator iterator;
	Known	   *entry;

	key_count = next = 0;
	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		entry->changed |= is_new_day;
		if (entry->kind != 0)
			keys[key_count++] = entry->key;
	}
	count_ms = now_ms;
	if (known_since == 0)
		known_since = count_ms;
	row_day = now_ms / DAY_MS;
	phase = PHASE_COUNT;
}

static void
tell_no_slot(void)
{
	static bool told = false;

	if (told)
		return;
	told = true;
	HOLD_INTERRUPTS();
	ereport(LOG,
			(errmsg("no free slot for the worker that reads names and sizes of tables"),
			 errhint("Increase \"max_worker_processes\".")));
	RESUME_INTERRUPTS();
}

/* Starts the worker for the database; it takes the place of an earlier one. */
static void
ask(int64 boot_us)
{
	catalog_shared->database = database;
	catalog_shared->asked_count = 0;
	asked_all = true;
	number = catalog_number() + 1;
	add_asked(true);
	catalog_shared->wanted_count = catalog_shared->asked_count;
	add_asked(false);
	catalog_request(number);
	asked_us = boot_us;
	phase = PHASE_WAIT;
	if (catalog_worker_start(number))
		return;
	(void) catalog_move(number, CATALOG_REQUESTED, CATALOG_IDLE);
	tell_no_slot();
	begin_count();
}

/*
 * An earlier sampler may have left a request, and its worker may run. A
 * worker that reads is waited for.
 */
static bool
is_idle(void)
{
	uint32		last = catalog_number();

	return catalog_phase() == CATALOG_IDLE ||
		catalog_move(last, CATALOG_REQUESTED, CATALOG_IDLE) ||
		catalog_move(last, CATALOG_ANSWERED, CATALOG_IDLE);
}

static void
choose(int64 boot_us)
{
	if (!is_idle())
		return;
	database = next_database();
	if (database == InvalidOid)
	{
		begin_count();
		return;
	}
	choice = CHOICE_NONE;
	(void) guarded_run(look_at_database);
	if (choice == CHOICE_READ && database_did_something())
		ask(boot_us);
	else if (choice == CHOICE_NEVER || choice == CHOICE_DROPPED)
		leave_database();
	else if (choice == CHOICE_NONE)
		changes_seen = 0;		/* the next round looks again */
}

/* ---- the answer ---- */

static void
wait_for_worker(int64 boot_us)
{
	if (catalog_phase() == CATALOG_ANSWERED)
	{
		next = 0;
		phase = PHASE_TAKE;
	}
	else if (boot_us - asked_us > PATIENCE_US &&
			 catalog_move(number, CATALOG_REQUESTED, CATALOG_IDLE))
		phase = PHASE_CHOOSE;
}

/* Records a name once a day, and when it has changed. */
static void
take_name(Known *entry, const CatalogRow *row, Oid of)
{
	NamedRelation named = {
		.database = of,
		.oid = row->oid,
		.schema = {row->schema, strnlen(row->schema, NAMEDATALEN)},
		.name = {row->name, strnlen(row->name, NAMEDATALEN)},
		.encoding = catalog_shared->encoding,
	};
	uint32		hash = recorder_name_hash(&named);

	if (entry->name == hash)
		return;
	recorder_put_relation(recorder_frame(now_ms), &named, now_ms);
	entry->name = hash;
}

static void
take_row(const CatalogRow *row)
{
	Oid			of = row->shared ? InvalidOid : database;
	Known	   *entry = find_known(RELATION_KEY(of, row->oid));

	if (entry == NULL)
		return;
	take_name(entry, row, of);
	entry->changed |= entry->kind != row->kind || entry->table != row->table ||
		entry->rows != row->rows || (row->bytes != 0 && entry->bytes != row->bytes);
	entry->kind = row->kind;
	entry->table = row->table;
	entry->rows = row->rows;
	if (row->bytes != 0)
		entry->bytes = row->bytes;
	entry->reading = number;
	entry->gone = false;
	entry->wanted = false;
}

/* True if the last request asked for the entry, or for the table of an index. */
static bool
was_asked(const Known *entry)
{
	const Known *table = is_index(entry) ?
		known_lookup(known, RELATION_KEY(RELATION_DATABASE(entry->key), entry->table)) : NULL;

	return entry->asked == number || (table != NULL && table->asked == number);
}

/*
 * Finds the tables and indexes that the database does not have any more. One
 * that was never read is forgotten, such as a temporary table. An index is
 * read with its table. A table that was not asked for, or an index whose table
 * is not known, stays.
 */
static void
find_dropped(void)
{
	known_iterator iterator;
	Known	   *entry;

	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		if (RELATION_DATABASE(entry->key) != database || entry->reading == number ||
			!was_asked(entry))
			continue;
		entry->gone = true;
		if (entry->kind == 0)
			known_delete_item(known, entry);
	}
}

static void
take_batch(void)
{
	for (int i = 0; i < BATCH && next < catalog_shared->row_count; i++)
		take_row(&catalog_shared->rows[next++]);
	if (next < catalog_shared->row_count)
		return;
	if (catalog_shared->whole && asked_all)
		find_dropped();
	(void) catalog_move(number, CATALOG_ANSWERED, CATALOG_IDLE);
	phase = PHASE_CHOOSE;
}

/* ---- counters and rows ---- */

static uint64
database_name(Oid of)
{
	if (of == InvalidOid)
		return 0;
	names_want_database(of);
	names_resolve();
	return dictionary_use_name(processes_database_name(of));
}

static void
put_row(const Known *entry)
{
	Oid			of = RELATION_DATABASE(entry->key);
	Frame	   *frame = recorder_frame(count_ms);
	uint64		name = database_name(of);
	Section    *section = frame_section(frame, TABLE_relation_state);
	int			row = section_add(section);

#define SET(column, value) \
	section_set(section, row, COL_relation_state_##column, value)
	SET(time, frame_time(frame, count_ms));
	SET(database_oid, of);
	SET(database, name);
	SET(oid, RELATION_OID(entry->key));
	if (!entry->gone)
		SET(kind, entry->kind);
	SET(table_oid, entry->table);
	SET(bytes, entry->bytes);
	SET(rows, entry->rows);
	SET(scans, entry->scans);
	SET(tuples_returned, entry->tuples_returned);
	SET(tuples_fetched, entry->tuples_fetched);
	SET(last_scan, frame_timestamp(frame, entry->last_scan));
#undef SET
}

static void
take_counts(Known *entry, const RelationCounts counts, const RelationState *state)
{
#define TAKE(name, value) \
	entry->changed |= entry->name != (value); \
	entry->name = (value)
	TAKE(scans, counts[RELATION_COUNTER(scans)]);
	TAKE(tuples_returned, counts[RELATION_COUNTER(tuples_returned)]);
	TAKE(tuples_fetched, counts[RELATION_COUNTER(tuples_fetched)]);
	TAKE(last_scan, state->last_scan);
#undef TAKE
}

/* Reads the counters of the next keys; may raise an error. */
static void
read_counts(void)
{
	counted_count = 0;
	for (; counted_count < BATCH && next < key_count; counted_count++)
	{
		Counted    *read = &counted[counted_count];

		read->key = keys[next++];
		read->result = RELATION_BUSY;
		for (int i = 0; i < TRIES && read->result == RELATION_BUSY; i++)
			read->result = relation_stats_read(read->key, read->counts, &read->state);
	}
}

/*
 * Records a table or index if it has changed. One without statistics was
 * never used, or it was dropped: then its counters were not 0. The row of one
 * that is gone is its last.
 */
static void
record(const Counted *read)
{
	Known	   *entry = known_lookup(known, read->key);

	if (entry == NULL)
		return;
	if (read->result == RELATION_READ)
		take_counts(entry, read->counts, &read->state);
	else if (read->result == RELATION_GONE)
		entry->gone |= entry->scans != 0 || entry->tuples_returned != 0;
	if (entry->changed || entry->gone)
		put_row(entry);
	entry->changed = false;
	if (entry->gone)
		known_delete_item(known, entry);
}

/*
 * Says that all known tables and indexes were read. This round says nothing
 * about rows before known_since, which may be forgotten.
 */
static void
put_round(void)
{
	Frame	   *frame = recorder_frame(count_ms);
	Section    *section = frame_section(frame, TABLE_relation_state);
	int			row = section_add(section);

	section_set(section, row, COL_relation_state_time, frame_time(frame, count_ms));
	section_set(section, row, COL_relation_state_known_since, frame_time(frame, known_since));
}

static void
count_batch(void)
{
	bool		was_read = guarded_run(read_counts);

	for (int i = 0; was_read && i < counted_count; i++)
		record(&counted[i]);
	if (was_read && next == key_count)
		put_round();
	if (!was_read || next == key_count)
		phase = PHASE_NONE;
}

/* ---- rounds ---- */

/* Once a day all databases with known tables are read, and all names recorded. */
static void
begin_day(void)
{
	known_iterator iterator;
	Known	   *entry;

	if (known->members > MAX_KEPT)
	{
		known_reset(known);
		known_since = 0;
		return;
	}
	known_start_iterate(known, &iterator);
	while ((entry = known_iterate(known, &iterator)) != NULL)
	{
		entry->name = 0;
		entry->wanted |= !is_index(entry);
	}
}

static void
begin_round(int64 boot_us)
{
	round_us = boot_us;
	database = InvalidOid;
	look_at_all = changes_seen != names_changes();
	changes_seen = names_changes();
	phase = PHASE_CHOOSE;
	if (read_day != now_ms / DAY_MS)
		begin_day();
	read_day = now_ms / DAY_MS;
}

static bool
is_due(int64 boot_us)
{
	return context != NULL && known->members > 0 &&
		(round_us == 0 || boot_us - round_us >= (int64) tacho_catalog_interval * 1000);
}

static void
run_turn(int64 boot_us)
{
	int64		end_us = boot_us + TURN_US;

	if (phase == PHASE_CHOOSE)
		choose(boot_us);
	else if (phase == PHASE_WAIT)
		wait_for_worker(boot_us);
	while ((phase == PHASE_TAKE || phase == PHASE_COUNT) && clock_boot_us() < end_us)
		if (phase == PHASE_TAKE)
			take_batch();
		else
			count_batch();
}

void
catalog_turn(int64 wall_us, int64 boot_us)
{
	if (tacho_catalog_interval == 0)
	{
		if (context != NULL)
			remember_nothing();
		return;
	}
	now_ms = wall_us / 1000;
	if (!writer_has_room())
		return;
	if (phase == PHASE_NONE && is_due(boot_us))
		begin_round(boot_us);
	if (phase != PHASE_NONE)
		run_turn(boot_us);
}

bool
catalog_turn_again(void)
{
	return phase != PHASE_NONE && phase != PHASE_WAIT && writer_has_room() &&
		catalog_phase() != CATALOG_READING;
}
