/*
 * running_plan.h
 *	  The plan that each session executes, for the sampler.
 *
 * From 18 on the server's backend status has a plan id, but not for FETCH and
 * for EXECUTE of a cached plan.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RUNNING_PLAN_H
#define TACHO_RUNNING_PLAN_H

#include "nodes/plannodes.h"
#include "utils/timestamp.h"

#include "core/hot.h"

/* Called by the hooks for shared memory. */
extern void running_plan_shmem_request(void);
extern void running_plan_shmem_startup(void);

/* Nesting depth of the executions in this process. */
extern HOT_DATA int running_plan_depth;

/* Publishes that this process executes `stmt`; see running_plan_enter(). */
extern void running_plan_publish(const PlannedStmt *stmt, uint64 counted);

/*
 * A parallel worker calls it: publishes the plan that its leader executes.
 * Returns it if the leader counts it for the top-level statement `query_id`,
 * and else 0: CALL has no plan.
 */
extern int64 running_plan_of_leader(uint64 query_id);

/*
 * Call them around each piece of an execution. The outermost plan counts. A
 * SELECT of a function has the SELECT's plan, and FETCH has the plan of the
 * cursor's query. CALL has the plan of the procedure's newest statement.
 * `counted`: the query id under which the execution is counted at top level,
 * 0 = it is not.
 */
static inline void
running_plan_enter(const PlannedStmt *stmt, uint64 counted)
{
	if (running_plan_depth++ == 0)
		running_plan_publish(stmt, counted);
}

static inline void
running_plan_leave(void)
{
	running_plan_depth--;
}

/*
 * The plan of the statement that the process in `slot` (compat.h) reports.
 * Query id and start time identify the statement. 0: it has executed no plan
 * yet. Any process may call it.
 */
extern int64 running_plan_in(int slot, uint64 reported, TimestampTz start);

/* True if processes publish their plans: not with tacho.statements = off. */
extern bool running_plan_known(void);

#endif							/* TACHO_RUNNING_PLAN_H */
