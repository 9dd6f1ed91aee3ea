/*
 * statements_shared.h
 *	  Shared memory of the statistics of statements.
 *
 * Slab. Entries live in an array that is never unmapped or used for other
 * data, so a stale slot number is always safe to read. An entry is in use
 * while its generation is not 0, and no generation is used twice. A process
 * that has found an entry without a lock knows its generation. It compares
 * the generation again under the lock of the data it changes. An entry that
 * is not in use may be leaving: the process that sets `leaving` to 0 by
 * compare-and-exchange owns it and frees it. New entries take slots from the
 * free list, then from the untouched end (zeroed by the operating system when
 * the segment was made).
 *
 * Locks, in the order in which they may be nested:
 * 1. Partition lock (LWLock, by hash). It protects the chains of the index.
 *	  For each entry in them it protects key, generation, times, text and the
 *	  set of stripes. Exclusive to create, evict, reset, promote; shared to
 *	  find and copy. A process holds at most one. Under it nothing is
 *	  allocated or raised, and only functions of these files are called.
 *	  It also protects the counters of an entry that the history has
 *	  (Recorded). There is only one sampler, so the shared lock is enough for
 *	  it; all other processes need the exclusive lock.
 * 2. Stripe lock (the low bit of `change`). It protects the counters of the
 *	  stripe. It is only tried, and never waited for while another lock is
 *	  held. Under it no function is called, so its holder cannot leave it
 *	  locked. A stripe belongs to the entry whose generation it has; a writer
 *	  compares after locking. To remove or empty an entry, a process locks all
 *	  its stripes first. Readers do not lock: they copy and compare `change`,
 *	  which every unlock increases.
 * 3. Plan lock (the low bit of PlanPlace.change). It protects the counters of
 *	  the plans of the entry in a slot, by the rules of a stripe lock. No
 *	  stripe is locked under it. See statements_plans.c.
 *
 * The pools (free slots, free text chunks, plan sets) are stacks that are
 * changed by compare-and-exchange. Their heads have a counter, so that a
 * number that was popped and pushed again in between is noticed.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_SHARED_H
#define TACHO_STATEMENTS_SHARED_H

#include "port/atomics.h"
#include "storage/lwlock.h"

#include "core/shmem.h"
#include "statements/statement.h"

#ifdef PG_HAVE_ATOMIC_U64_SIMULATION
#error "tacho needs 64-bit atomic operations"
#endif

#define STATEMENTS_PARTITIONS 64
#define STATEMENTS_CACHE_LINE 128
#define STRIPES_PER_GROUP 7		/* beyond the one in the entry */
#define STRIPES_MAX (1 + STRIPES_PER_GROUP)
#define STRIPE_GROUPS 64		/* entries that can have more stripes */
#define ACCUMULATORS 64			/* slots for counters of evicted entries */
#define USAGE_MAX 5				/* most chances, see statements_evict.c */
#define TEXT_CHUNK 128
#define COPY_ATTEMPTS 1000		/* to copy counters that a writer changes */

/*
 * Counters of a stripe. Only the groups in `groups` have values; GROUP_exec
 * always has.
 */
typedef struct Stripe
{
	pg_atomic_uint32 change;	/* odd = locked */
	uint32		groups;			/* groups with values */
	pg_atomic_uint64 generation;	/* of the owner, 0 = none */
	TimestampTz last_call;		/* by StatementsShared.clock */
	HotCounters hot;
} Stripe;

/*
 * The rarely changed counters of a stripe, under its lock. They are stored
 * apart, so that the operating system provides memory only for the parts in
 * use.
 */
typedef struct RarePart
{
	TimestampTz last_error_at;	/* valid with GROUP_error */
	int32		last_sqlstate;
	RareCounters counters;
} RarePart;

/*
 * An execution reads the first 64 bytes and changes the stripe after them.
 * The size of an entry is a multiple of the cache line, whatever counters a
 * stripe has.
 */
