/*
 * statements_evict.c
 *	  Makes room for new entries: a second-chance clock over the slab.
 *
 * The hand is one shared number. A backend that needs room takes the next
 * batch of slots. It visits all of them, if necessary over several calls: if
 * it left some out, other entries would have less time between two visits.
 * Backends sweep different batches at the same time. They skip a partition
 * whose lock is busy, so none waits.
 *
 * Chances are the `usage` of an entry. A new entry has one, and each use adds
 * one. A visit takes away the last chance, and the next visit evicts. From an
 * entry with more chances, only one of GENTLE_ONE_OF visits takes one: if
 * many hot statements leave little room for the others, the hand comes round
 * faster than hot statements are executed. While there is no room at all,
 * every visit takes one.
 *
 * Sweeping begins at 95 percent of the limit, with a few evictions for each
 * new entry, so that there is nearly always room. If there is no room, one
 * statement sweeps at most one rotation. If all entries were used meanwhile,
 * it evicts the one with the fewest chances. After the limit was lowered,
 * each new entry visits about SWEEP entries, until the number of entries is
 * low enough. Until then, new entries take slots beyond the limit, within the
 * reserved memory.
 *
 * For the locking rules see statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "statements/statements.h"
#include "statements/statements_shared.h"

#define BATCH 16				/* slots per step of the hand */
#define SWEEP 64				/* slots visited for one new entry */
#define VICTIMS 4				/* evictions for one new entry */
#define GENTLE_ONE_OF 8			/* visits that cost a used entry one chance */

/* An entry as a sweep saw it. */
typedef struct Seen
{
	StatementEntry *entry;		/* NULL = none */
	uint64		generation;
	uint8		usage;			/* after the visit */
} Seen;

/*
 * Evicts the entry of `seen`, unless it has more than `usage` chances now or
 * its lock is busy. Its counters are added to the accumulator of its
 * database.
 *
 * Since the visit another entry may have taken the slot, even one of the same
 * partition. No generation is used twice, so comparing it under the lock
 * decides.
 */
static bool
evict(const Seen *seen, uint8 usage)
{
	StatementEntry *entry = seen->entry;
	Counters	counters;
	int64		recorded[HISTORY_COLUMNS];
	bool		known;
	uint32		hash = entry->hash;
	Oid			database_id;
	uint32		text;

	if (!LWLockConditionalAcquire(partition_lock(hash), LW_EXCLUSIVE))
		return false;
	if (entry->hash != hash ||
		pg_atomic_read_u64(&entry->generation) != seen->generation ||
		entry->usage > usage || is_accumulator(&entry->key) ||
		!entry_lock_stripes(entry))
	{
		LWLockRelease(partition_lock(hash));
		return false;
	}
	counters_init(&counters);
	database_id = entry->key.database_id;
	known = recorded_of(entry, seen->generation, recorded);
	entry_remove(entry, &counters, &text);
	LWLockRelease(partition_lock(hash));

	entry_release(entry, text);
	if (counters.calls + counters.plans + counters.errors + counters.cancellations > 0)
		statements_accumulate(database_id, &counters, known ? recorded : NULL);
	pg_atomic_add_fetch_u64(&statements_memory.shared->evicted, 1);
	pg_atomic_write_u64(&statements_memory.shared->last_eviction,
						GetCurrentTimestamp());
	return true;
}

/*
 * Returns the next slot for this backend to visit. The slot may have no entry
 * yet.
 */
static uint32
next_slot(void)
{
	static uint32 at = 0;
	static uint32 end = 0;
	StatementsShared *shared = statements_memory.shared;

	if (at == end)
	{
		at = pg_atomic_fetch_add_u32(&shared->hand, BATCH);
		end = at + BATCH;
	}
	return at++ % Max(pg_atomic_read_u32(&shared->slots.untouched), 1);
}

/* True once in GENTLE_ONE_OF calls, without a pattern. */
static bool
one_of_many(void)
{
	static uint32 state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 16) % GENTLE_ONE_OF == 0;
}

/* Visits an entry: takes away a chance, or evicts it and returns true. */
static bool
visit(Seen *seen)
{
	if (seen->usage == 0)
		return evict(seen, 0);
	seen->entry->usage = --seen->usage;
	return false;
}

/*
 * Evicts up to `wanted` entries and returns the number evicted. `gently`:
 * entries with several chances keep most of them. *least, if not NULL,
 * becomes the visited entry with the fewest chances left.
 */
static int
sweep(int wanted, bool gently, Seen *least)
{
	int			evicted = 0;

	for (int i = 0; i < SWEEP && evicted < wanted; i++)
	{
		StatementEntry *entry = &statements_memory.entries[next_slot()];
		Seen		seen = {
			.entry = entry,
			.generation = pg_atomic_read_u64(&entry->generation),
			.usage = entry->usage,	/* others change it meanwhile */
		};

		if (seen.generation == 0 ||
			(seen.usage > 1 && gently && !one_of_many()))
			continue;
		if (visit(&seen))
			evicted++;
		else if (least && !is_accumulator(&entry->key) &&
				 (least->entry == NULL || seen.usage < least->usage))
			*least = seen;
	}
	return evicted;
}

/*
 * Sweeps for a new entry while there are more entries than the lowered limit.
 * If few slots are in use, sweeps more often: until SWEEP entries have
 * probably been visited, or two were evicted.
 */
static void
sweep_beyond(uint32 entries)
{
	uint32		slots = pg_atomic_read_u32(&statements_memory.shared->slots.untouched);
	int			evicted = sweep(SWEEP, false, NULL);

	for (uint32 n = slots / entries; n > 1 && evicted < 2; n--)
		evicted += sweep(SWEEP - evicted, false, NULL);
}

bool
statements_make_room(void)
{
	StatementsShared *shared = statements_memory.shared;
	uint32		limit = statements_limit();
	uint32		low = limit - limit / 20;
	uint32		patience = pg_atomic_read_u32(&shared->slots.untouched) / SWEEP + 1;
	Seen		least = {NULL};

	for (;;)
	{
		uint32		entries = pg_atomic_add_fetch_u32(&shared->entries, 1);

		if (entries <= limit)
		{
			if (entries > low)
				sweep(VICTIMS, true, NULL);
			return true;
		}
		/* up to SWEEP more may be entries that other backends are making */
		if (entries > limit + SWEEP &&
			entries <= shared->reserved - ACCUMULATORS)
		{
			sweep_beyond(entries);
			return true;
		}
		pg_atomic_sub_fetch_u32(&shared->entries, 1);
		if (patience-- == 0)
			break;
		sweep(VICTIMS, false, &least);
	}
	if (least.entry == NULL || !evict(&least, USAGE_MAX))
		return false;
	/* this room is ours, even if others made entries meanwhile */
	pg_atomic_add_fetch_u32(&shared->entries, 1);
	return true;
}
