/*
 * plan_actuals.h
 *	  Counts the rows of the nodes of an execution.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_ACTUALS_H
#define TACHO_PLAN_ACTUALS_H

#include "executor/execdesc.h"

#include "plans/plan_states.h"

/* How an execution ended whose rows are counted. */
typedef enum PlanEnd
{
	PLAN_NOT_COUNTED,			/* its rows are not counted */
	PLAN_READ,					/* its root gave all rows */
	PLAN_STOPPED,				/* its root was not read to the end */
	PLAN_FAILED					/* an error or a cancel ended it */
} PlanEnd;

/* A node of an execution; above the root there is none. */
typedef struct PlanActuals
{
	PlanEnd		end;
	const PlanState *state;		/* NULL = none */

	/*
	 * The node was executed at all. The executor counts the first execution of a
	 * node at its first row, which may not have come before an error.
	 */
	bool		started;

	/*
	 * An execution of the node may have ended before its last row. Then the
	 * counted rows are a lower bound.
	 */
	bool		stopped;
} PlanActuals;

/*
 * Lets the nodes of an execution count their rows. To be called between
 * ExecutorStart and the first ExecutorRun. Uses the counts of another
 * extension if there are any. Returns false if memory is short or the plan is
 * too large. Raises no error.
 */
extern bool plan_actuals_begin(const QueryDesc *query);

/*
 * Number of rows that a node has given so far, and how often it was executed,
 * a rescan included. Returns false if they are not counted.
 */
extern bool plan_actuals_of(const PlanState *state, double *rows, double *loops);

/* A node below the node `above`. See StateVisit for `role` and `use`. */
extern PlanActuals plan_actuals_at(const PlanActuals *above, const PlanState *state,
								   StateRole role, const SubPlan *use);

#endif							/* TACHO_PLAN_ACTUALS_H */