typedef struct StatementEntry
{
	StatementKey key pg_attribute_aligned(STATEMENTS_CACHE_LINE);
	pg_atomic_uint64 generation;	/* 0 = not in use */
	pg_atomic_uint64 text_known;	/* see statements_text_known() */
	uint32		hash;
	uint32		next;			/* slot + 1 in the chain, 0 = end */
	pg_atomic_uint32 stripes;	/* its group + 1, 0 = none */
	bool		wants_text;		/* text did not fit or was removed */
	bool		wants_jumble;	/* ... and must be normalised */
	bool		normalized;		/* its current or last text is normalised */
	volatile uint8 usage;		/* chances; a hint, set without a lock */
	volatile uint8 one_of;		/* see statements_one_of(); a hint */
	Stripe		stripe;
	uint32		text_first;		/* chunk + 1, 0 = no text */
	int32		text_length;	/* also of a text that did not fit */
	int32		encoding;
	pg_atomic_uint64 leaving;	/* see statements_record.c */
	TimestampTz stats_since;
	TimestampTz minmax_stats_since;
	TimestampTz text_since;
} StatementEntry;

StaticAssertDecl(offsetof(StatementEntry, stripe) == 64,
				 "stripes begin at cache lines");

typedef struct StripeGroup
{
	/* members need the alignment: on a typedef it would not change the size */
	struct
	{
		Stripe		stripe pg_attribute_aligned(STATEMENTS_CACHE_LINE);
		RarePart	rare;
	}			member[STRIPES_PER_GROUP];
	pg_atomic_uint32 taken;
} StripeGroup;

StaticAssertDecl(sizeof(StripeGroup) % STATEMENTS_CACHE_LINE == 0,
				 "groups of stripes lie on cache lines");

/*
 * The counters of the entry in a slot that the history has, see
 * statements_record.c. With another generation it means zeros.
 */
typedef struct Recorded
{
	uint64		generation;
	uint64		change;			/* of the stripes when it was recorded */
	int64		hot[HISTORY_HOT];
	bool		has_rare;		/* false = RecordedRare means zeros */
} Recorded;

typedef struct RecordedRare
{
	int64		values[HISTORY_RARE];
} RecordedRare;

/* One plan of an entry that has had several. */
typedef struct CountedPlan
{
	int64		plan_id;		/* 0 = unused */
	TimestampTz since;			/* begin of the first execution that is counted */
	TimestampTz latest;			/* ... and of the last one */
	double		max_exec_time;
	double		recent_max;		/* since the entry was recorded last */
	PlanCounters counters;
} CountedPlan;

typedef struct PlanSet
{
	double		first_max;		/* longest execution before the set was made */
	CountedPlan plan[PLANS_AT_ONCE];
} PlanSet;

/*
 * The plans of the entry in a slot. If the generation is not the entry's, an
 * earlier entry has left it, and its set may be taken. See
 * statements_plans.c.
 */
typedef struct PlanPlace
{
	pg_atomic_uint64 generation;	/* of the entry */
	pg_atomic_uint64 first;		/* the plan that was executed first */
	pg_atomic_uint32 set;		/* number of its set, 0 = no other plan yet */
	pg_atomic_uint32 change;	/* odd = locked */
	bool		replaced;		/* a plan, or the whole set, has gone */
	TimestampTz since;			/* begin of the first execution of `first` */
	PlanCounters before;		/* restored, so of unknown plans */
} PlanPlace;

/* Stack of numbers from 1. `head`: count << 32 | top number, 0 = empty. */
typedef struct Pool
{
	pg_atomic_uint64 head;
	pg_atomic_uint32 untouched; /* larger numbers were never given out */
	uint32		size;
} Pool;

typedef struct StatementsShared
{
	/*
	 * kept here, because only the postmaster finds them by name
	 * (EXEC_BACKEND)
	 */
	LWLockPadded *locks;

	TimestampTz made_at;		/* when this memory was made */
	uint32		reserved;		/* entries */
	uint32		buckets;		/* power of two */
	uint32		chunks;			/* of text */
	uint64		restored;		/* last generation loaded at start */
	pg_atomic_uint64 generation;	/* last one given out */
	pg_atomic_uint64 evicted;
	pg_atomic_uint64 skipped;
	pg_atomic_uint64 texts_missing;
	pg_atomic_uint64 normalizations;
	pg_atomic_uint64 promotions;
	pg_atomic_uint64 last_eviction;	/* TimestampTz, 0 = never */
	pg_atomic_uint64 stats_reset;	/* TimestampTz */
	pg_atomic_uint64 partial_reset; /* of some entries; 0 = never */
	pg_atomic_uint64 recorded_at;	/* clock_boot_us(), 0 = discard */
	pg_atomic_uint32 entries;
	pg_atomic_uint32 accumulators;
	pg_atomic_uint32 leaving;	/* slots neither in use nor free */
	pg_atomic_uint32 chunks_used;
	pg_atomic_uint32 hand;		/* next slot that eviction visits */
	pg_atomic_uint32 plan_hand; /* next slot of a search for a set */
	pg_atomic_uint32 text_hand; /* next slot of a search for texts */
	pg_atomic_uint32 text_accounts; /* accounts with chunks */
	pg_atomic_uint32 text_held[TEXT_ACCOUNTS];	/* chunks of each account */
	Pool		slots pg_attribute_aligned(STATEMENTS_CACHE_LINE);
	Pool		texts pg_attribute_aligned(STATEMENTS_CACHE_LINE);
	Pool		plan_sets pg_attribute_aligned(STATEMENTS_CACHE_LINE);
	pg_atomic_uint64 plans_missing; /* executions not counted for their plan */

	/*
	 * See statements_clock_advance(). Each execution reads it, so it shares no
	 * cache line with what new entries write.
	 */
	pg_atomic_uint64 clock pg_attribute_aligned(STATEMENTS_CACHE_LINE);
} StatementsShared;

