/*
 * schema_change.c
 *	  Passes changes of the schema from backends to the sampler.
 *
 * A hook sees each utility statement. When one that changes the schema has
 * succeeded, its process makes a note in private memory, with the level of
 * the subtransaction. At the end of the transaction the notes are copied to
 * free slots of shared memory. A process keeps at most MOST_NOTED notes and
 * counts further changes, so that a restored dump of 100,000 objects costs no
 * more.
 *
 * Example: BEGIN; DROP INDEX a; SAVEPOINT s; DROP INDEX b; ROLLBACK TO s;
 * COMMIT leaves the note of a. A transaction or subtransaction that is rolled
 * back leaves its notes only if it lasted a second, because its locks may have
 * blocked others.
 *
 * Locking: none. A process takes a slot with a compare-and-swap of the slot's
 * state, writes it, and gives it to the sampler with another state. A process
 * that is stopped in between keeps its slot and delays no other process. If
 * all slots are taken, the change is counted as dropped.
 *
 * The callbacks run where no error may be raised: they only copy.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "commands/extension.h"
#include "executor/instrument.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "changes/schema_change.h"
#include "changes/statement_relation.h"
#include "changes/statement_target.h"
#include "core/compat.h"
#include "core/settings.h"
#include "core/utility_hook.h"

#define SLOTS			256
#define MOST_NOTED		16		/* per transaction */
#define MOST_LEVELS		16		/* that have changes without a note */
#define LONG_US			1000000	/* a shorter failed transaction leaves no
								 * marker */

enum
{
	SLOT_FREE,
	SLOT_TAKEN,					/* the process that took the slot writes it */
	SLOT_FULL,					/* ready for the sampler */
};

typedef struct Slot
{
	pg_atomic_uint32 state;
	SchemaChange change;
} Slot;

typedef struct SchemaShared
{
	pg_atomic_uint64 posted;	/* changes that were put into slots */
	pg_atomic_uint64 dropped;	/* changes that found no slot */
	pg_atomic_uint64 told;		/* dropped changes that have a marker */
	Slot		slots[SLOTS];
} SchemaShared;

/* A statement of the open transaction that changed the schema. */
typedef struct Note
{
	int			level;			/* of its subtransaction */
	SchemaChange change;
} Note;

/* The changes of a subtransaction that found no room for a note. */
typedef struct Unnoted
{
	int			level;
	int			count;
	SchemaChange first;			/* has their marker if no note has */
} Unnoted;

/* The statement that this process executes. */
typedef struct Running
{
	SchemaChange change;		/* begin = 0: there is none */
	NodeTag		kind;
	int			commits;		/* while it runs */
	int			kept;			/* of these, the ones that left a change */
} Running;

static SchemaShared *shared;

static Note notes[MOST_NOTED];	/* levels ascend */
static int	note_count = 0;
static Unnoted unnoted[MOST_LEVELS];	/* levels ascend */
static int	unnoted_count = 0;

static Running running;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/* ---- shared slots ---- */

/* Takes a free slot for the caller; NULL if there is none. */
static Slot *
take_slot(void)
{
	for (int i = 0; i < SLOTS; i++)
	{
		uint32		state = SLOT_FREE;

		if (pg_atomic_compare_exchange_u32(&shared->slots[i].state, &state, SLOT_TAKEN))
			return &shared->slots[i];
	}
	return NULL;
}

static void
post(const SchemaChange *change)
{
	Slot	   *slot = take_slot();

	if (slot == NULL)
	{
		pg_atomic_fetch_add_u64(&shared->dropped, 1 + change->left_out);
		return;
	}
	slot->change = *change;
	pg_write_barrier();
	pg_atomic_write_u32(&slot->state, SLOT_FULL);
	pg_atomic_fetch_add_u64(&shared->posted, 1);
}

void
schema_change_drain(void (*take) (const SchemaChange *change))
{
	static uint64 seen = 0;
	uint64		posted = pg_atomic_read_u64(&shared->posted);

	pg_read_barrier();
	for (int i = 0; posted != seen && i < SLOTS; i++)
	{
		Slot	   *slot = &shared->slots[i];
		SchemaChange change;

		if (pg_atomic_read_u32(&slot->state) != SLOT_FULL)
			continue;
		pg_read_barrier();
		change = slot->change;
		/* the copy ends before another process may write the slot */
		pg_memory_barrier();
		pg_atomic_write_u32(&slot->state, SLOT_FREE);
		take(&change);
	}
	seen = posted;
}

uint64
schema_change_take_dropped(void)
{
	uint64		dropped = pg_atomic_read_u64(&shared->dropped);

	return dropped - pg_atomic_exchange_u64(&shared->told, dropped);
}

/* ---- the notes of a transaction ---- */

static void
forget(void)
{
	note_count = 0;
	unnoted_count = 0;
	running.change.begin = 0;
}

/*
 * Adds changes without a note to their level. Deeper levels than MOST_LEVELS share the
 * last one.
 */
