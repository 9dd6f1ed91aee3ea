/*
 * plan_measures.c
 *	  Chooses the executions whose rows are counted, and offers their trees
 *	  to the history.
 *
 * An execution of SLOW_MS or more makes its plan due: the plan gets a place
 * in shared memory, in a group that its key chooses. The next execution takes the turn
 * of the place, and its nodes count their rows (plan_actuals.c). At its end, or
 * when an error leaves it, the tree with these rows goes into the ring. The
 * next turn of the place is ten minutes later, or LONG times the duration.
 *
 * Example: executions of plan 7 take 40 ms. The one of 12:00:00 gives plan 7 a
 * place, the one of 12:00:01 counts its rows, then the first one from 12:10:01 on.
 *
 * If a group is full, its plans take turns: a plan gets the place of one that has
 * had its turn, and waits until that place is due. A plan with a place has a bit,
 * so other executions skip the search. The bit of a plan that loses its place is
 * cleared. Plans may share a bit; then the next slow execution of the other plan
 * sets it again. The first execution of another plan of a slow query is chosen at
 * once.
 *
 * Turns are compared with the start of the statement, as reading a clock would
 * cost each execution. But CALL and DO may run for hours. So in a statement that
 * has had slow executions, turns are compared with the end of the last one.
 *
 * An execution has no rows in the history if its session ends in the middle, or
 * if its cursor is open when its transaction fails: its nodes are gone then.
 *
 * Locking: atomics; places may be overwritten at the same moment, and a plan
 * then waits for a later turn. Memory is the execution's.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "core/settings.h"
#include "plans/plan_actuals.h"
#include "statements/plan_measures.h"
#include "statements/text_ring.h"
#include "statements/tree_offer.h"

#define WAYS		8			/* places of a group; power of two */
#define EACH		(600 * UINT64CONST(1000000))	/* us between two turns */
#define LONGEST		(86400 * UINT64CONST(1000000))	/* us until the next turn */
#define LONG		20			/* part of an execution's duration */
#define HAD_TURN	UINT64CONST(1)	/* flag of `due`: its plan has had a turn */

typedef struct PlanMeasure
{
	struct PlanMeasure *next;
	const QueryDesc *query;
	uint64		key;
	Oid			user;
	int64		plan_id;
	bool		ended;			/* the root gave its last row */
	bool		backward;		/* rows were read again */
	MemoryContextCallback callback;
} PlanMeasure;

HOT_DATA PlanMeasure *plan_measures = NULL;

/* End of the last slow execution of this process, and start of its statement. */
static TimestampTz slow_end = 0;
static TimestampTz slow_end_of = 0;

static inline uint64
time_of_turns(void)
{
	TimestampTz start = GetCurrentStatementStartTimestamp();

	return (uint64) (slow_end_of == start ? slow_end : start);
}

static inline uint64
query_key(uint64 query_id)
{
	return query_id ^ (uint64) MyDatabaseId * UINT64CONST(0x9E3779B97F4A7C15);
}

static inline pg_atomic_uint64 *
slow_place(uint64 query)
{
	return &tacho_shared->slow[(query ^ query >> 32) & (SLOW_QUERIES - 1)];
}

static inline MeasuredPlan *
group_of(uint64 key)
{
	return &tacho_shared->measured[(key >> 32) & (MEASURED_PLANS - WAYS)];
}

/* The place that has the key, 0 = a free place; or NULL. */
static MeasuredPlan *
find_place(MeasuredPlan *group, uint64 key)
{
	for (int i = 0; i < WAYS; i++)
		if (pg_atomic_read_u64(&group[i].key) == key)
			return &group[i];
	return NULL;
}

/* A turn further away than LONGEST comes from a clock that was set back. */
static inline bool
is_due(uint64 due, uint64 now)
{
	return due <= now || due > now + LONGEST + EACH;
}

/*
 * The place of a plan that had its turn, or that was not executed when it was
 * due; the one that is due first. NULL if all plans wait for their turn.
 */
static MeasuredPlan *
place_to_give(MeasuredPlan *group, uint64 now)
{
	MeasuredPlan *found = NULL;
	uint64		least = UINT64_MAX;

	for (int i = 0; i < WAYS; i++)
	{
		uint64		due = pg_atomic_read_u64(&group[i].due);

		if (due < least && ((due & HAD_TURN) || is_due(due + EACH, now)))
		{
			found = &group[i];
			least = due;
		}
	}
	return found;
}

static void
set_bit(uint64 key)
{
	if (!plan_measures_may_have(key))
		pg_atomic_fetch_or_u32(plan_measures_bits(key), 1U << key % 32);
}

static void
clear_bit(uint64 key)
{
	pg_atomic_fetch_and_u32(plan_measures_bits(key), ~(1U << key % 32));
}

