/*
 * plan_actuals.c
 *	  Counts the rows of the nodes of an execution.
 *
 * The executor counts the rows of a node that has a NodeInstrumentation, and
 * looks for it at the first execution of the node. So the nodes get theirs after
 * ExecutorStart, without timers. QueryDesc.instrument_options stays as it is,
 * because other extensions read it. EState.es_instrument is set if the plan is
 * parallel: workers then count, too, and the leader adds their counts.
 *
 * Memory: one block in the memory of the execution, for all nodes.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "miscadmin.h"

#include "plans/plan_actuals.h"

#define MOST_NODES	1000		/* plans with more nodes are not counted */

/* Instrumentation, NodeInstrumentation in 19; zeros count rows alone */
typedef __typeof__(*((PlanState *) NULL)->instrument) NodeCounts;

/* the function by which the server executes a node for the first time */
static ExecProcNodeMtd not_started;

typedef struct Counting
{
	int			nodes;
	NodeCounts *counts;	/* NULL = only the nodes are counted */
	bool		too_large;
} Counting;

static void
visit(const PlanState *state, StateRole role, const SubPlan *use, void *argument)
{
	Counting   *counting = argument;
	NodeCounts *counts = counting->counts;

	/* a subplan that several expressions use is visited several times */
	if (counting->too_large || (counts != NULL && state->instrument != NULL))
		return;
	if (counting->nodes >= MOST_NODES || stack_is_too_deep())
	{
		counting->too_large = true;
		return;
	}
	if (counts != NULL)
	{
		counts[counting->nodes].async_mode = state->plan->async_capable;
		((PlanState *) state)->instrument = &counts[counting->nodes];
	}
	counting->nodes++;
	plan_states_below(state, visit, counting);
}

