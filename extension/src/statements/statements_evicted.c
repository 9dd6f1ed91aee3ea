/*
 * statements_evicted.c
 *	  Accumulators: one entry per database for the counters of evicted entries.
 *
 * A process that adds to an accumulator holds the lock of the accumulator's
 * partition exclusively. The same holds for a change of its "recorded"
 * counters, the part that the history has.
 *
 * For the locking rules see statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "statements/statements.h"
#include "statements/statements_shared.h"

/* Finds or makes the accumulator of a database. */
static StatementEntry *
accumulator_get(Oid database_id, uint64 *generation)
{
	StatementsShared *shared = statements_memory.shared;
	StatementKey key = {.database_id = database_id, .toplevel = true};
	uint32		hash = statement_hash(&key);
	StatementEntry *entry = NULL;
	uint32		number;
	bool		was_new;

	if (!entry_find(&key, hash, &entry, generation) || entry)
		return entry;

	/* the last one is for all databases without an accumulator */
	if (pg_atomic_add_fetch_u32(&shared->accumulators, 1) >= ACCUMULATORS &&
		database_id != InvalidOid)
	{
		pg_atomic_sub_fetch_u32(&shared->accumulators, 1);
		return accumulator_get(InvalidOid, generation);
	}
	number = pool_pop(&shared->slots, statements_memory.next_free);
	if (number == 0)
	{
		pg_atomic_sub_fetch_u32(&shared->accumulators, 1);
		return NULL;
	}
	entry_init(&statements_memory.entries[number - 1], &key, hash,
			   GetCurrentTimestamp());
	entry = entry_link(&statements_memory.entries[number - 1], generation,
					   &was_new);
	if (!was_new)
		entry_release(&statements_memory.entries[number - 1], 0);
	return entry;
}

/*
 * Adds to the counters of an accumulator and to the part that the history has,
 * at the same moment. Every process that does so holds the partition lock, so
 * no stripe is busy.
 */
static bool
accumulate(StatementEntry *entry, uint64 generation,
		   const Counters *counters, const int64 *recorded)
{
	LWLock	   *lock = partition_lock(entry->hash);
	uint32		groups = counters_groups(counters);
	bool		added;

	if (!partition_acquire(lock, LW_EXCLUSIVE))
		return false;
	added = pg_atomic_read_u64(&entry->generation) == generation &&
		stripe_trylock(&entry->stripe);
	if (added)
	{
		stripe_merge(&entry->stripe, entry_rare(entry, NULL, 0), counters, groups);
		stripe_unlock(&entry->stripe);
		if (recorded)
			recorded_add(entry, generation, recorded);
	}
	LWLockRelease(lock);
	return added;
}

/*
 * Adds the counters of an evicted entry to the accumulator of its database.
 * `recorded` is the part that the history has, or NULL.
 */
void
statements_accumulate(Oid database_id, const Counters *counters,
					  const int64 *recorded)
{
	bool		added = false;

	for (int attempt = 0; !added && attempt < 8; attempt++)
	{
		uint64		generation;
		StatementEntry *entry = accumulator_get(database_id, &generation);

		if (entry == NULL)
			break;
		added = accumulate(entry, generation, counters, recorded);
	}
	if (!added)
		pg_atomic_add_fetch_u64(&statements_memory.shared->skipped,
								counters->calls);
}

/*
 * Subtracts `values` from the part of a database's accumulator that the history
 * has. So the next record contains them, although the accumulator's own counters
 * do not change.
 */
void
statements_owe(Oid database_id, const int64 *values)
{
	uint64		generation;
	StatementEntry *entry = accumulator_get(database_id, &generation);
	LWLock	   *lock;

	if (entry == NULL)
		return;
	lock = partition_lock(entry->hash);
	if (!partition_acquire(lock, LW_EXCLUSIVE))
		return;
	if (pg_atomic_read_u64(&entry->generation) == generation)
		recorded_take(entry, generation, values);
	LWLockRelease(lock);
}
