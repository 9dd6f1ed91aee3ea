/*
 * statements.c
 *	  Statistics of statements: finding entries and adding to their stripes.
 *
 * An execution finds its entry in the index without a lock. It locks a stripe
 * of the entry (one atomic operation), compares the generation, and adds its
 * counters. If this search fails, it searches again under the shared lock of
 * the partition. To make an entry it takes that lock exclusively.
 *
 * If the stripe is busy, the entry gets more stripes, and backends are spread
 * over them. If every stripe stays busy, the backend sleeps at most ten times
 * 50 us. Then it counts the execution as skipped. A longer wait could last for
 * ever, because the operating system may have stopped the holder.
 *
 * Nothing on the path of an execution raises errors. Interrupts are held
 * while chunks, slots or groups are taken from the pools, so that a backend
 * cannot exit in between and lose them.
 *
 * Locking rules: statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/hot.h"
#include "statements/statements.h"
#include "statements/statements_shared.h"

/* steps in a chain after which a search without a lock gives up */
#define CHAIN_STEPS 64
/* the first executions of a statement are all measured */
#define EXACT_CALLS 16
/* ms; for executions with a shorter mean, measuring costs over 1 % */
#define TINY_MS 0.2
/* weight of an execution in entry_rate() if the mean is below TINY_MS */
#define TINY_COUNTS 4
/* us; a new entry sets the clock if no tick has set it for longer */
#define CLOCK_LATE_US (5 * USECS_PER_SEC)

/* An entry that was found: `entry` NULL = none. */
typedef struct Found
{
	StatementEntry *entry;
	uint64		generation;
} Found;

typedef enum
{
	ADD_DONE, ADD_STALE, ADD_BUSY
} AddResult;

/* an error is being handled: locks are only tried */
static bool hurried = false;

/* the newest result: one statement searches for its entry several times */
static HOT_DATA struct
{
	uint64		query_id;
	StatementEntry *entry;
}			latest = {0};

/* ---- stripes ---- */

/*
 * Locks all stripes of an entry, or none. The caller holds the partition lock
 * exclusively. Until entry_unlock_stripes() only functions of these files may
 * be called.
 */
bool
entry_lock_stripes(StatementEntry *entry)
{
	StripeGroup *group = entry_group(entry);

	for (int i = 0; i < stripe_count(group); i++)
	{
		if (stripe_trylock(entry_stripe(entry, group, i)))
			continue;
		while (--i >= 0)
			stripe_unlock(entry_stripe(entry, group, i));
		return false;
	}
	return true;
}

void
entry_unlock_stripes(StatementEntry *entry)
{
	StripeGroup *group = entry_group(entry);

	for (int i = 0; i < stripe_count(group); i++)
		stripe_unlock(entry_stripe(entry, group, i));
}

/*
 * Removes an entry from the index. Adds its counters to `counters` unless
 * that is NULL, hands over its text, and unlocks its stripes, which are then
 * free. The caller holds the partition lock exclusively and the stripes.
 * After releasing the partition lock, it must call entry_release().
 */
void
entry_remove(StatementEntry *entry, Counters *counters, uint32 *text)
{
	StripeGroup *group = entry_group(entry);

	chain_remove(entry);
	for (int i = 0; i < stripe_count(group); i++)
	{
		Stripe	   *stripe = entry_stripe(entry, group, i);

		if (counters)
			stripe_collect(counters, stripe, entry_rare(entry, group, i));
		pg_atomic_write_u64(&stripe->generation, 0);
		stripe_unlock(stripe);
	}
	pg_atomic_write_u64(&entry->generation, 0);
	pg_atomic_write_u32(&entry->stripes, 0);
	if (group)
		pg_atomic_write_u32(&group->taken, 0);
	*text = entry->text_first;
	entry->text_first = 0;
}

/* Frees the slot and the text of a removed entry. */
void
entry_release(StatementEntry *entry, uint32 text)
{
	entry_release_text(entry, text);
	pool_push(&statements_memory.shared->slots, statements_memory.next_free,
			  entry - statements_memory.entries + 1);
}

