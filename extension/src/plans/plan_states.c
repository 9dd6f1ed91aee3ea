/*
 * plan_states.c
 *	  The nodes below a node of a running plan, in the order of EXPLAIN.
 *
 * planstate_tree_walker() of the server raises an error if the stack is too
 * deep, so it cannot be used here.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "plans/plan_states.h"

static void
visit_subplans(const List *subplans, StateRole role, StateVisit visit, void *argument)
{
	ListCell   *cell;

	foreach(cell, subplans)
	{
		const SubPlanState *state = lfirst(cell);

		if (IsA(state, SubPlanState) && state->planstate != NULL)
			visit(state->planstate, role, state->subplan, argument);
	}
}

static void
visit_members(PlanState *const *members, int count, StateVisit visit, void *argument)
{
	for (int i = 0; members != NULL && i < count; i++)
		if (members[i] != NULL)
			visit(members[i], STATE_MEMBER, NULL, argument);
}

static void
visit_children(const CustomScanState *state, StateVisit visit, void *argument)
{
	ListCell   *cell;

	foreach(cell, state->custom_ps)
		if (lfirst(cell) != NULL)
			visit(lfirst(cell), STATE_CHILD, NULL, argument);
}

/* Nodes below that are in neither the left nor the right tree. */
static void
visit_others(const PlanState *state, StateVisit visit, void *argument)
{
	switch (nodeTag(state))
	{
		case T_AppendState:
			visit_members(((const AppendState *) state)->appendplans,
						  ((const AppendState *) state)->as_nplans, visit, argument);
			break;
		case T_MergeAppendState:
			visit_members(((const MergeAppendState *) state)->mergeplans,
						  ((const MergeAppendState *) state)->ms_nplans, visit, argument);
			break;
		case T_BitmapAndState:
			visit_members(((const BitmapAndState *) state)->bitmapplans,
						  ((const BitmapAndState *) state)->nplans, visit, argument);
			break;
		case T_BitmapOrState:
			visit_members(((const BitmapOrState *) state)->bitmapplans,
						  ((const BitmapOrState *) state)->nplans, visit, argument);
			break;
		case T_SubqueryScanState:
			if (((const SubqueryScanState *) state)->subplan != NULL)
				visit(((const SubqueryScanState *) state)->subplan, STATE_SUBQUERY, NULL, argument);
			break;
		case T_CustomScanState:
			visit_children((const CustomScanState *) state, visit, argument);
			break;
		default:
			break;
	}
}

void
plan_states_below(const PlanState *state, StateVisit visit, void *argument)
{
	visit_subplans(state->initPlan, STATE_INIT_PLAN, visit, argument);
	if (state->lefttree != NULL)
		visit(state->lefttree, STATE_OUTER, NULL, argument);
	if (state->righttree != NULL)
		visit(state->righttree, STATE_INNER, NULL, argument);
	visit_others(state, visit, argument);
	visit_subplans(state->subPlan, STATE_SUB_PLAN, visit, argument);
}
