/*
 * statements_record.c
 *	  Differences between the counters of an entry and those in the history.
 *
 * Counters only grow while an entry lives, so the history records their
 * growth. Shared memory keeps, for each entry, the counters that the history
 * already has: the recorded counters. A restarted sampler therefore continues
 * where the last one ended. Counters restored from a file count as recorded.
 * Eviction moves an entry's counters to its database, and the recorded ones
 * with them. So the sum of all rows always equals the counters.
 *
 * Example: an entry has 1,003 calls, the history 1,000. The next row has 3
 * calls, and then 1,003 are recorded.
 *
 * If a reset removes an entry whose growth is not yet recorded, the entry is
 * "leaving": lookups do not find it, and it keeps its slot until the next
 * record has taken the rest. If its slot is needed earlier, the rest is
 * recorded with the evicted counters of its database (statements_owe()).
 *
 * A row is never negative. A value may be below its recorded one, because
 * times were added up in another order and rounded differently. Such a value
 * is recorded again once it exceeds the recorded one.
 *
 * Locking rules: statements_shared.h. Only statements_record() allocates, in
 * plans_record_reserve(), before it takes a lock. Only statements_give_back()
 * and leaving_reclaim() wait for a lock.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/clocks.h"
#include "core/settings.h"
#include "statements/statements.h"
#include "statements/statements_shared.h"

#define NEVER PG_UINT64_MAX		/* a value that changes() never returns */

/* The recorded counters of an entry; zeros if the slot had another one. */
static Recorded *
recorded_get(const StatementEntry *entry, uint64 generation)
{
	Recorded   *recorded = &statements_memory.recorded[entry - statements_memory.entries];

	if (recorded->generation != generation)
	{
		memset(recorded, 0, sizeof(*recorded));
		recorded->generation = generation;
	}
	return recorded;
}

bool
recorded_of(const StatementEntry *entry, uint64 generation, int64 *values)
{
	static const RecordedRare none;
	uint32		slot = entry - statements_memory.entries;
	const Recorded *recorded = &statements_memory.recorded[slot];
	bool		any = recorded->generation == generation;

	if (any)
		history_join(values, recorded->hot, recorded->has_rare
					 ? statements_memory.recorded_rare[slot].values : none.values);
	else
		memset(values, 0, HISTORY_COLUMNS * sizeof(int64));
	return any;
}

/* Sets the recorded counters of an entry. */
static void
recorded_set(const StatementEntry *entry, uint64 generation,
			 const int64 *values)
{
	Recorded   *recorded = recorded_get(entry, generation);
	RecordedRare rare;
	int64		any = 0;

	history_split(values, recorded->hot, rare.values);
	for (int i = 0; i < HISTORY_RARE; i++)
		any |= rare.values[i];
	recorded->has_rare |= any != 0;
	if (recorded->has_rare)
		statements_memory.recorded_rare[entry - statements_memory.entries] = rare;
}

void
recorded_add(const StatementEntry *entry, uint64 generation,
			 const int64 *values)
{
	int64		sums[HISTORY_COLUMNS];

	recorded_of(entry, generation, sums);
	for (int i = 0; i < HISTORY_COLUMNS; i++)
		sums[i] += values[i];
	recorded_set(entry, generation, sums);
}

void
recorded_take(const StatementEntry *entry, uint64 generation,
			  const int64 *values)
{
	int64		rest[HISTORY_COLUMNS];

	recorded_of(entry, generation, rest);
	for (int i = 0; i < HISTORY_COLUMNS; i++)
		rest[i] -= values[i];
	recorded_set(entry, generation, rest);
	/* the next record must compare, though no counter has grown */
	recorded_get(entry, generation)->change = NEVER;
}

void
recorded_all(StatementEntry *entry)
{
	uint64		generation = pg_atomic_read_u64(&entry->generation);
	StatementCopy copy;
	int64		values[HISTORY_COLUMNS];

	entry_copy(entry, generation, &copy);
	counters_to_history(&copy.counters, values);
	recorded_set(entry, generation, values);
}

uint32
statements_slots(void)
{
	return pg_atomic_read_u32(&statements_memory.shared->slots.untouched);
}

int64
statements_recorded_at(void)
{
	return pg_atomic_read_u64(&statements_memory.shared->recorded_at);
}

void
statements_set_recorded_at(int64 boot_us)
{
	pg_atomic_write_u64(&statements_memory.shared->recorded_at, boot_us);
}

/* A number that changes with every addition to the entry's counters. */
static uint64
changes(StatementEntry *entry)
{
	StripeGroup *group = entry_group(entry);
	uint64		sum = group == NULL ? 0
		: (uint64) (group - statements_memory.groups + 1) << 48;

	for (int i = 0; i < stripe_count(group); i++)
		sum += pg_atomic_read_u32(&entry_stripe(entry, group, i)->change);
	return sum;
}

uint64
statements_state(void)
{
	const uint64 odd = UINT64CONST(0x9e3779b97f4a7c15);
	uint32		slots = statements_slots();
	uint64		state = 0;

	for (uint32 slot = 0; slot < slots; slot++)
	{
		StatementEntry *entry = &statements_memory.entries[slot];
		uint64		generation = pg_atomic_read_u64(&entry->generation);

		if (generation == 0)
			continue;
		state = (state ^ generation) * odd;
		state = (state ^ changes(entry)) * odd;
	}
	return state + pg_atomic_read_u64(&statements_memory.shared->skipped);
}