/* Frees everything but the slot. */
void
entry_release_text(StatementEntry *entry, uint32 text)
{
	bool		accumulator = is_accumulator(&entry->key);

	text_free(text);
	if (accumulator)
		pg_atomic_sub_fetch_u32(&statements_memory.shared->accumulators, 1);
	else
		pg_atomic_sub_fetch_u32(&statements_memory.shared->entries, 1);
}

/* Gives an entry more stripes; false if that was not possible. */
static bool
entry_promote(StatementEntry *entry, uint64 generation)
{
	LWLock	   *lock = partition_lock(entry->hash);
	bool		promoted = false;

	if (entry_group(entry) != NULL || !LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
		return false;
	for (int i = 0; i < STRIPE_GROUPS && !promoted; i++)
	{
		StripeGroup *group = &statements_memory.groups[i];
		uint32		expected = 0;

		if (pg_atomic_read_u64(&entry->generation) != generation ||
			entry_group(entry) != NULL)
			break;
		if (!pg_atomic_compare_exchange_u32(&group->taken, &expected, 1))
			continue;
		for (int s = 0; s < STRIPES_PER_GROUP; s++)
		{
			Stripe	   *stripe = &group->member[s].stripe;

			stripe_init(stripe);
			pg_write_barrier();
			pg_atomic_write_u64(&stripe->generation, generation);
		}
		pg_write_barrier();
		pg_atomic_write_u32(&entry->stripes, i + 1);
		promoted = true;
	}
	LWLockRelease(lock);
	if (promoted)
		pg_atomic_add_fetch_u64(&statements_memory.shared->promotions, 1);
	return promoted;
}

bool
partition_acquire(LWLock *lock, LWLockMode mode)
{
	if (!hurried)
	{
		LWLockAcquire(lock, mode);
		return true;
	}
	for (int attempt = 0; attempt < 10; attempt++)
	{
		if (LWLockConditionalAcquire(lock, mode))
			return true;
		pg_usleep(50);
	}
	return false;
}

/* ---- adding ---- */

/*
 * Gives the entry a chance (statements_evict.c). A lost update does no harm.
 */
static inline void
entry_touch(StatementEntry *entry)
{
	uint8		usage = entry->usage;

	if (usage < USAGE_MAX)
		entry->usage = usage + 1;
}

/*
 * Weight of a measured execution that used `taken` ms: `n`, but at most as
 * many as fit into `left` ms, and at least 1.
 */
static inline double
bounded_weight(double n, double taken, double left)
{
	return n <= 1 || taken * n <= left ? n : Max(left / taken, 1);
}

/*
 * Multiplies the measurements of a drawn execution by its weight. If the
 * executions of a statement differ, the drawn one may have used much more
 * than the others. So the weight is limited: no statement may have more CPU
 * time than duration. (Parallel workers may, but they are not drawn.)
 */
static inline void
weigh(const HotCounters *hot, uint32 there, StatementDelta *delta)
{
	Counters   *added = &delta->counters;
	double		total = hot->total_exec_time +
		((delta->groups & GROUP_exec) ? added->total_exec_time : 0);
	double		cpu = (there & GROUP_cpu) ? hot->user_time + hot->system_time : 0;
	double		queue = (there & GROUP_cpu) ? hot->run_queue_time : 0;
	double		n = bounded_weight(delta->weight.rusage,
								   added->user_time + added->system_time,
								   total - cpu);

	added->run_queue_time *= bounded_weight(delta->weight.run_queue,
											added->run_queue_time, total - queue);
	added->user_time *= n;
	added->system_time *= n;
	added->read_bytes *= n;
	added->written_bytes *= n;
	added->minor_faults *= n;
	if (unlikely((delta->groups & GROUP_faults) != 0))
		added->major_faults *= n;
	added->voluntary_switches *= n;
	added->involuntary_switches *= n;
}

/*
 * Adds `delta` to a stripe. The caller holds the stripe's lock, so nothing
 * that may fail is called. `measured` is a compile-time constant: true = with
 * the counters of GROUP_cpu.
 */
static pg_attribute_always_inline void
stripe_add(Stripe *stripe, RarePart *rare, StatementDelta *delta,
		   TimestampTz now, bool measured)
{
	if (measured)
		weigh(&stripe->hot, stripe->groups, delta);
	stripe_merge(stripe, rare, &delta->counters,
				 measured ? delta->groups : delta->groups & ~GROUP_cpu);
	if (delta->histogram_bucket >= 0)
	{
		stripe_want(stripe, rare, GROUP_histogram);
		stripe->hot.histogram[delta->histogram_bucket]++;
	}
	if (unlikely(delta->sqlstate != 0))
	{
		rare->last_sqlstate = delta->sqlstate;
		rare->last_error_at = now;
	}
}

/*
 * Sets `one_of`: one of this many executions is measured from now on. All are
 * measured if their mean, as counted in the entry's own stripe, is LONG_MS or
 * more. Example: a quarter is measured up to 64 executions, a 16th up to
 * 1,024; so about a hundred are measured before measuring becomes rare. If the
 * mean is below TINY_MS, each execution counts as TINY_COUNTS: for statements
 * that use so little, fewer measurements are enough. The caller holds the
 * stripe's lock.
 */
static inline void
entry_rate(StatementEntry *entry)
{
	const HotCounters *counters = &entry->stripe.hot;
	int64		calls = counters->calls;
	double		total_ms = counters->total_exec_time;
	int			one_of = ONE_OF_LEAST;

	if (total_ms < TINY_MS * calls)
		calls *= TINY_COUNTS;
	if (calls < EXACT_CALLS || total_ms >= LONG_MS * counters->calls)
		one_of = 1;
	while (one_of > 1 && one_of < ONE_OF_MOST && calls >= 4 * one_of * one_of)
		one_of *= 4;
	if (entry->one_of != one_of)
		entry->one_of = one_of;
}

/* Tries each stripe of the entry once. For `measured` see stripe_add(). */
static pg_attribute_always_inline AddResult
try_each(StatementEntry *entry, uint64 generation,
		 StatementDelta *delta, TimestampTz now, bool measured)
{
	StripeGroup *group = entry_group(entry);
	int			n = stripe_count(group);
	int			first = n == 1 ? 0 : compat_proc_number() % n;

	for (int i = 0; i < n; i++)
	{
		Stripe	   *stripe = entry_stripe(entry, group, (first + i) % n);
		bool		again;

		if (!stripe_trylock(stripe))
			continue;
		if (pg_atomic_read_u64(&stripe->generation) != generation)
		{
			stripe_unlock(stripe);
			/* another entry may just have got the group */
			if (pg_atomic_read_u64(&entry->generation) != generation)
				return ADD_STALE;
			continue;
		}
		again = stripe->hot.calls > 0;
		stripe_add(stripe, entry_rare(entry, group, (first + i) % n), delta,
				   now, measured);
		if (stripe == &entry->stripe)
			entry_rate(entry);
		stripe_unlock(stripe);
		if (again)
			entry_touch(entry);
		return ADD_DONE;
	}
	return ADD_BUSY;
}

static pg_noinline AddResult
try_measured(StatementEntry *entry, uint64 generation,
			 StatementDelta *delta, TimestampTz now)
{
	return try_each(entry, generation, delta, now, true);
}

static pg_attribute_hot inline AddResult
try_stripes(StatementEntry *entry, uint64 generation,
			StatementDelta *delta, TimestampTz now)
{
	if (unlikely((delta->groups & GROUP_cpu) != 0))
		return try_measured(entry, generation, delta, now);
	return try_each(entry, generation, delta, now, false);
}

/* Promotes the entry and tries again for a while: all stripes were busy. */
static pg_noinline AddResult
entry_add_busy(StatementEntry *entry, uint64 generation,
			   StatementDelta *delta, TimestampTz now)
{
	AddResult	result = ADD_BUSY;

	for (int attempt = 0; result == ADD_BUSY && attempt < 20; attempt++)
	{
		if (attempt == 2)
			entry_promote(entry, generation);
		else if (attempt >= 10)
			pg_usleep(50);
		else
			pg_spin_delay();
		result = try_stripes(entry, generation, delta, now);
	}
	return result;
}

static pg_attribute_hot inline AddResult
entry_add(StatementEntry *entry, uint64 generation,
		  StatementDelta *delta)
{
	TimestampTz now = delta->sqlstate != 0 ? GetCurrentTimestamp() : 0;
	AddResult	result = try_stripes(entry, generation, delta, now);

	if (unlikely(result == ADD_BUSY))
		result = entry_add_busy(entry, generation, delta, now);
	return result;
}

/* ---- finding ---- */

/*
 * True if `entry` has this key now. There is no lock, so the key may be
 * changing. Then the generation is 0, or one that no stripe has.
 */
static inline bool
entry_is(StatementEntry *entry, const StatementKey *key, uint64 *generation)
{
	*generation = pg_atomic_read_u64(&entry->generation);
	pg_read_barrier();			/* the key was written before it */
	return *generation != 0 && same_key(&entry->key, key);
}

/*
 * Finds the entry of `key` without a lock. A chain may change during the
 * walk. An entry that the walk finds is always right, but it may miss an
 * entry that exists.
 */
static pg_attribute_hot Found
walk_unlocked(const StatementKey *key)
{
	uint32		hash = statement_hash(key);
	uint32		at = *(volatile uint32 *) bucket_of(hash);
	Found		found = {NULL};

	for (int i = 0; at != 0 && i < CHAIN_STEPS; i++)
	{
		StatementEntry *entry = &statements_memory.entries[at - 1];

		if (entry->hash == hash && entry_is(entry, key, &found.generation))
		{
			found.entry = entry;
			latest.query_id = key->query_id;
			latest.entry = entry;
			break;
		}
		at = *(volatile uint32 *) &entry->next;
	}
	return found;
}

static inline Found
find_unlocked(const StatementKey *key)
{
	Found		found = {NULL};

	if (latest.query_id == key->query_id && latest.entry != NULL &&
		entry_is(latest.entry, key, &found.generation))
		found.entry = latest.entry;
	else if (statements_active())
		found = walk_unlocked(key);
	return found;
}

static pg_attribute_hot Found
find_own(uint64 query_id, bool toplevel)
{
	StatementKey key = {
		.query_id = query_id,
		.user_id = GetUserId(),
		.database_id = MyDatabaseId,
		.toplevel = toplevel,
	};

	return find_unlocked(&key);
}

pg_attribute_hot int
statements_one_of(uint64 query_id, bool toplevel)
{
	Found		found = find_own(query_id, toplevel);

	return found.entry != NULL ? found.entry->one_of : 1;
}

bool
statements_text_there(uint64 query_id, bool toplevel)
{
	Found		found = find_own(query_id, toplevel);

	return found.entry != NULL && !found.entry->wants_text;
}

/* The value of `text_known`: the generation of the entry and `texts`. */
static inline uint64
text_mark(const Found *found, uint32 texts)
{
	return found->generation << 16 | (texts & 0xffff);
}

pg_attribute_hot bool
statements_text_known(uint64 query_id, bool toplevel, uint32 texts)
{
	Found		found = find_own(query_id, toplevel);

	return found.entry != NULL &&
		pg_atomic_read_u64(&found.entry->text_known) == text_mark(&found, texts);
}

void
statements_note_text(uint64 query_id, bool toplevel, uint32 texts)
{
	Found		found = find_own(query_id, toplevel);

	if (found.entry != NULL)
		pg_atomic_write_u64(&found.entry->text_known, text_mark(&found, texts));
}

/* ---- creation ---- */

/* Fills a slot that no other process can reach yet. Its generation stays 0. */
void
entry_init(StatementEntry *entry, const StatementKey *key, uint32 hash,
		   TimestampTz now)
{
	entry->key = *key;
	entry->hash = hash;
	entry->stats_since = now;
	entry->minmax_stats_since = now;
	entry->text_since = 0;
	entry->text_first = 0;
	entry->text_length = 0;
	entry->encoding = GetDatabaseEncoding();
	entry->wants_text = false;
	entry->wants_jumble = false;
	entry->normalized = false;
	entry->usage = 1;
	entry->one_of = 1;
	stripe_init(&entry->stripe);
}

StatementEntry *
entry_link(StatementEntry *entry, uint64 *generation, bool *was_new)
{
	StatementEntry *other;

	*was_new = false;
	if (!partition_acquire(partition_lock(entry->hash), LW_EXCLUSIVE))
		return NULL;
	other = chain_find(&entry->key, entry->hash);
	*was_new = other == NULL;
	if (other == NULL)
	{
		*generation = pg_atomic_add_fetch_u64(&statements_memory.shared->generation, 1);
		chain_insert(entry);
		pg_atomic_write_u64(&entry->stripe.generation, *generation);
		pg_atomic_write_u64(&entry->generation, *generation);
		other = entry;
	}
	else
		*generation = pg_atomic_read_u64(&other->generation);
	LWLockRelease(partition_lock(entry->hash));
	return other;
}

bool
entry_link_new(StatementEntry *entry)
{
	uint32		text = entry->text_first;
	uint64		generation;
	bool		was_new;

	entry_link(entry, &generation, &was_new);
	if (!was_new)
		entry_release(entry, text);
	return was_new;
}

/* Takes a slot for a new entry; NULL if the limit is reached. */
static StatementEntry *
slot_take(void)
{
	StatementsShared *shared = statements_memory.shared;
	uint32		number = 0;

	if (statements_make_room())
	{
		number = pool_pop(&shared->slots, statements_memory.next_free);
		while (number == 0 && leaving_reclaim())
			number = pool_pop(&shared->slots, statements_memory.next_free);
		if (number == 0)
			pg_atomic_sub_fetch_u32(&shared->entries, 1);
	}
	return number == 0 ? NULL : &statements_memory.entries[number - 1];
}

/* Stores a text of `owner` and returns its first chunk, 0 = no room. */
static uint32
source_store(const StatementKey *owner, const SourceText *text)
{
	uint32		first = text->bytes ?
		text_store_anyhow(owner, text->bytes, text->length) : 0;

	if (text->bytes && first == 0)
		pg_atomic_add_fetch_u64(&statements_memory.shared->texts_missing, 1);
	return first;
}

/*
 * The present time, for a new entry. Sets the clock of the statistics only
 * if no sampler has for a while, because all executions read its cache line.
 */
static TimestampTz
entry_time(void)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		clock = pg_atomic_read_u64(&statements_memory.shared->clock);

	return now - (TimestampTz) clock > CLOCK_LATE_US ?
		statements_clock_advance() : now;
}

