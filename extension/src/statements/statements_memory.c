/*
 * statements_memory.c
 *	  Shared memory of the statistics of statements: layout, pools, index.
 *
 * For the locking rules see statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "core/clocks.h"
#include "core/hot.h"
#include "statements/statements_alias.h"
#include "statements/statements.h"
#include "statements/statements_shared.h"

#define TRANCHE "tacho statements"

/* the largest value of statements_max */
#define MAX_STATEMENTS (INT_MAX / 2)

HOT_DATA StatementsMemory statements_memory = {0};

/* used by the postmaster only */
static uint32 requested_slots = 0;
static uint32 requested_chunks = 0;

/* ---- memory ---- */

pg_attribute_hot bool
statements_active(void)
{
	return statements_memory.shared != NULL;
}

/*
 * Amount to reserve for a limit that is `now` and that a reload may change:
 * `setting`, but at least `now`; twice `now` if `setting` is -1.
 */
static uint64
reserved_for(int now, int setting)
{
	return setting < 0 ? 2 * (uint64) now : (uint64) Max(now, setting);
}

/*
 * Computes the number of entries (accumulators included) and of chunks to
 * reserve. They are fixed at server start, because the settings may have
 * changed when the memory is made again after a crash.
 */
static void
reserve(uint32 *slots, uint32 *chunks)
{
	uint64		most = reserved_for(setting_max(),
									tacho_statements_max_reserved);
	uint64		kb = reserved_for(tacho_query_text_memory,
								  tacho_query_text_memory_reserved);

	/* the index has a power of two of buckets, and its size is 32 bits */
	*slots = Min(most, (uint64) MAX_STATEMENTS) + ACCUMULATORS;
	*chunks = Min(kb * 1024 / TEXT_CHUNK, (uint64) INT_MAX);
}

static uint32
buckets_for(uint32 slots)
{
	return pg_nextpower2_32(Max(slots, STATEMENTS_PARTITIONS));
}

/* Enough for half of all statements to have several plans. */
static uint32
plan_sets_for(uint32 slots)
{
	return slots / 2;
}

/*
 * Divides `base`, which may be NULL, into the parts of the slab. Returns
 * their total size in bytes.
 */
static Size
lay_out(char *base, uint32 slots, uint32 chunks, StatementsMemory *memory)
{
	Size		at = 0;

#define CARVE(member, type, n) \
	do { \
		memory->member = (type *) (base + at); \
		at = add_size(at, TYPEALIGN(STATEMENTS_CACHE_LINE, \
									mul_size(sizeof(type), n))); \
	} while (0)
	CARVE(entries, StatementEntry, slots);
	CARVE(rare, RarePart, slots);
	CARVE(recorded, Recorded, slots);
	CARVE(recorded_rare, RecordedRare, slots);
	CARVE(next_free, uint32, slots);
	CARVE(buckets, uint32, buckets_for(slots));
	CARVE(groups, StripeGroup, STRIPE_GROUPS);
	CARVE(next_chunk, uint32, chunks);
	CARVE(text_account, uint16, chunks);
	CARVE(plans, PlanPlace, slots);
	CARVE(plan_sets, PlanSet, plan_sets_for(slots));
	CARVE(next_plan_set, uint32, plan_sets_for(slots));
	CARVE(chunks, char, (Size) chunks * TEXT_CHUNK);
#undef CARVE
	return at + STATEMENTS_CACHE_LINE;
}

void
statements_shmem_request(void)
{
	StatementsMemory unused;

	reserve(&requested_slots, &requested_chunks);
	RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(StatementsShared)),
									lay_out(NULL, requested_slots,
											requested_chunks, &unused)));
	RequestNamedLWLockTranche(TRANCHE, STATEMENTS_PARTITIONS);
}

static void
shared_init(StatementsShared *shared)
{
	memset(shared, 0, sizeof(*shared));
	shared->locks = GetNamedLWLockTranche(TRANCHE);
	shared->reserved = requested_slots;
	shared->buckets = buckets_for(requested_slots);
	shared->chunks = requested_chunks;
	shared->slots.size = shared->reserved;
	shared->texts.size = shared->chunks;
	shared->plan_sets.size = plan_sets_for(shared->reserved);
	shared->made_at = GetCurrentTimestamp();
	pg_atomic_init_u64(&shared->clock, shared->made_at);
	pg_atomic_init_u64(&shared->stats_reset, shared->made_at);
	pg_atomic_init_u64(&shared->recorded_at, clock_boot_us());
}

