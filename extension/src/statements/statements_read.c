/*
 * statements_read.c
 *	  Walks over the statistics to read, reset and restore them.
 *
 * Called by SQL functions (reading, resetting), by the saver, and by the
 * postmaster while no other process exists. Memory is allocated before a lock
 * is taken, never under it. Readers do not block writers: they copy a stripe
 * without its lock, and copy it again if it has changed in between.
 *
 * For the locking rules see statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "statements/statements.h"
#include "statements/statements_shared.h"

#define PATIENCE_MS 100			/* per walk over all entries */
#define TEXT_GROW 4096

/* ---- reading ---- */

/*
 * Adds a stripe to `copy`. If a writer was stopped while it held the lock,
 * the stripe stays locked. After COPY_ATTEMPTS it is copied anyway and the
 * result is false: each counter is right, but they are of different moments.
 */
static bool
copy_stripe(Stripe *stripe, const RarePart *its_rare, uint64 generation,
			StatementCopy *copy)
{
	HotCounters hot;
	RarePart	rare = {0};
	uint32		groups;
	uint64		owner;
	TimestampTz last_call;
	bool		whole = false;

	for (int attempt = 0; attempt < COPY_ATTEMPTS && !whole; attempt++)
	{
		uint32		before = pg_atomic_read_u32(&stripe->change);

		pg_read_barrier();
		groups = *(volatile uint32 *) &stripe->groups;
		hot = stripe->hot;
		if (groups & GROUPS_RARE)
			rare = *its_rare;
		owner = pg_atomic_read_u64(&stripe->generation);
		last_call = stripe->last_call;
		pg_read_barrier();
		whole = (before & 1) == 0 &&
			pg_atomic_read_u32(&stripe->change) == before;
	}
	if (owner != generation)
		return true;
	copy->last_call = Max(copy->last_call, last_call);
	counters_add(&copy->counters, &hot, &rare.counters, groups);
	if ((groups & GROUP_error) && rare.last_error_at > copy->last_error_at)
	{
		copy->last_error_at = rare.last_error_at;
		copy->last_sqlstate = rare.last_sqlstate;
	}
	return whole;
}

/*
 * Copies everything but the text. The caller holds the partition lock. False
 * if the counters are of different moments.
 */
bool
entry_copy(StatementEntry *entry, uint64 generation, StatementCopy *copy)
{
	StripeGroup *group = entry_group(entry);
	bool		whole = true;

	copy->key = entry->key;
	copy->generation = generation;
	copy->stats_since = entry->stats_since;
	copy->minmax_stats_since = entry->minmax_stats_since;
	copy->text_since = entry->text_first ? entry->text_since : 0;
	copy->encoding = entry->encoding;
	copy->restored = generation <= statements_memory.shared->restored;
	copy->has_text = entry->text_first != 0;
	copy->text = NULL;
	copy->text_length = entry->text_length;
	copy->last_call = 0;
	copy->last_error_at = 0;
	copy->last_sqlstate = 0;
	counters_init(&copy->counters);
	for (int i = 0; i < stripe_count(group); i++)
		whole &= copy_stripe(entry_stripe(entry, group, i),
							 entry_rare(entry, group, i), generation, copy);
	return whole;
}

static bool
wants_text(const StatementReader *reader, const StatementEntry *entry)
{
	return reader->with_text && entry->text_first != 0 &&
		entry->text_since >= reader->texts_since;
}

/*
 * True if the reader asks for all entries, or this one was called or had its
 * extremes reset since the time that it asks for. Entries that are older than
 * the memory count as called when it was made, because a reader of differences
 * needs their base. The caller holds the partition lock.
 */
static bool
wants_entry(const StatementReader *reader, StatementEntry *entry)
{
	StripeGroup *group = entry_group(entry);
	bool		wants = reader->called_since <= statements_memory.shared->made_at ||
		reader->called_since <= entry->minmax_stats_since;

	for (int i = 0; i < stripe_count(group) && !wants; i++)
	{
		Stripe	   *stripe = entry_stripe(entry, group, i);

		/* its writer may have read the clock before it advanced */
		wants = (pg_atomic_read_u32(&stripe->change) & 1) != 0 ||
			*(volatile TimestampTz *) &stripe->last_call >= reader->called_since;
	}
	return wants;
}

/*
 * True if this is the postmaster, which reads when no other process exists. A
 * killed process may have left a lock, and the postmaster cannot wait for it.
 */
static bool
alone(void)
{
	return MyProc == NULL;
}

/*
 * Copies the entry in a slot. False if the slot has none that the reader
 * wants. If the text does not fit into the buffer, nothing is copied, and
 * *too_small is the size of the text. *whole: all counters are of one moment.
 */
