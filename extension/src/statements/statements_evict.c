/*
 * statements_evict.c
 *	  Room for new entries: second-chance clock over the slab.
 *
 * The hand is one shared number; each backend that needs room takes the next
 * batch of slots, and goes on in it the next time until it is through: slots
 * left out would give others less time than theirs. Many backends sweep at a
 * time, each other batches; a partition that is busy is passed by. Nobody
 * waits.
 *
 * A new entry has one chance, and more come with being used again. A visit
 * takes the last one, and then evicts; from an entry with more than one, only
 * one visit of GENTLE_ONE_OF takes one: the hand comes round faster than many
 * hot statements are executed when they leave little room for the others. While
 * there is no room at all, every visit takes one.
 *
 * Sweeping begins at 95 percent of the limit, a few entries for each new one,
 * so that it hardly ever has to be done while there is no room at all. Then
 * one statement pays for one rotation at most: where all entries have been used
 * meanwhile, the one with the fewest chances goes. After
 * the limit was lowered, each new entry pays for looking at SWEEP entries or so,
 * within what is reserved, until the number of entries has come down.
 *
 * Locking rules: statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "statements/statements_shared.h"

#define BATCH 16				/* slots a backend takes from the hand */
#define SWEEP 64				/* slots it looks at for one new entry */
#define VICTIMS 4				/* to evict for one new entry */
#define GENTLE_ONE_OF 8			/* visits that cost a used entry a chance */

/* What a sweep saw of the entry in a slot. */
typedef struct Seen
{
	StatementEntry *entry;		/* NULL = none */
	uint64		generation;
	uint8		usage;			/* after the visit */
} Seen;

/*
 * Evicts the entry that was seen unless it has more than `usage` chances now,
 * or somebody is at it. Its counters go to the accumulator of its database.
 *
 * The slot may have gone to another entry since it was looked at, even to one
 * of the same partition. Generations are never given out twice, so the
 * generation tells, once it cannot change.
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

/* Returns the next slot that this backend shall look at. There may be none yet. */
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

/* True one time of GENTLE_ONE_OF, in no pattern that slots could have. */
static bool
one_of_many(void)
{
	static uint32 state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 16) % GENTLE_ONE_OF == 0;
}

/* Visits an entry: takes a chance from it, or evicts it and returns true. */
static bool
visit(Seen *seen)
{
	if (seen->usage == 0)
		return evict(seen, 0);
	seen->entry->usage = --seen->usage;
	return false;
}

/*
 * Evicts up to `wanted` entries and returns how many it has. `gently`: used
 * ones keep most chances. `least`, unless NULL, is kept at the visited entry
 * that has the fewest chances left.
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
 * One sweep for a new entry beyond a limit that was lowered. Where few of the
 * slots are in use, as many sweeps as SWEEP of `entries` take, until more have
 * gone than come.
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
		/* up to SWEEP more may be other backends that come and go here */
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
	/* that room is ours, whoever else came meanwhile */
	pg_atomic_add_fetch_u32(&shared->entries, 1);
	return true;
}