/* Addresses in this process; set by statements_shmem_startup(). */
typedef struct StatementsMemory
{
	StatementsShared *shared;	/* NULL = no statistics */
	StatementEntry *entries;
	RarePart   *rare;			/* of the entry's own stripe, by slot */
	Recorded   *recorded;		/* by slot */
	RecordedRare *recorded_rare;	/* by slot */
	uint32	   *next_free;		/* of slots */
	uint32	   *buckets;		/* slot + 1 */
	StripeGroup *groups;
	char	   *chunks;
	uint32	   *next_chunk;		/* chunk + 1; in a text or in the pool */
	uint16	   *text_account;	/* by first chunk of a text */
	PlanPlace  *plans;			/* by slot */
	PlanSet    *plan_sets;
	uint32	   *next_plan_set;
	LWLockPadded *locks;
} StatementsMemory;

extern StatementsMemory statements_memory;

/*
 * statements_memory.c. Callers of the index functions hold the partition
 * lock: exclusive, or shared to find (NULL = not found). A pool returns
 * numbers from 1, or 0 when it is empty.
 */
extern uint32 statement_hash(const StatementKey *key);
extern LWLock *partition_lock(uint32 hash);
extern uint32 statements_limit(void);
static inline uint32 *
bucket_of(uint32 hash)
{
	return &statements_memory.buckets[hash & (statements_memory.shared->buckets - 1)];
}

extern StatementEntry *chain_find(const StatementKey *key, uint32 hash);
extern void chain_insert(StatementEntry *entry);
extern void chain_remove(StatementEntry *entry);
extern uint32 pool_pop(Pool *pool, uint32 *next);
extern void pool_push(Pool *pool, uint32 *next, uint32 number);

/* ---- stripes of an entry ---- */

/* The extra stripes of an entry; NULL = none. */
static inline StripeGroup *
entry_group(const StatementEntry *entry)
{
	uint32		number = pg_atomic_read_u32(unconstify(pg_atomic_uint32 *,
													   &entry->stripes));

	return number == 0 ? NULL : &statements_memory.groups[number - 1];
}

static inline int
stripe_count(const StripeGroup *group)
{
	return group == NULL ? 1 : STRIPES_MAX;
}

/* Stripe `i` of an entry; i > 0 only if it has a group. */
static inline Stripe *
entry_stripe(StatementEntry *entry, StripeGroup *group, int i)
{
	return i == 0 ? &entry->stripe : &group->member[i - 1].stripe;
}

/* The rare part of that stripe. */
static inline RarePart *
entry_rare(const StatementEntry *entry, StripeGroup *group, int i)
{
	return i == 0 ? &statements_memory.rare[entry - statements_memory.entries]
		: &group->member[i - 1].rare;
}

/* Empties a stripe that no other process can change. */
static inline void
stripe_init(Stripe *stripe)
{
	stripe->groups = GROUP_exec;
	stripe->last_call = 0;
	parts_init(&stripe->hot, NULL, GROUP_exec);
}

/* Initializes missing groups. The caller holds the stripe's lock. */
static inline void
stripe_want(Stripe *stripe, RarePart *rare, uint32 groups)
{
	uint32		missing = groups & ~stripe->groups;

	if (unlikely(missing != 0))
	{
		parts_init(&stripe->hot, &rare->counters, missing);
		stripe->groups |= missing;
	}
}

/*
 * Adds groups of `from`. The caller holds the stripe's lock, and took it
 * before this function reads the clock: see statements_clock_advance().
 */