static bool
read_slot(StatementReader *reader, uint32 slot, StatementCopy *copy,
		  Size *too_small, bool *whole)
{
	StatementEntry *entry = &statements_memory.entries[slot];
	uint64		generation = pg_atomic_read_u64(&entry->generation);
	LWLock	   *lock = partition_lock(entry->hash);
	bool		found;

	*too_small = 0;
	*whole = true;
	if (generation == 0)
		return false;
	if (!alone())
		LWLockAcquire(lock, LW_SHARED);
	found = pg_atomic_read_u64(&entry->generation) == generation &&
		partition_lock(entry->hash) == lock && wants_entry(reader, entry);
	if (found && wants_text(reader, entry) &&
		entry->text_length + 1 > reader->buffer_size)
		*too_small = entry->text_length + 1;
	else if (found)
	{
		*whole = entry_copy(entry, generation, copy);
		if (wants_text(reader, entry))
		{
			text_copy(entry->text_first, entry->text_length, reader->buffer);
			reader->buffer[entry->text_length] = '\0';
			copy->text = reader->buffer;
		}
	}
	if (!alone())
		LWLockRelease(lock);
	return found;
}

TimestampTz
statements_clock_advance(void)
{
	pg_atomic_uint64 *clock = &statements_memory.shared->clock;
	TimestampTz now = GetCurrentTimestamp();
	uint64		before = pg_atomic_read_u64(clock);

	/* a full barrier, also when another process has advanced it */
	while (!pg_atomic_compare_exchange_u64(clock, &before,
										   (uint64) Max((TimestampTz) before, now)))
		;
	return now;
}

bool
statements_read(StatementReader *reader, StatementCopy *copy)
{
	if (reader->slot == 0)
		statements_clock_advance();
	while (reader->slot <
		   pg_atomic_read_u32(&statements_memory.shared->slots.untouched))
	{
		Size		needed;
		bool		whole;
		bool		found = read_slot(reader, reader->slot, copy, &needed, &whole);

		/* its writer will finish soon, unless it has been stopped */
		if (!whole && !alone() && reader->waited < PATIENCE_MS)
		{
			reader->waited++;
			pg_usleep(1000);
			continue;
		}

		if (needed > 0)
		{
			if (reader->buffer)
				pfree(reader->buffer);
			reader->buffer = NULL;
			reader->buffer_size = TYPEALIGN(TEXT_GROW, needed);
			reader->buffer = MemoryContextAllocHuge(CurrentMemoryContext,
													reader->buffer_size);
			continue;
		}
		reader->slot++;
		if (found)
			return true;
	}
	return false;
}

void
statements_info(StatementsInfo *info)
{
	StatementsShared *shared = statements_memory.shared;

	info->evicted = pg_atomic_read_u64(&shared->evicted);
	info->skipped = pg_atomic_read_u64(&shared->skipped);
	info->entries = pg_atomic_read_u32(&shared->entries);
	info->max = statements_limit();
	info->reserved = shared->reserved - ACCUMULATORS;
	info->text_bytes = (int64) pg_atomic_read_u32(&shared->chunks_used) * TEXT_CHUNK;
	info->text_bytes_max = (int64) text_chunks_limit() * TEXT_CHUNK;
	info->plans_missing = pg_atomic_read_u64(&shared->plans_missing);
	info->texts_missing = pg_atomic_read_u64(&shared->texts_missing);
	info->normalizations = pg_atomic_read_u64(&shared->normalizations);
	info->promotions = pg_atomic_read_u64(&shared->promotions);
	info->last_eviction = pg_atomic_read_u64(&shared->last_eviction);
	info->stats_reset = pg_atomic_read_u64(&shared->stats_reset);
}

/* ---- resetting ---- */

/* Unsets the extremes of an entry. Needs partition lock and stripe locks. */
static void
reset_extremes(StatementEntry *entry, TimestampTz now)
{
	StripeGroup *group = entry_group(entry);

	for (int i = 0; i < stripe_count(group); i++)
	{
		Stripe	   *stripe = entry_stripe(entry, group, i);

		parts_reset_extremes(&stripe->hot, &entry_rare(entry, group, i)->counters,
							 stripe->groups);
	}
	entry->minmax_stats_since = now;
	entry_unlock_stripes(entry);
}

typedef struct ResetFilter
{
	Oid			user_id;
	Oid			database_id;
	uint64		query_id;
	bool		minmax_only;
} ResetFilter;

typedef enum
{
	RESET_NONE, RESET_DONE, RESET_BUSY
} ResetResult;

static bool
matches(const StatementKey *key, const ResetFilter *filter)
{
	return (filter->user_id == InvalidOid || key->user_id == filter->user_id) &&
		(filter->database_id == InvalidOid || key->database_id == filter->database_id) &&
		(filter->query_id == 0 || key->query_id == filter->query_id);
}

/* Time of an entry's last call. The caller has locked its stripes. */
static TimestampTz
latest_call(StatementEntry *entry)
{
	StripeGroup *group = entry_group(entry);
	TimestampTz latest = 0;

	for (int i = 0; i < stripe_count(group); i++)
		latest = Max(latest, entry_stripe(entry, group, i)->last_call);
	return latest;
}

