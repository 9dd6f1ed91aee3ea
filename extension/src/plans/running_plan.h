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

/* Publishes that this process executes `stmt`. */
extern void running_plan_publish(const PlannedStmt *stmt);

/* Publishes that this parallel worker executes its leader's plan. */
extern void running_plan_publish_leader(void);

/*
 * The leader: parallel workers of the top-level statement `query_id` work for
 * this plan. A worker: the plan that its leader has announced for `query_id`,
 * or 0. A function's query has workers, too, but no plan for them.
 */
extern void running_plan_announce(uint64 query_id, int64 plan_id);
extern int64 running_plan_announced(uint64 query_id);

/*
 * Call them around each piece of an execution. The outermost plan counts. A
 * SELECT of a function has the SELECT's plan, and FETCH has the plan of the
 * cursor's query. CALL has the plan of the procedure's newest statement.
 */
static inline void
running_plan_enter(const PlannedStmt *stmt)
{
	if (running_plan_depth++ == 0)
		running_plan_publish(stmt);
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