static pg_attribute_always_inline void
stripe_merge(Stripe *stripe, RarePart *rare, const Counters *from,
			 uint32 groups)
{
	stripe_want(stripe, rare, groups);
	stripe->last_call = pg_atomic_read_u64(&statements_memory.shared->clock);
	hot_add(&stripe->hot, from, groups);
	if (unlikely((groups & GROUPS_RARE) != 0))
		rare_add(&rare->counters, from, groups);
}

/* Adds all counters of the stripe to `to`. No process may change it now. */
static inline void
stripe_collect(Counters *to, const Stripe *stripe, const RarePart *rare)
{
	counters_add(to, &stripe->hot, &rare->counters, stripe->groups);
}

/*
 * statements_plans.c: counts for its plan an execution, or a parallel worker of
 * one, that the entry has counted. Never raises an error and allocates nothing.
 */
extern void plans_count(StatementEntry *entry, uint64 generation,
						const StatementDelta *delta);

/* True if this plan is known as the only one of the entry. */
static inline bool
plans_same(const StatementEntry *entry, uint64 generation, int64 plan_id)
{
	PlanPlace  *place = &statements_memory.plans[entry - statements_memory.entries];

	bool		same = pg_atomic_read_u64(&place->generation) == generation;

	pg_read_barrier();			/* the rest was written before it */
	return same && pg_atomic_read_u64(&place->first) == (uint64) plan_id &&
		pg_atomic_read_u32(&place->set) == 0;
}

/* Counts for its plan what the entry has counted. */
static inline void
plans_add(StatementEntry *entry, uint64 generation, const StatementDelta *delta)
{
	if (delta->plan_id != 0 && !plans_same(entry, generation, delta->plan_id))
		plans_count(entry, generation, delta);
}

/*
 * True if the entry in a slot has had at most one plan, and no executions from
 * before the server's start. Without the plan lock this is only a hint.
 */
static inline bool
plans_has_one(const StatementEntry *entry)
{
	PlanPlace  *place = &statements_memory.plans[entry - statements_memory.entries];

	return pg_atomic_read_u32(&place->set) == 0 && !place->replaced &&
		place->before.calls == 0;
}

/*
 * Copies place and set of an entry's plans for a record, and sets `recent_max`
 * of the plans to 0. If the entry has no set, *set becomes zeros. Does not
 * sleep: false if another process keeps the plan lock.
 */
extern bool plans_take(StatementEntry *entry, PlanPlace *place, PlanSet *set);

/*
 * statements_plans_record.c, for the sampler only: adds the plans to a row
 * whose other fields are filled. `recorded` has the counters of the entry that
 * the history has from earlier rows. False if another process keeps the plan
 * lock; the row must not be recorded then.
 */
extern bool plans_record(StatementEntry *entry, StatementRow *row,
						 const int64 *recorded);

/*
 * Makes room for plans_record(). Call it without a lock, because it allocates.
 */
extern void plans_record_reserve(void);

/*
 * Takes back the plans of a row that did not reach the history: a later row
 * has their counters again.
 */
extern void plans_give_back(const StatementEntry *entry, const StatementRow *row);

/* statements.c; see the contracts there. */
extern bool entry_lock_stripes(StatementEntry *entry);
extern void entry_unlock_stripes(StatementEntry *entry);
extern void entry_remove(StatementEntry *entry, Counters *counters,
						 uint32 *text);
extern void entry_release(StatementEntry *entry, uint32 text);
extern void entry_release_text(StatementEntry *entry, uint32 text);
extern void entry_init(StatementEntry *entry, const StatementKey *key,
					   uint32 hash, TimestampTz now);
extern bool entry_link_new(StatementEntry *entry);

/*
 * Takes the lock of a partition. While an error is being counted the lock is
 * tried for half a millisecond; false if it stayed busy.
 */
extern bool partition_acquire(LWLock *lock, LWLockMode mode);

/*
 * Sets *entry to the entry of `key`, or to NULL. False if partition_acquire()
 * failed.
 */
extern bool entry_find(const StatementKey *key, uint32 hash,
					   StatementEntry **entry, uint64 *generation);

/*
 * Puts a filled slot into the index. If another backend was faster, returns
 * its entry and sets *was_new to false. NULL if partition_acquire() failed.
 */
extern StatementEntry *entry_link(StatementEntry *entry, uint64 *generation,
								  bool *was_new);