/* Takes a slot and fills it; NULL if there is no room. Interrupts are held. */
static StatementEntry *
entry_fill(const StatementKey *key, uint32 hash,
		   const StatementSource *source, const SourceText *text)
{
	StatementEntry *entry = slot_take();
	TimestampTz now = entry_time();

	if (entry == NULL)
		return NULL;
	entry_init(entry, key, hash, now);
	entry->text_length = text->length;
	entry->normalized = source != NULL && source->jumble != NULL;
	entry->text_first = source_store(key, text);
	if (entry->text_first != 0)
		entry->text_since = now;
	else
	{
		entry->wants_text = key->query_id != 0;
		entry->wants_jumble = entry->normalized;
	}
	return entry;
}

/*
 * Makes the entry `key`; NULL if there is no room. The text is made before
 * interrupts are held, because scanning takes time.
 */
static StatementEntry *
entry_create(const StatementKey *key, uint32 hash,
			 const StatementSource *source, uint64 *generation)
{
	StatementEntry *entry = NULL;
	StatementEntry *mine;
	SourceText	text = {0};
	bool		was_new;

	if (source)
		text = text_of_source(source);
	HOLD_INTERRUPTS();
	mine = entry_fill(key, hash, source, &text);
	if (mine != NULL)
	{
		uint32		first = mine->text_first;

		entry = entry_link(mine, generation, &was_new);
		if (!was_new)
			entry_release(mine, first);
	}
	RESUME_INTERRUPTS();
	if (text.owned)
		pfree(text.owned);
	return entry;
}

