/*
 * shmem.h
 *	  The shared memory of the extension.
 *
 * Layout, one allocation named "tacho":
 *
 *	TachoShared			below
 *	known[KNOWN_TEXTS]	lossy set of text keys, see query_text.c
 *	ring[RING_BYTES]	texts on their way to the sampler
 *
 * The memory holds no pointers to functions, and no pointers to data outside
 * shared memory. So it also works with EXEC_BACKEND, where each process
 * attaches by itself.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SHMEM_H
#define TACHO_SHMEM_H

#include "port/atomics.h"
#include "storage/lwlock.h"

#include "core/library.h"
#include "core/status.h"

#define KNOWN_TEXTS		131072	/* power of two */
#define RING_BYTES		(1024 * 1024)	/* power of two */
#define TEXT_ACCOUNTS	1024	/* roles in databases, see query_text.c */
#define TREE_DATABASES	64		/* power of two, see plan_trees.c */
#define TREES_LEFT_OUT	1024	/* power of two, see plan_trees.c */
#define MEASURED_PLANS	1024	/* power of two, see plan_measures.c */
#define SLOW_PLANS		65536	/* bits, power of two, see plan_measures.c */
#define SLOW_QUERIES	1024	/* power of two, see plan_measures.c */

/* Texts of different kinds do not share the limit of the day. */
typedef enum TextKind
{
	TEXT_OF_QUERY, TEXT_OF_PLAN, TEXT_OF_ACTUALS, TEXT_KINDS
} TextKind;

/* A plan whose rows are to be counted (plan_measures.c). */
typedef struct MeasuredPlan
{
	pg_atomic_uint64 key;		/* of its tree; 0 = free */
	pg_atomic_uint64 due;		/* time of its next turn, and a flag */
} MeasuredPlan;

typedef struct TachoShared
{
	/* see status.c: the copy that holds is status[status_number & 1] */
	pg_atomic_uint64 status_number;
	TachoStatus status[2];

	/*
	 * Lock of the ring. Kept here because only the postmaster can find it by
	 * name.
	 */
	LWLock	   *ring_lock;

	/*
	 * The server crashed before this start: pg_control did not say "shut
	 * down" when shared memory was made. The first sampler then writes the
	 * marker "crash recovery".
	 */
	bool		after_crash;

	/* the file that the postmaster loaded */
	LibraryFile library;

	/* lives of the sampler since shared memory was made; the sampler only */
	pg_atomic_uint64 worker_starts;

	/* connections that never became sessions, see logins.c */
	pg_atomic_uint64 logins_failed;
	pg_atomic_uint64 logins_refused;

	/* children of readers that run, see child.c */
	pg_atomic_uint32 readers_running;

	/*
	 * `texts_wanted` is 0 while no sampler takes texts out of the ring. A new
	 * generation makes every backend forget which texts it has seen.
	 */
	pg_atomic_uint32 texts_wanted;
	pg_atomic_uint32 texts_generation;

	/*
	 * Ring positions, which only grow. Backends move the head under the lock
	 * "tacho", the sampler moves the tail. They are not on the cache line that
	 * every statement reads.
	 */
	pg_atomic_uint64 ring_head pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	pg_atomic_uint64 ring_tail;
	pg_atomic_uint64 texts_dropped;

	/*
	 * Per account: the approximate number of bytes in the ring. For each kind
	 * of text also the role that has used up its share of the day, and makes
	 * no more texts. The role is NO_ROLE, the hash of a role in a database, or
	 * SEVERAL, which means all roles of the account.
	 */
	pg_atomic_uint32 ring_used[TEXT_ACCOUNTS];
	pg_atomic_uint32 share_used[TEXT_KINDS][TEXT_ACCOUNTS];

	/*
	 * Rate limit for trees of plans (take_turn() in plan_trees.c): the time
	 * in us up to which all turns are taken, in the whole server and in each
	 * database. Databases whose hashes are equal share a limit.
	 */
	pg_atomic_uint64 trees_taken;
	pg_atomic_uint64 trees_taken_in[TREE_DATABASES];

	/*
	 * Plans that have no tree: the id without its lowest bits, which choose
	 * the place, and the reason in their place; 0 = none.
	 */
	pg_atomic_uint64 trees_left_out[TREES_LEFT_OUT];
	pg_atomic_uint32 trees_left_out_changes;	/* times that a place got another reason */

	/*
	 * plan_measures.c: plans whose rows are counted, a bit for each of them,
	 * and keys of slow queries
	 */
	MeasuredPlan measured[MEASURED_PLANS];
	pg_atomic_uint32 slow_plans[SLOW_PLANS / 32];
	pg_atomic_uint64 slow[SLOW_QUERIES];

	pg_atomic_uint64 known[KNOWN_TEXTS] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	char		ring[RING_BYTES];
} TachoShared;

/* NULL when the library was not preloaded. */
extern TachoShared *tacho_shared;

/* Lock of the ring; only ever acquired conditionally. */
extern LWLock *tacho_ring_lock;

/* Installs the hooks that request and make the shared memory. */
extern void shmem_init(void);

#endif							/* TACHO_SHMEM_H */
