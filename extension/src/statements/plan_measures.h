/*
 * plan_measures.h
 *	  Chooses the executions whose rows are counted, and offers their trees
 *	  to the history.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_MEASURES_H
#define TACHO_PLAN_MEASURES_H

#include "access/sdir.h"
#include "executor/execdesc.h"
#include "miscadmin.h"

#include "core/hot.h"
#include "core/shmem.h"

#define SLOW_MS		5.0			/* executions of this time make their plan due */

/*
 * Key of the tree of a plan that the role executes in this database. It differs
 * from the keys of texts, as plan_id is not 0.
 */
static inline uint64
plan_tree_key(uint64 query_id, int64 plan_id, Oid user)
{
	uint64		key = (query_id ^ (uint64) plan_id * UINT64CONST(0x9E3779B97F4A7C15)) +
		((uint64) MyDatabaseId << 32 | user) * UINT64CONST(0xC2B2AE3D27D4EB4F);

	key ^= key >> 29;
	return key != 0 ? key : 1;
}

/* The executions of this process whose rows are counted; the newest first. */
extern HOT_DATA struct PlanMeasure *plan_measures;

/* The word with the bit of a plan. */
static inline pg_atomic_uint32 *
plan_measures_bits(uint64 key)
{
	return &tacho_shared->slow_plans[(key & (SLOW_PLANS - 1)) / 32];
}

/* False if the rows of this plan are not counted. True is a guess. */
static inline bool
plan_measures_may_have(uint64 key)
{
	return pg_atomic_read_u32(plan_measures_bits(key)) >> key % 32 & 1;
}

/*
 * plan_measures_begin(): an execution has been started of a plan for which
 * plan_measures_may_have() holds. plan_measures_new(): this process has not seen
 * the plan yet. Raise no error, and wait for nothing.
 */
extern void plan_measures_begin(const QueryDesc *query, int64 plan_id, uint64 key, int eflags);
extern void plan_measures_new(const QueryDesc *query, int64 plan_id, uint64 key, int eflags);

extern void plan_measures_note_run(const QueryDesc *query, ScanDirection direction, uint64 count);
extern void plan_measures_note_end(const QueryDesc *query, Oid user, int64 plan_id, double ms,
								   bool failed);

/* ExecutorRun has read `count` rows at most, 0 = all, without an error. */
static inline void
plan_measures_ran(const QueryDesc *query, ScanDirection direction, uint64 count)
{
	if (unlikely(plan_measures != NULL))
		plan_measures_note_run(query, direction, count);
}

/*
 * An execution by the role `user` is about to end, or has failed, after `ms`.
 * To be called while its nodes exist. Raises no error.
 */
static inline void
plan_measures_end(const QueryDesc *query, Oid user, int64 plan_id, double ms, bool failed)
{
	if (unlikely(ms >= SLOW_MS || plan_measures != NULL))
		plan_measures_note_end(query, user, plan_id, ms, failed);
}

#endif							/* TACHO_PLAN_MEASURES_H */
