/*
 * plan_ids.c
 *	  Gives each plan of 18 and later an id, which activity and history show.
 *
 * The planner reports the id of a plan to the backend's status right after its
 * hook, so the id is made in the hook. A plan that another extension has given
 * an id keeps it. EXPLAIN (VERBOSE) shows the id beside the query identifier.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/compat.h"
#include "plans/plan_ids.h"
#include "plans/plan_shape.h"

#if COMPAT_PLANS_HAVE_IDS

static planner_hook_type previous_planner;
static explain_per_plan_hook_type previous_explain;

static PlannedStmt *
plan_with_id(COMPAT_PLANNER_PARAMS)
{
	PlannedStmt *stmt = previous_planner ?
		previous_planner(COMPAT_PLANNER_ARGS) : standard_planner(COMPAT_PLANNER_ARGS);

	if (stmt->planId == 0)
		stmt->planId = plan_shape_id(stmt);
	return stmt;
}

/* As for the query identifier: not where a regression suite compares the output. */
static void
explain_id(PlannedStmt *stmt, IntoClause *into, ExplainState *es, const char *query,
		   ParamListInfo parameters, QueryEnvironment *environment)
{
	if (previous_explain)
		previous_explain(stmt, into, es, query, parameters, environment);
	if (es->verbose && stmt->planId != 0 && compute_query_id != COMPUTE_QUERY_ID_REGRESS)
		ExplainPropertyInteger("Plan Identifier", NULL, stmt->planId, es);
}

void
plan_ids_init(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_with_id;
	previous_explain = explain_per_plan_hook;
	explain_per_plan_hook = explain_id;
}

#else

void
plan_ids_init(void)
{
}

#endif