/* Computes the unrecorded growth of an entry. True if there is any. */
static bool
lacking(const StatementEntry *entry, uint64 generation,
		const Counters *counters, int64 *values)
{
	int64		recorded[HISTORY_COLUMNS];
	int64		any = 0;

	recorded_of(entry, generation, recorded);
	counters_to_history(counters, values);
	for (int i = 0; i < HISTORY_COLUMNS; i++)
	{
		values[i] = Max(values[i] - recorded[i], 0);
		any |= values[i];
	}
	return any != 0;
}

/*
 * Fills `row` with the counters that are not recorded yet, and notes them as
 * recorded. False if there is nothing to record now. The caller holds the
 * partition lock.
 */
static bool
record(StatementEntry *entry, uint64 generation, StatementRow *row)
{
	Recorded   *recorded = recorded_get(entry, generation);
	StatementCopy copy;
	int64		had[HISTORY_COLUMNS];

	/* before the counters: the next record sees what is added meanwhile */
	recorded->change = changes(entry);
	pg_read_barrier();
	entry_copy(entry, generation, &copy);
	row->key = copy.key;
	row->generation = generation;
	row->slot = entry - statements_memory.entries;
	row->last_call = is_accumulator(&copy.key) ? 0 : copy.last_call;
	recorded_of(entry, generation, had);
	if (!lacking(entry, generation, &copy.counters, row->values))
		return false;
	if (!plans_record(entry, row, had))
	{
		recorded->change = NEVER;
		return false;
	}
	recorded_add(entry, generation, row->values);
	return true;
}

/* ---- entries that were reset ---- */

bool
entry_leaves(StatementEntry *entry, uint64 generation, const Counters *counters,
			 TimestampTz last_call)
{
	StatementRow unused;

	if (statements_recorded_at() == 0 ||
		!lacking(entry, generation, counters, unused.values))
		return false;
	stripe_init(&entry->stripe);
	stripe_merge(&entry->stripe, entry_rare(entry, NULL, 0), counters,
				 counters_groups(counters));
	entry->stripe.last_call = last_call;
	pg_atomic_add_fetch_u32(&statements_memory.shared->leaving, 1);
	pg_write_barrier();
	pg_atomic_write_u64(&entry->leaving, generation);
	return true;
}

/*
 * Takes the unrecorded rest from the slot of a leaving entry and frees the
 * slot. False if no entry is leaving, or another process has taken it.
 */
static bool
take_leaving(StatementEntry *entry, StatementRow *row, bool with_plans)
{
	uint64		generation = pg_atomic_read_u64(&entry->leaving);
	Counters	counters;
	int64		had[HISTORY_COLUMNS];

	if (generation == 0 ||
		!pg_atomic_compare_exchange_u64(&entry->leaving, &generation, 0))
		return false;
	row->key = entry->key;
	row->generation = generation;
	row->slot = entry - statements_memory.entries;
	row->last_call = is_accumulator(&row->key) ? 0 : entry->stripe.last_call;
	counters_init(&counters);
	stripe_collect(&counters, &entry->stripe, entry_rare(entry, NULL, 0));
	recorded_of(entry, generation, had);
	(void) lacking(entry, generation, &counters, row->values);
	row->plans = 0;
	if (with_plans)
		(void) plans_record(entry, row, had);
	pg_atomic_sub_fetch_u32(&statements_memory.shared->leaving, 1);
	pool_push(&statements_memory.shared->slots, statements_memory.next_free,
			  entry - statements_memory.entries + 1);
	return true;
}

bool
leaving_reclaim(void)
{
	static uint32 at = 0;
	uint32		slots = statements_slots();
	StatementRow row;

	if (pg_atomic_read_u32(&statements_memory.shared->leaving) == 0)
		return false;
	for (uint32 looked = 0; looked < slots; looked++)
	{
		if (!take_leaving(&statements_memory.entries[at++ % slots], &row, false))
			continue;
		statements_owe(row.key.database_id, row.values);
		return true;
	}
	return false;
}

bool
statements_want_record(void)
{
	StatementsShared *shared = statements_memory.shared;

	return pg_atomic_read_u32(&shared->leaving) > shared->reserved / 8;
}

bool
statements_record(uint32 slot, StatementRow *row)
{
	StatementEntry *entry = &statements_memory.entries[slot];
	const Recorded *recorded = &statements_memory.recorded[slot];
	uint64		generation = pg_atomic_read_u64(&entry->generation);
	LWLock	   *lock = partition_lock(entry->hash);
	bool		any = false;

	plans_record_reserve();
	if (generation == 0)
		return take_leaving(entry, row, true);
	if (recorded->generation == generation && recorded->change == changes(entry))
		return false;
	if (!LWLockConditionalAcquire(lock, LW_SHARED))
		return false;
	if (pg_atomic_read_u64(&entry->generation) == generation &&
		partition_lock(entry->hash) == lock)
		any = record(entry, generation, row);
	LWLockRelease(lock);
	return any;
}

void
statements_give_back(const StatementRow *row)
{
	StatementEntry *entry = &statements_memory.entries[row->slot];
	LWLock	   *lock = partition_lock(statement_hash(&row->key));
	bool		there;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	there = pg_atomic_read_u64(&entry->generation) == row->generation;
	if (there)
	{
		recorded_take(entry, row->generation, row->values);
		plans_give_back(entry, row);
	}
	LWLockRelease(lock);
	if (!there)
		statements_owe(row->key.database_id, row->values);
}

bool
statements_lacking(const StatementReader *reader, const StatementCopy *copy,
				   int64 *values)
{
	int64		recorded_at = statements_recorded_at();
	int64		longest_ms = Max(STATEMENTS_LONGEST_MS, 2 * tacho_statements_interval);

	return recorded_at != 0 && clock_boot_us() - recorded_at < longest_ms * 1000 &&
		lacking(&statements_memory.entries[reader->slot - 1], copy->generation,
				&copy->counters, values);
}
