/*
 * plan_trees.c
 *	  Offers the tree of each plan to the history, once a day.
 *
 * A tree travels like the text of a query (query_text.c): a set of keys in
 * shared memory says which trees the history has, and a ring takes new ones to
 * the sampler. The key of a tree is made of database, role, query and plan.
 * Each process remembers the keys that it has found there last, so later
 * executions need not look into shared memory.
 *
 * A tree is made when an execution begins, so that the history also has the
 * plan of a query that never ends. EXPLAIN without ANALYZE executes nothing,
 * so its plans are not offered.
 *
 * Limits: tacho.plan_text_rate trees a second, and a tenth of it for each
 * database. Up to BURST seconds of unused turns are kept.
 *
 * A plan whose tree is left out gets a place in shared memory with the reason.
 * Plans with equal lowest bits share a place, which the last one has. The
 * sampler records the reasons (recorder_trees.c).
 *
 * Locking: atomics.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/hot.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "statements/plan_measures.h"
#include "statements/plan_trees.h"
#include "statements/text_ring.h"

#define FOUND		64			/* power of two; keys in each process */
#define BURST		30			/* seconds of unused turns that are kept */

static HOT_DATA uint32 found_generation = 0;
static uint64 found[FOUND];		/* 0 = none */

/* Tells the sampler why a plan has no tree. */
static void
leave_out(int64 plan_id, TreeLeftOut reason)
{
	uint64		mask = TREES_LEFT_OUT - 1;
	pg_atomic_uint64 *place = &tacho_shared->trees_left_out[(uint64) plan_id & mask];
	uint64		value = ((uint64) plan_id & ~mask) | reason;

	if (pg_atomic_read_u64(place) == value)
		return;
	pg_atomic_write_u64(place, value);
	pg_atomic_fetch_add_u32(&tacho_shared->trees_left_out_changes, 1);
}

void
plan_trees_left_out(void (*take) (int64 plan_id, TreeLeftOut reason))
{
	static uint32 seen = 0;
	uint32		changes = pg_atomic_read_u32(&tacho_shared->trees_left_out_changes);
	uint64		mask = TREES_LEFT_OUT - 1;

	if (changes == seen)
		return;
	seen = changes;
	pg_read_barrier();			/* leave_out() writes the reason first */
	for (uint64 i = 0; i < TREES_LEFT_OUT; i++)
	{
		uint64		value = pg_atomic_read_u64(&tacho_shared->trees_left_out[i]);

		if (value != 0)
			take((int64) ((value & ~mask) | i), (TreeLeftOut) (value & mask));
	}
}

void
plan_trees_forget_left_out(void)
{
	for (int i = 0; i < TREES_LEFT_OUT; i++)
		pg_atomic_write_u64(&tacho_shared->trees_left_out[i], 0);
}

/*
 * Takes a turn, at most one per `each` us on average; unused turns of the
 * last BURST seconds are kept. `*taken` is the time up to which turns are
 * taken. If the clock was set back, all turns of the last BURST seconds are
 * free. Returns TREE_KEPT, `limit` if no turn is free, or TREE_NO_ROOM if
 * another process took one at the same moment.
 */
static TreeLeftOut
take_turn(pg_atomic_uint64 *taken, uint64 now, uint64 each, TreeLeftOut limit)
{
	uint64		before = pg_atomic_read_u64(taken);
	uint64		oldest = now - BURST * UINT64CONST(1000000);
	uint64		from = before > now || before < oldest ? oldest : before;

	if (from + each > now)
		return limit;
	return pg_atomic_compare_exchange_u64(taken, &before, from + each) ? TREE_KEPT : TREE_NO_ROOM;
}

/* Takes a turn of the database and of the server. */
static TreeLeftOut
take_turns(void)
{
	/* not the start of the statement: CALL may have begun hours ago */
	uint64		now = (uint64) GetCurrentTimestamp();
	uint32		place = murmurhash32(MyDatabaseId) & (TREE_DATABASES - 1);
	int			rate = tacho_plan_text_rate;
	TreeLeftOut left_out = take_turn(&tacho_shared->trees_taken_in[place], now,
									 UINT64CONST(1000000) / Max(rate / 10, 1),
									 TREE_LIMIT_OF_DATABASE);

	return left_out != TREE_KEPT ? left_out :
		take_turn(&tacho_shared->trees_taken, now, UINT64CONST(1000000) / rate,
				  TREE_LIMIT_OF_SERVER);
}

/*
 * True if the history has the tree now, or will not take it today. Not inline:
 * most executions return from plan_trees_see() before, with few registers.
 */
static pg_noinline bool
make_known(const QueryDesc *query, int64 plan_id, uint64 key)
{
	TreeLeftOut left_out;

	if (query_text_is_known(key))
		return true;
	if (query_text_share_is_used(TEXT_OF_PLAN))
	{
		leave_out(plan_id, TREE_SHARE_OF_DAY);
		return true;
	}
	left_out = take_turns();
	if (left_out == TREE_KEPT)
	{
		HOLD_INTERRUPTS();
		left_out = tree_offer(query, plan_id, GetUserId(), PLAN_NOT_COUNTED);
		RESUME_INTERRUPTS();
	}
	if (left_out == TREE_KEPT)
		query_text_remember(key);
	else
		leave_out(plan_id, left_out);
	return left_out == TREE_KEPT;
}

pg_attribute_hot void
plan_trees_see(const QueryDesc *query, int64 plan_id, int eflags, bool followed)
{
	uint32		generation;
	uint64		key;

	if (plan_id == 0 || tacho_shared == NULL ||
		pg_atomic_read_u32(&tacho_shared->texts_wanted) == 0)
		return;
	if (unlikely(!tacho_plan_text))
	{
		if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
			leave_out(plan_id, TREE_OFF);
		return;
	}
	generation = pg_atomic_read_u32(&tacho_shared->texts_generation);
	pg_read_barrier();			/* see collect_text() in query_text.c */
	key = plan_tree_key(query->plannedstmt->queryId, plan_id, GetUserId());
	if (unlikely(plan_measures_may_have(key)) && followed)
		plan_measures_begin(query, plan_id, key, eflags);
	if (likely(found_generation == generation && found[key & (FOUND - 1)] == key))
		return;
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || IsParallelWorker())
		return;
	if (found_generation != generation)
		memset(found, 0, sizeof(found));
	found_generation = generation;
	if (followed)
		plan_measures_new(query, plan_id, key, eflags);
	if (make_known(query, plan_id, key))
		found[key & (FOUND - 1)] = key;
}