static void
add_unnoted(int level, int count, const SchemaChange *first)
{
	if (unnoted_count == 0 ||
		(unnoted[unnoted_count - 1].level < level && unnoted_count < MOST_LEVELS))
		unnoted[unnoted_count++] = (Unnoted) {level, count, *first};
	else
		unnoted[unnoted_count - 1].count += count;
}

/* Removes the changes of this level and of deeper ones; returns their sum. */
static Unnoted
take_unnoted(int level)
{
	Unnoted		sum = {.count = 0};

	while (unnoted_count > 0 && unnoted[unnoted_count - 1].level >= level)
	{
		const Unnoted *last = &unnoted[--unnoted_count];

		sum.count += last->count;
		sum.first = last->first;
	}
	return sum;
}

static void
note(void)
{
	int			level = GetCurrentTransactionNestLevel();

	if (note_count == MOST_NOTED)
		add_unnoted(level, 1, &running.change);
	else
		notes[note_count++] = (Note) {level, running.change};
}

/* Posts a change at the end of its transaction, unless it was soon rolled back. */
static void
post_ended(SchemaChange *change, TimestampTz end, SchemaOutcome outcome, int left_out)
{
	if (outcome == SCHEMA_ROLLED_BACK && end - change->begin < LONG_US)
		return;
	change->end = end;
	change->outcome = outcome;
	change->left_out = left_out;
	post(change);
}

/*
 * Posts the notes of this level and of deeper ones, and removes them. Changes without a
 * note are later than all notes. The last note of their level has their number. If their
 * level has no note, the first change is posted with the number of the others.
 */
static void
post_notes(int level, SchemaOutcome outcome)
{
	Unnoted		left = take_unnoted(level);
	int			last = note_count - 1;
	TimestampTz now = GetCurrentTimestamp();

	while (note_count > 0 && notes[note_count - 1].level >= level)
		note_count--;
	for (int i = note_count; i <= last; i++)
		post_ended(&notes[i].change, now, outcome, i == last ? left.count : 0);
	if (left.count > 0 && note_count > last)
		post_ended(&left.first, now, outcome, left.count - 1);
}

/*
 * Posts a statement that has failed, if it has run for LONG_US or longer:
 * others may have waited for its locks. A statement that has committed a change,
 * as DROP INDEX CONCURRENTLY does, is posted as a change: the index is invalid.
 * Raises no error.
 */
static void
post_running(void)
{
	SchemaChange *change = &running.change;
	char	   *rest = change->target.rest;

	if (change->begin == 0)
		return;
	if (running.kept > 0)
		strlcat(rest, rest[0] != '\0' ? " (failed, done in part)" : "(failed, done in part)",
				sizeof(change->target.rest));
	post_ended(change, GetCurrentTimestamp(),
			   running.kept > 0 ? SCHEMA_COMMITTED : SCHEMA_ROLLED_BACK, 0);
}

/*
 * True if the transaction that commits while a statement runs leaves a change. A change
 * needs a transaction id, and so does the lock of a table. CLUSTER locks tables that it
 * leaves alone, and its changes are commands. The first transaction of REINDEX may lock
 * an index and only list its partitions. REINDEX of pg_class executes no command.
 */
static bool
leaves_change(void)
{
	bool		has_id = TransactionIdIsValid(GetTopTransactionIdIfAny());
	bool		has_commands = GetCurrentCommandId(false) != FirstCommandId;

	if (running.kind == T_CompatClusterStmt)
		return has_commands;
	if (running.kind == T_ReindexStmt)
		return has_id && (has_commands || running.commits > 0);
	return has_id;
}

/* CREATE INDEX CONCURRENTLY, for example, commits while it runs. */
static void
count_commit(void)
{
	if (running.change.begin == 0)
		return;
	running.kept += leaves_change();
	running.commits++;
}

static void
on_transaction(XactEvent event, void *arg)
{
	if (likely(note_count == 0 && running.change.begin == 0))
		return;
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			post_notes(1, SCHEMA_COMMITTED);
			count_commit();
			break;
		case XACT_EVENT_PREPARE:
			post_notes(1, SCHEMA_PREPARED);
			forget();
			break;
		case XACT_EVENT_ABORT:
			post_notes(1, SCHEMA_ROLLED_BACK);
			post_running();
			forget();
			break;
		default:
			break;
	}
}

/*
 * A subtransaction that rolls back loses its notes, or posts them as above. The
 * notes of one that commits belong to the transaction around it.
 */
static void
on_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	Unnoted		taken;

	if (note_count == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		post_notes(level, SCHEMA_ROLLED_BACK);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		for (int i = 0; i < note_count; i++)
			notes[i].level = Min(notes[i].level, level - 1);
		taken = take_unnoted(level);
		if (taken.count > 0)
			add_unnoted(level - 1, taken.count, &taken.first);
	}
}

/* ---- statements ---- */

