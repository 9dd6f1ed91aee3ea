/*
 * plan_states.h
 *	  The nodes below a node of a running plan, in the order of EXPLAIN.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_STATES_H
#define TACHO_PLAN_STATES_H

#include "nodes/execnodes.h"

/* How a node is related to the node above. The numbers are stored in files. */
typedef enum StateRole
{
	STATE_ROOT, STATE_OUTER, STATE_INNER, STATE_MEMBER, STATE_SUBQUERY, STATE_INIT_PLAN,
	STATE_SUB_PLAN, STATE_CHILD
} StateRole;

/* `use` is the expression that uses an init plan or subplan, else NULL. */
typedef void (*StateVisit) (const PlanState *state, StateRole role,
							const SubPlan *use, void *argument);

/* Calls `visit` for each node directly below. Raises no error by itself. */
extern void plan_states_below(const PlanState *state, StateVisit visit, void *argument);

#endif							/* TACHO_PLAN_STATES_H */