bool
plan_actuals_begin(const QueryDesc *query)
{
	Counting	counting = {0};

	if (query->planstate == NULL || query->estate == NULL)
		return false;
	not_started = query->planstate->ExecProcNode;
	if (query->estate->es_instrument != 0)
		return true;
	visit(query->planstate, STATE_ROOT, NULL, &counting);
	if (counting.too_large)
		return false;
	counting.counts = MemoryContextAllocExtended(query->estate->es_query_cxt,
												 counting.nodes * sizeof(NodeCounts),
												 MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
	if (counting.counts == NULL)
		return false;
	counting.nodes = 0;
	visit(query->planstate, STATE_ROOT, NULL, &counting);
	/* each node has counts now: the leader adds the counts of workers */
	if (query->plannedstmt->parallelModeNeeded)
		query->estate->es_instrument = INSTRUMENT_ROWS;
	return true;
}

bool
plan_actuals_of(const PlanState *state, double *rows, double *loops)
{
	const NodeCounts *counts = state->instrument;

	/* bitmaps of several indexes count no rows */
	if (counts == NULL || IsA(state, BitmapAndState) || IsA(state, BitmapOrState))
		return false;
	/* as InstrEndLoop(), which may raise an error */
	*rows = counts->ntuples + counts->tuplecount;
	*loops = counts->nloops + (counts->running ? 1 : 0);
	return true;
}

/* True if the bitmap that the node makes has been made at least once. */
static inline bool
made_bitmap(const PlanState *state)
{
	const NodeCounts *counts = state->instrument;

	return counts != NULL && (counts->running || counts->nloops > 0);
}

/*
 * The node above a bitmap begins with it; AND and OR make one bitmap after the
 * other, and AND ends at an empty one.
 */
static bool
bitmap_started(const PlanActuals *above, const PlanState *state)
{
	PlanState **members;
	int			i = 0;

	if (made_bitmap(state))
		return true;
	if (!above->started)
		return false;
	if (IsA(above->state, BitmapAndState))
		members = ((const BitmapAndState *) above->state)->bitmapplans;
	else if (IsA(above->state, BitmapOrState))
		members = ((const BitmapOrState *) above->state)->bitmapplans;
	else
		return true;
	while (members[i] != state && made_bitmap(members[i]))
		i++;
	return members[i] == state && !made_bitmap(above->state);
}

static bool
was_started(const PlanActuals *above, const PlanState *state)
{
	if (IsA(state, BitmapIndexScanState) || IsA(state, BitmapAndState) ||
		IsA(state, BitmapOrState))
		return above->state != NULL && bitmap_started(above, state);
	/* a hash table is built by another function, which reads the node below */
	if (IsA(state, HashState) && outerPlanState(state) != NULL)
		state = outerPlanState(state);
	return state->ExecProcNode != not_started;
}

static inline double
loops_of(const PlanState *state)
{
	double		rows;
	double		loops;

	return plan_actuals_of(state, &rows, &loops) ? loops : 0;
}

/*
 * True if a process has executed the node several times. Each process of a
 * parallel query executes it, and the leader has added the counts of its workers.
 */
static bool
is_rescanned(const PlanState *state)
{
	double		loops = loops_of(state);

	for (int i = 0; state->worker_instrument && i < state->worker_instrument->num_workers; i++)
	{
		double		own = state->worker_instrument->instrument[i].nloops;

		if (own > 1)
			return true;
		loops -= own;
	}
	return loops > 1;
}

static inline bool
gave_no_row(const PlanState *state)
{
	double		rows;
	double		loops;

	return plan_actuals_of(state, &rows, &loops) && rows == 0;
}

/*
 * True if a reader of the CTE may not have read it to the end. Only the last
 * execution is known.
 */
static bool
cte_stopped(const PlanState *state, const SubPlan *use)
{
	const EState *estate = state->state;
	const Node *leader;
	int			param;

	if (IsA(state, ModifyTableState) || use->setParam == NIL)
		return false;			/* ExecutorFinish executes the rest */
	param = linitial_int(use->setParam);
	if (is_rescanned(state) || param >= list_length(estate->es_plannedstmt->paramExecTypes))
		return true;
	leader = (const Node *) DatumGetPointer(estate->es_param_exec_vals[param].value);
	return leader == NULL || !IsA(leader, CteScanState) ||
		!((const CteScanState *) leader)->eof_cte;
}

static bool
subplan_stopped(const PlanState *state, const SubPlan *use)
{
	switch (use->subLinkType)
	{
		case EXISTS_SUBLINK:
			return true;
		case ALL_SUBLINK:
		case ANY_SUBLINK:
			return !use->useHashTable;
		case CTE_SUBLINK:
			return cte_stopped(state, use);
		default:
			return false;
	}
}

static bool
below_join_stopped(const PlanActuals *above, StateRole role)
{
	const Join *join = (const Join *) above->state->plan;
	JoinType	type = join->jointype;
	bool		keeps_outer = type == JOIN_LEFT || type == JOIN_FULL || type == JOIN_ANTI;
	bool		may_be_empty;

	switch (nodeTag(above->state))
	{
		case T_NestLoopState:
			return above->stopped ||
				(role == STATE_INNER && (join->inner_unique || type == JOIN_SEMI || type == JOIN_ANTI));
		case T_HashJoinState:
			if (role == STATE_INNER)
				return false;	/* the hash table is made before the first row */
			/* with an empty hash table the outer side is not read */
			may_be_empty = gave_no_row(innerPlanState(above->state)) ||
				is_rescanned(innerPlanState(above->state));
			return above->stopped || (may_be_empty && !keeps_outer);
		default:
			/* the side that ends first ends a merge join; it reads inner rows again */
			return above->stopped || role == STATE_INNER || !keeps_outer;
	}
}

static bool
below_step_stopped(const PlanActuals *above, StateRole role)
{
	const Plan *plan = above->state->plan;

	switch (nodeTag(above->state))
	{
		case T_LimitState:
			return ((const LimitState *) above->state)->lstate != LIMIT_SUBPLANEOF ||
				loops_of(above->state) != 1;
		case T_SortState:
		case T_HashState:
		case T_BitmapHeapScanState:
			return false;		/* they read all rows before they give one */
		case T_AggState:
			return above->stopped && ((const Agg *) plan)->aggstrategy != AGG_PLAIN &&
				((const Agg *) plan)->aggstrategy != AGG_HASHED;
		case T_SetOpState:
			return ((const SetOp *) plan)->strategy != SETOP_HASHED &&
				(above->stopped || role == STATE_INNER);
		case T_MemoizeState:
			return above->stopped || ((const Memoize *) plan)->singlerow;
		case T_WindowAggState:
			return above->stopped || ((const WindowAgg *) plan)->runCondition != NIL;
		default:
			return above->stopped;
	}
}

static bool
was_stopped(const PlanActuals *above, const PlanState *state, StateRole role,
			const SubPlan *use)
{
	if (above->end == PLAN_FAILED)
		return true;
	switch (role)
	{
		case STATE_ROOT:
			return above->end != PLAN_READ || loops_of(state) > 1;
		case STATE_INIT_PLAN:
		case STATE_SUB_PLAN:
			return use == NULL || subplan_stopped(state, use);
		case STATE_CHILD:
			return true;		/* an extension decides how far it reads */
		case STATE_MEMBER:
			return above->stopped && !IsA(above->state, BitmapAndState) &&
				!IsA(above->state, BitmapOrState);
		default:
			break;
	}
	if (IsA(above->state, NestLoopState) || IsA(above->state, HashJoinState) ||
		IsA(above->state, MergeJoinState))
		return below_join_stopped(above, role);
	return below_step_stopped(above, role);
}

PlanActuals
plan_actuals_at(const PlanActuals *above, const PlanState *state, StateRole role,
				const SubPlan *use)
{
	return (PlanActuals) {
		.end = above->end,
		.state = state,
		.started = above->end != PLAN_NOT_COUNTED && was_started(above, state),
		.stopped = above->end != PLAN_NOT_COUNTED && was_stopped(above, state, role, use),
	};
}