/*
 * Makes or attaches the memory, and returns whether it was made. The operating
 * system fills a new segment with zeros, which mean an unused slab. So a page
 * gets memory only when it is first used.
 */
bool
statements_shmem_startup(void)
{
	bool		found;
	bool		slab_found;
	char	   *base;
	StatementsMemory memory;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory.shared = ShmemInitStruct(TRANCHE, sizeof(StatementsShared), &found);
	if (!found)
		shared_init(memory.shared);
	base = ShmemInitStruct(TRANCHE " slab",
						   lay_out(NULL, memory.shared->reserved,
								   memory.shared->chunks, &memory),
						   &slab_found);
	lay_out((char *) TYPEALIGN(STATEMENTS_CACHE_LINE, base),
			memory.shared->reserved, memory.shared->chunks, &memory);
	memory.locks = memory.shared->locks;
	statements_memory = memory;
	LWLockRelease(AddinShmemInitLock);
	return !found;
}

void
statements_require(const char *library)
{
	if (!statements_active())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s must be loaded via \"shared_preload_libraries\"",
						library),
				 errhint("Add tacho to \"shared_preload_libraries\", leave \"tacho.statements\" on, and restart the server.")));
}

/* ---- pools ---- */

/* Returns a number from 1, or 0 if the pool is empty. */
uint32
pool_pop(Pool *pool, uint32 *next)
{
	uint64		head = pg_atomic_read_u64(&pool->head);
	uint32		number;

	while ((number = (uint32) head) != 0)
	{
		uint32		after = ((volatile uint32 *) next)[number - 1];
		uint64		wanted = (((head >> 32) + 1) << 32) | after;

		if (pg_atomic_compare_exchange_u64(&pool->head, &head, wanted))
			return number;
	}

	number = pg_atomic_read_u32(&pool->untouched);
	while (number < pool->size)
		if (pg_atomic_compare_exchange_u32(&pool->untouched, &number,
										   number + 1))
			return number + 1;
	return 0;
}

void
pool_push(Pool *pool, uint32 *next, uint32 number)
{
	uint64		head = pg_atomic_read_u64(&pool->head);
	uint64		wanted;

	do
	{
		next[number - 1] = (uint32) head;
		pg_write_barrier();
		wanted = (((head >> 32) + 1) << 32) | number;
	} while (!pg_atomic_compare_exchange_u64(&pool->head, &head, wanted));
}

/* ---- index ---- */

pg_attribute_hot uint32
statement_hash(const StatementKey *key)
{
	uint64		hash = key->query_id ^ ((uint64) key->user_id << 32) ^
		((uint64) key->database_id << 8) ^ key->toplevel;

	/* query ids are hashes already; this mixes in the other fields */
	hash = (hash ^ (hash >> 32)) * UINT64CONST(0x9e3779b97f4a7c15);
	return (uint32) (hash >> 32);
}

LWLock *
partition_lock(uint32 hash)
{
	return &statements_memory.locks[hash % STATEMENTS_PARTITIONS].lock;
}

StatementEntry *
chain_find(const StatementKey *key, uint32 hash)
{
	uint32		at = *bucket_of(hash);

	while (at != 0)
	{
		StatementEntry *entry = &statements_memory.entries[at - 1];

		if (entry->hash == hash && same_key(&entry->key, key))
			return entry;
		at = entry->next;
	}
	return NULL;
}

void
chain_insert(StatementEntry *entry)
{
	uint32	   *bucket = bucket_of(entry->hash);

	entry->next = *bucket;
	pg_write_barrier();			/* others walk without the lock */
	*bucket = entry - statements_memory.entries + 1;
}

void
chain_remove(StatementEntry *entry)
{
	uint32	   *at = bucket_of(entry->hash);
	uint32		number = entry - statements_memory.entries + 1;

	while (*at != number)
		at = &statements_memory.entries[*at - 1].next;
	*at = entry->next;
}

/* Current limit of entries: the setting, or the reserved number if less. */
uint32
statements_limit(void)
{
	return Min((uint32) setting_max(),
			   statements_memory.shared->reserved - ACCUMULATORS);
}