/* statements_evicted.c; see the contracts there. */
extern void statements_accumulate(Oid database_id, const Counters *counters,
								  const int64 *recorded);
extern void statements_owe(Oid database_id, const int64 *values);

/*
 * statements_read.c: copies an entry without its text. The caller holds the
 * partition lock. False if the counters could not be copied at one moment.
 */
extern bool entry_copy(StatementEntry *entry, uint64 generation,
					   StatementCopy *copy);

/*
 * statements_record.c: the counters of an entry that the history has. The
 * caller holds the partition lock exclusively, or there is no other process.
 * recorded_of() returns false and zeros if the history has nothing. The other
 * functions add to them, subtract from them, or set them to all counters of
 * the entry.
 */
extern bool recorded_of(const StatementEntry *entry, uint64 generation,
						int64 *values);
extern void recorded_add(const StatementEntry *entry, uint64 generation,
						 const int64 *values);
extern void recorded_take(const StatementEntry *entry, uint64 generation,
						  const int64 *values);
extern void recorded_all(StatementEntry *entry);

/*
 * Keeps the slot of an entry that a reset has just removed, if the history
 * lacks any of its counters. The next record takes these, with the time of
 * the last call, and frees the slot. False if there is nothing to keep. The
 * caller holds the partition lock exclusively.
 */
extern bool entry_leaves(StatementEntry *entry, uint64 generation,
						 const Counters *counters, TimestampTz last_call);

/*
 * Frees a slot that waits for the next record, if no other slot is free. Its
 * counters reach the history with the counters of evicted entries. False if
 * no slot waits.
 */
extern bool leaving_reclaim(void);

/*
 * statements_evict.c: makes room for one more entry and counts it in
 * `entries`. False if there is no room.
 */
extern bool statements_make_room(void);

/*
 * statements_text.c: chains of chunks; 0 = none. All are lock-free except
 * text_store_anyhow(), which tries partition locks: if memory is full, it
 * takes the memory of other texts.
 */
extern uint32 text_store(const StatementKey *owner, const char *text, int length);
extern uint32 text_store_anyhow(const StatementKey *owner, const char *text,
								int length);
extern void text_free(uint32 first);
extern void text_copy(uint32 first, int length, char *to);

/* True if a text of that role has room, possibly by removing other texts. */
extern bool text_has_room(const StatementKey *owner, int length);
extern uint32 text_chunks_limit(void);

/* Most bytes of one text. A longer text is cut and ends with TEXT_CUT. */
extern int	text_most(void);
#define TEXT_CUT "..."

/*
 * The text to keep for a source, at most a 16th of the memory for texts. A
 * normalised or cut text is allocated in the current memory context, and
 * `owned` is set. `bytes` is NULL if normalising failed. A source with
 * constants must not be passed while an error is being handled or interrupts
 * are held, because scanning takes time.
 */
typedef struct SourceText
{
	const char *bytes;
	char	   *owned;			/* NULL = bytes are part of the source */
	int			length;
} SourceText;

extern SourceText text_of_source(const StatementSource *source);

static inline bool
same_key(const StatementKey *a, const StatementKey *b)
{
	return a->query_id == b->query_id && a->user_id == b->user_id &&
		a->database_id == b->database_id && a->toplevel == b->toplevel;
}

/* True for the entry with the counters of a database's evicted entries. */
static inline bool
is_accumulator(const StatementKey *key)
{
	return key->query_id == 0 && key->user_id == InvalidOid;
}

/*
 * Stripe lock. No function may be called between a successful trylock and the
 * unlock. Readers trust counters while `change` is even. So the odd value
 * must be visible before any write under the lock. On ARM a
 * compare-and-exchange alone does not ensure that: later stores may overtake
 * its store.
 */
static inline bool
change_trylock(pg_atomic_uint32 *change)
{
	uint32		before = pg_atomic_read_u32(change);

	if ((before & 1) != 0 ||
		!pg_atomic_compare_exchange_u32(change, &before, before + 1))
		return false;
	pg_write_barrier();
	return true;
}

static inline void
change_unlock(pg_atomic_uint32 *change)
{
	pg_write_barrier();
	pg_atomic_write_u32(change, pg_atomic_read_u32(change) + 1);
}

static inline bool
stripe_trylock(Stripe *stripe)
{
	return change_trylock(&stripe->change);
}

static inline void
stripe_unlock(Stripe *stripe)
{
	change_unlock(&stripe->change);
}

#endif							/* TACHO_STATEMENTS_SHARED_H */
