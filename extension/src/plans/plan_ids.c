/*
 * plan_ids.c
 *	  Gives each plan an id, which EXPLAIN, backend status and history show.
 *
 * From 18 on a plan has a place for an id, PlannedStmt.planId. The planner
 * reports the id to the backend status right after its hook returns, so the
 * hook makes the id. EXPLAIN (VERBOSE) shows it beside the query identifier.
 * If another extension has given the plan an id, that id stays in the place.
 * So EXPLAIN, the log and that extension show one number. tacho keeps its own
 * id beside it.
 *
 * Before 18, or if the place is taken, the id is stored as the last
 * invalidation item of the plan. The item has a cache number that no system
 * cache has. So the plan cache copies and frees it with the plan. The server only
 * compares an item's cache number with the numbers of its own caches. It does
 * not send items to parallel workers.
 *
 * The hook also sees whether a plan is for given values of the parameters (a
 * custom plan), and marks it with another such item. So the mark is there when
 * the plan is started, even if that is in a later message: the extended protocol
 * plans an INSERT in Bind and starts it in Execute.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "optimizer/planner.h"

#include "core/compat.h"
#include "core/hot.h"
#include "plans/plan_ids.h"
#include "plans/plan_shape.h"

static HOT_DATA planner_hook_type previous_planner = NULL;

/*
 * The id of all plans of one step without input, such as SELECT 1 and SELECT
 * f(x). These plans are executed most often and are the fastest, so no id is
 * stored in each of them. 0: this process has not planned one.
 */
static HOT_DATA int64 bare_id = 0;

/* Cache number of the item that marks a plan for given values. */
#define FOR_VALUES	INT_MAX

static inline bool
is_bare(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	return IsA(plan, Result) && plan->lefttree == NULL && stmt->subplans == NIL &&
		((const Result *) plan)->resconstantqual == NULL;
}

static inline int64
id_of_shape(const PlannedStmt *stmt, bool bare)
{
	if (!bare)
		return plan_shape_id(stmt);
	if (bare_id == 0)
		bare_id = plan_shape_id(stmt);
	return bare_id;
}

static void
append_item(PlannedStmt *stmt, int cache, uint32 value)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = cache;
	item->hashValue = value;
	stmt->invalItems = lappend(stmt->invalItems, item);
}

/* An id is not negative, so its cache number is always negative. */
static void
append_id(PlannedStmt *stmt, int64 id)
{
	append_item(stmt, ~(int) (id >> 32), (uint32) id);
}

/* The id that append_id() has stored, or 0. */
static inline int64
appended_id(const PlannedStmt *stmt)
{
	const PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return 0;
	item = llast(stmt->invalItems);
	return item->cacheId >= 0 ? 0 : (int64) ~item->cacheId << 32 | item->hashValue;
}

static pg_attribute_hot PlannedStmt *
plan_with_id(COMPAT_PLANNER_PARAMS)
{
	PlannedStmt *stmt = previous_planner ?
		previous_planner(COMPAT_PLANNER_ARGS) : standard_planner(COMPAT_PLANNER_ARGS);
	bool		bare = is_bare(stmt);
	int64		id = id_of_shape(stmt, bare);

	if (boundParams != NULL)
		append_item(stmt, FOR_VALUES, 0);
	if (!compat_take_plan_id(stmt, id) && !bare)
		append_id(stmt, id);
	return stmt;
}

bool
plan_is_for_values(const PlannedStmt *stmt)
{
	ListCell   *cell;

	foreach(cell, stmt->invalItems)
		if (lfirst_node(PlanInvalItem, cell)->cacheId == FOR_VALUES)
			return true;
	return false;
}

pg_attribute_hot int64
plan_id_of(const PlannedStmt *stmt)
{
	int64		id = is_bare(stmt) ? bare_id : appended_id(stmt);

	return id != 0 ? id : compat_planned_id(stmt);
}

#if COMPAT_PLANS_HAVE_IDS

static explain_per_plan_hook_type previous_explain;

/*
 * Shows the id under the condition of the query identifier: not in regression
 * tests, which compare the output.
 */
static void
explain_id(PlannedStmt *stmt, IntoClause *into, ExplainState *es, const char *query,
		   ParamListInfo parameters, QueryEnvironment *environment)
{
	if (previous_explain)
		previous_explain(stmt, into, es, query, parameters, environment);
	if (es->verbose && stmt->planId != 0 && compute_query_id != COMPUTE_QUERY_ID_REGRESS)
		ExplainPropertyInteger("Plan Identifier", NULL, stmt->planId, es);
}

static void
explain_init(void)
{
	previous_explain = explain_per_plan_hook;
	explain_per_plan_hook = explain_id;
}

#else

static void
explain_init(void)
{
}

#endif

void
plan_ids_init(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_with_id;
	explain_init();
}