/* Counts no blocks, as relation_of() below. */
static bool
is_temporary(const Node *statement)
{
	BufferUsage before = pgBufferUsage;
	bool		temporary = statement_is_temporary(statement) ||
		statement_changes_temporary(statement);

	pgBufferUsage = before;
	return temporary;
}

/*
 * TRUNCATE and REINDEX change no schema, but plans and statistics. EXECUTE
 * never changes the schema, because only queries can be prepared; finding its
 * kind would look up the prepared statement once more.
 */
static bool
changes_schema(Node *statement, ProcessUtilityContext context)
{
	return shared != NULL && tacho_schema_changes &&
		context != PROCESS_UTILITY_SUBCOMMAND && !IsA(statement, ExecuteStmt) &&
		!creating_extension && !IsParallelWorker() &&
		(IsA(statement, TruncateStmt) || IsA(statement, ReindexStmt) ||
		 GetCommandLogLevel(statement) == LOGSTMT_DDL) &&
		!is_temporary(statement);
}

/*
 * True if the running statement has changed something since command `before`: a row of a
 * catalog, which uses the id of its command. The locks of ALTER TABLE and DROP
 * SUBSCRIPTION write WAL and use none. The caller of ProcessUtility() counts the command
 * next, if it is not counted here.
 */
static bool
has_changed(CommandId before)
{
	CommandCounterIncrement();
	return running.kept > 0 || GetCurrentCommandId(false) != before;
}

/*
 * The OID of the statement's relation. The lookup's blocks are not counted: a
 * role that creates a view did not ask for them.
 */
static Oid
relation_of(const Node *statement)
{
	BufferUsage before = pgBufferUsage;
	Oid			relation = statement_relation(statement);

	pgBufferUsage = before;
	return relation;
}

/*
 * Adds the table of the index that a DROP INDEX or REINDEX INDEX names: "on
 * app.orders". A query mentions its tables and no index, so the table connects
 * the two.
 */
static void
put_table(const Node *statement, Oid index, StatementTarget *target)
{
	BufferUsage before = pgBufferUsage;
	const char *schema;
	const char *table;

	if (target->rest[0] == '\0' && OidIsValid(index) &&
		statement_index_table(statement, index, &schema, &table))
		snprintf(target->rest, sizeof(target->rest), "on %s.%s", schema, table);
	pgBufferUsage = before;
}

static void
begin(Node *statement)
{
	SchemaChange *change = &running.change;

	running.kind = nodeTag(statement);
	running.commits = running.kept = 0;
	change->begin = GetCurrentTimestamp();
	change->database = MyDatabaseId;
	change->user = GetUserId();
	change->encoding = GetDatabaseEncoding();
	strlcpy(change->application, application_name, sizeof(change->application));
	if (MyBEEntry != NULL)
		change->client = MyBEEntry->st_clientaddr;
	statement_target(statement, &change->target);
	change->object = statement_creates(statement) ? InvalidOid : relation_of(statement);
	put_table(statement, change->object, &change->target);
}

static void
execute(UTILITY_PARAMS)
{
	if (previous_utility)
		previous_utility(UTILITY_ARGS);
	else
		standard_ProcessUtility(UTILITY_ARGS);
}

/*
 * Executes a statement and makes its note. A statement that fails gives way to
 * the one around it, which may catch the error. A statement that did nothing,
 * such as DROP TABLE IF EXISTS of a missing table, has no note. A session that ends by a FATAL
 * error comes to on_transaction() instead.
 */
static void
execute_noted(Node *statement, UTILITY_PARAMS)
{
	Running		outer = running;
	CommandId	before = GetCurrentCommandId(false);

	PG_TRY();
	{
		begin(statement);
		execute(UTILITY_ARGS);
		if (statement_creates(statement))
			running.change.object = relation_of(statement);
		if (!statement_may_do_nothing(statement) || has_changed(before))
			note();
	}
	PG_CATCH();
	{
		post_running();
		running = outer;
		PG_RE_THROW();
	}
	PG_END_TRY();
	running = outer;
}

static void
on_utility(UTILITY_PARAMS)
{
	Node	   *statement = statement_executed(pstmt->utilityStmt);

	if (changes_schema(statement, context))
		execute_noted(statement, UTILITY_ARGS);
	else
		execute(UTILITY_ARGS);
}

/* ---- setting up ---- */

static void
on_request(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(sizeof(SchemaShared));
}

static void
on_startup(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("tacho schema changes", sizeof(SchemaShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(SchemaShared));
		pg_atomic_init_u64(&shared->posted, 0);
		pg_atomic_init_u64(&shared->dropped, 0);
		pg_atomic_init_u64(&shared->told, 0);
		for (int i = 0; i < SLOTS; i++)
			pg_atomic_init_u32(&shared->slots[i].state, SLOT_FREE);
	}
	LWLockRelease(AddinShmemInitLock);
}

void
schema_change_init(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = on_request;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = on_startup;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = on_utility;
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}