/* Resets the entry in a slot if it matches. */
static ResetResult
reset_slot(uint32 slot, const ResetFilter *filter, TimestampTz now)
{
	StatementEntry *entry = &statements_memory.entries[slot];
	uint64		generation = pg_atomic_read_u64(&entry->generation);
	LWLock	   *lock = partition_lock(entry->hash);
	ResetResult result = RESET_NONE;
	bool		leaves = false;
	uint32		text = 0;

	if (generation == 0 || !matches(&entry->key, filter))
		return RESET_NONE;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&entry->generation) != generation ||
		partition_lock(entry->hash) != lock || !matches(&entry->key, filter))
		result = RESET_NONE;
	else if (!entry_lock_stripes(entry))
		result = RESET_BUSY;
	else if (filter->minmax_only)
	{
		reset_extremes(entry, now);
		result = RESET_DONE;
	}
	else
	{
		TimestampTz last_call = latest_call(entry);
		Counters	counters;

		counters_init(&counters);
		entry_remove(entry, &counters, &text);
		leaves = entry_leaves(entry, generation, &counters, last_call);
		result = RESET_DONE;
	}
	LWLockRelease(lock);
	if (leaves)
		entry_release_text(entry, text);
	else if (result == RESET_DONE && !filter->minmax_only)
		entry_release(entry, text);
	return result;
}

TimestampTz
statements_reset(Oid user_id, Oid database_id, uint64 query_id,
				 bool minmax_only)
{
	StatementsShared *shared = statements_memory.shared;
	ResetFilter filter = {user_id, database_id, query_id, minmax_only};
	TimestampTz now = GetCurrentTimestamp();
	uint32		slots = pg_atomic_read_u32(&shared->slots.untouched);
	bool		everything = user_id == InvalidOid &&
		database_id == InvalidOid && query_id == 0;

	for (uint32 slot = 0; slot < slots; slot++)
	{
		while (reset_slot(slot, &filter, now) == RESET_BUSY)
		{
			CHECK_FOR_INTERRUPTS();
			pg_usleep(100);
		}
	}
	if (!minmax_only &&
		(everything || pg_atomic_read_u32(&shared->entries) == 0))
	{
		pg_atomic_write_u64(&shared->evicted, 0);
		pg_atomic_write_u64(&shared->skipped, 0);
		pg_atomic_write_u64(&shared->stats_reset, now);
	}
	else if (!minmax_only)
		pg_atomic_write_u64(&shared->partial_reset, now);
	return now;
}

TimestampTz
statements_reset_at(void)
{
	return pg_atomic_read_u64(&statements_memory.shared->stats_reset);
}

TimestampTz
statements_partial_reset_at(void)
{
	return pg_atomic_read_u64(&statements_memory.shared->partial_reset);
}

/* ---- restoring ---- */

static uint32
restore_text(StatementEntry *entry, const StatementCopy *copy)
{
	uint32		text = copy->text ?
		text_store(&copy->key, copy->text, copy->text_length) : 0;

	entry->text_first = text;
	entry->text_length = copy->text_length;
	entry->text_since = copy->text_since;
	entry->encoding = copy->encoding;
	entry->wants_text = text == 0;
	entry->wants_jumble = text == 0;
	/* a "$" may be a parameter in place of a constant: take it as normalised */
	entry->normalized = text == 0 ||
		memchr(copy->text, '$', copy->text_length) != NULL;
	return text;
}

static void
restore_counters(StatementEntry *entry, const StatementCopy *copy)
{
	RarePart   *rare = entry_rare(entry, NULL, 0);
	uint32		groups = counters_groups(&copy->counters);

	stripe_merge(&entry->stripe, rare, &copy->counters, groups);
	entry->stripe.last_call = copy->last_call;
	if (groups & GROUP_error)
	{
		rare->last_error_at = copy->last_error_at;
		rare->last_sqlstate = copy->last_sqlstate;
	}
}

bool
statements_restore(const StatementCopy *copy, const int64 *lacking)
{
	StatementsShared *shared = statements_memory.shared;
	bool		accumulator = is_accumulator(&copy->key);
	pg_atomic_uint32 *count = accumulator ? &shared->accumulators : &shared->entries;
	uint32		limit = accumulator ? ACCUMULATORS : statements_limit();
	StatementEntry *entry;
	uint32		number;

	if (pg_atomic_read_u32(count) >= limit)
		return false;
	number = pool_pop(&shared->slots, statements_memory.next_free);
	if (number == 0)
		return false;
	entry = &statements_memory.entries[number - 1];
	entry_init(entry, &copy->key, statement_hash(&copy->key), copy->stats_since);
	entry->minmax_stats_since = copy->minmax_stats_since;
	restore_counters(entry, copy);
	restore_text(entry, copy);
	pg_atomic_add_fetch_u32(count, 1);
	if (!entry_link_new(entry))
		return false;
	shared->restored = pg_atomic_read_u64(&entry->generation);
	recorded_all(entry);
	if (lacking)
		recorded_take(entry, shared->restored, lacking);
	return true;
}

void
statements_restore_info(int64 evicted, int64 skipped, TimestampTz stats_reset)
{
	StatementsShared *shared = statements_memory.shared;

	pg_atomic_write_u64(&shared->evicted, evicted);
	pg_atomic_write_u64(&shared->skipped, skipped);
	pg_atomic_write_u64(&shared->stats_reset, stats_reset);
}