bool
entry_find(const StatementKey *key, uint32 hash, StatementEntry **entry,
		   uint64 *generation)
{
	if (!partition_acquire(partition_lock(hash), LW_SHARED))
		return false;
	*entry = chain_find(key, hash);
	if (*entry)
		*generation = pg_atomic_read_u64(&(*entry)->generation);
	LWLockRelease(partition_lock(hash));
	return true;
}

/* Finds or makes the entry; .entry is NULL if there is no room. */
static Found
entry_get(const StatementKey *key, const StatementSource *source)
{
	uint32		hash = statement_hash(key);
	Found		found = {NULL};

	if (entry_find(key, hash, &found.entry, &found.generation) &&
		found.entry == NULL)
		found.entry = entry_create(key, hash, source, &found.generation);
	return found;
}

/* Gives a stored text to an entry, if the entry still exists and lacks one. */
static void
entry_take_text(StatementEntry *entry, uint64 generation, uint32 first,
				int length, bool normalized)
{
	TimestampTz now = GetCurrentTimestamp();
	LWLock	   *lock = partition_lock(entry->hash);
	bool		locked = partition_acquire(lock, LW_EXCLUSIVE);

	if (locked && pg_atomic_read_u64(&entry->generation) == generation &&
		entry->wants_text)
	{
		entry->text_first = first;
		entry->text_length = length;
		entry->text_since = now;
		entry->encoding = GetDatabaseEncoding();
		entry->wants_text = false;
		entry->normalized = normalized;
		first = 0;
	}
	if (locked)
		LWLockRelease(lock);
	text_free(first);
}