/* Gives a plan a place, unless all places of its group are needed. */
static void
take_place(uint64 key)
{
	MeasuredPlan *group = group_of(key);
	MeasuredPlan *place = find_place(group, key);

	if (place == NULL)
	{
		uint64		before;

		place = find_place(group, 0);
		if (place == NULL)
			place = place_to_give(group, time_of_turns());
		if (place == NULL)
			return;
		pg_atomic_write_u64(&place->due, pg_atomic_read_u64(&place->due) & ~HAD_TURN);
		before = pg_atomic_exchange_u64(&place->key, key);
		if (before != 0)
			clear_bit(before);
	}
	set_bit(key);
}

static PlanMeasure **
find(const QueryDesc *query)
{
	PlanMeasure **at = &plan_measures;

	while (*at != NULL && (*at)->query != query)
		at = &(*at)->next;
	return at;
}

/* The memory of the execution is freed. */
static void
forget(void *argument)
{
	PlanMeasure **at = &plan_measures;

	while (*at != NULL && *at != argument)
		at = &(*at)->next;
	if (*at != NULL)
		*at = (*at)->next;
}

static bool
begin(const QueryDesc *query, int64 plan_id, uint64 key)
{
	MemoryContext memory = query->estate->es_query_cxt;
	PlanMeasure *measure = MemoryContextAllocExtended(memory, sizeof(PlanMeasure),
													  MCXT_ALLOC_NO_OOM);

	if (measure == NULL || !plan_actuals_begin(query))
		return false;
	*measure = (PlanMeasure) {
		.next = plan_measures,
		.query = query,
		.key = key,
		.user = GetUserId(),
		.plan_id = plan_id,
		.callback = {.func = forget, .arg = measure},
	};
	plan_measures = measure;
	MemoryContextRegisterResetCallback(memory, &measure->callback);
	return true;
}

void
plan_measures_begin(const QueryDesc *query, int64 plan_id, uint64 key, int eflags)
{
	MeasuredPlan *place = find_place(group_of(key), key);
	uint64		now = time_of_turns();
	uint64		due = place != NULL ? pg_atomic_read_u64(&place->due) : 0;

	if (place == NULL || !is_due(due, now) || !tacho_plan_actuals || (eflags & EXEC_FLAG_EXPLAIN_ONLY) ||
		IsParallelWorker() || query->estate == NULL || query_text_share_is_used(TEXT_OF_ACTUALS) ||
		!pg_atomic_compare_exchange_u64(&place->due, &due, (now + EACH) | HAD_TURN))
		return;
	if (!begin(query, plan_id, key))
		pg_atomic_write_u64(&place->due, due);
}

void
plan_measures_new(const QueryDesc *query, int64 plan_id, uint64 key, int eflags)
{
	uint64		slow = query_key(query->plannedstmt->queryId);

	if (!tacho_plan_actuals || pg_atomic_read_u64(slow_place(slow)) != slow ||
		query_text_is_known(key))
		return;
	take_place(key);
	plan_measures_begin(query, plan_id, key, eflags);
}

void
plan_measures_note_run(const QueryDesc *query, ScanDirection direction, uint64 count)
{
	PlanMeasure *measure = *find(query);

	if (measure == NULL || ScanDirectionIsNoMovement(direction))
		return;
	if (ScanDirectionIsBackward(direction))
		measure->backward = true;
	else if (count == 0 || query->estate->es_processed < count)
		measure->ended = true;
}

/* Sets the time of the next turn after an execution of `ms` that has just ended. */
static void
set_next_turn(uint64 key, double ms)
{
	MeasuredPlan *place = find_place(group_of(key), key);
	uint64		pause = (uint64) Min(ms * 1000 * LONG, (double) LONGEST);

	if (place != NULL)
		pg_atomic_write_u64(&place->due, ((uint64) slow_end + Max(EACH, pause)) | HAD_TURN);
}

static void
end_measure(PlanMeasure *measure, double ms, bool failed)
{
	MemoryContext before = MemoryContextSwitchTo(measure->query->estate->es_query_cxt);

	forget(measure);
	set_next_turn(measure->key, ms);
	if (!measure->backward)
	{
		HOLD_INTERRUPTS();
		tree_offer(measure->query, measure->plan_id, measure->user,
				   failed ? PLAN_FAILED : measure->ended ? PLAN_READ : PLAN_STOPPED);
		RESUME_INTERRUPTS();
	}
	MemoryContextSwitchTo(before);
}

void
plan_measures_note_end(const QueryDesc *query, Oid user, int64 plan_id, double ms, bool failed)
{
	PlanMeasure *measure = *find(query);
	uint64		slow = query_key(query->plannedstmt->queryId);

	if (measure != NULL || ms >= SLOW_MS)
	{
		slow_end = GetCurrentTimestamp();
		slow_end_of = GetCurrentStatementStartTimestamp();
	}
	if (measure != NULL)
		end_measure(measure, ms, failed);
	if (ms < SLOW_MS || plan_id == 0 || tacho_shared == NULL || !tacho_plan_actuals)
		return;
	if (pg_atomic_read_u64(slow_place(slow)) != slow)
		pg_atomic_write_u64(slow_place(slow), slow);
	take_place(plan_tree_key(query->plannedstmt->queryId, plan_id, user));
}