/* Gives an entry the text that did not fit when the entry was made. */
static void
entry_fill_text(StatementEntry *entry, uint64 generation,
				const StatementSource *source)
{
	SourceText	text;
	uint32		first;

	/* a raw text must not take the place of a normalised one */
	if ((entry->wants_jumble && source->jumble == NULL && !source->masked) ||
		!text_has_room(&entry->key, entry->text_length))
		return;
	text = text_of_source(source);
	HOLD_INTERRUPTS();
	first = source_store(&entry->key, &text);
	if (first != 0)
		entry_take_text(entry, generation, first, text.length,
						source->jumble != NULL);
	RESUME_INTERRUPTS();
	if (text.owned)
		pfree(text.owned);
}

/* ---- called by hooks ---- */

pg_attribute_hot void
statements_remember(const StatementKey *key, const StatementSource *source)
{
	Found		found = find_unlocked(key);

	if (found.entry == NULL)
		found = entry_get(key, source);
	if (found.entry != NULL && found.entry->wants_text)
		entry_fill_text(found.entry, found.generation, source);
}

pg_attribute_hot void
statements_add(const StatementKey *key, StatementDelta *delta,
			   const StatementSource *source)
{
	Found		found = find_unlocked(key);
	AddResult	result = ADD_STALE;

	/* an entry may rarely be removed between finding and adding */
	for (int attempt = 0; result == ADD_STALE && attempt < 4; attempt++)
	{
		if (found.entry == NULL)
			found = entry_get(key, source);
		if (found.entry == NULL)
			break;
		result = entry_add(found.entry, found.generation, delta);
		if (result == ADD_STALE)
			found.entry = NULL;
	}
	if (result == ADD_DONE)
	{
		plans_add(found.entry, found.generation, delta);
		if (found.entry->wants_text && source)
			entry_fill_text(found.entry, found.generation, source);
	}
	else if (delta->groups & GROUP_exec)
		pg_atomic_add_fetch_u64(&statements_memory.shared->skipped,
								delta->counters.calls);
}

void
statements_add_failure(const StatementKey *key, StatementDelta *delta,
					   const StatementSource *source)
{
	hurried = true;
	statements_add(key, delta, source);
	hurried = false;
}

void
statements_add_if_there(const StatementKey *key, StatementDelta *delta)
{
	StatementEntry *entry = NULL;
	uint64		generation;

	if (entry_find(key, statement_hash(key), &entry, &generation) && entry &&
		entry_add(entry, generation, delta) == ADD_DONE)
		plans_add(entry, generation, delta);
}
