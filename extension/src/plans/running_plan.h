/*
 * running_plan.h
 *	  Which plan each session executes, for the sampler.
 *
 * The server's own backend status has a plan id from 18 on, which a FETCH and an
 * EXECUTE of a cached plan leave out.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RUNNING_PLAN_H
#define TACHO_RUNNING_PLAN_H

#include "nodes/plannodes.h"
#include "utils/timestamp.h"

#include "core/hot.h"

/* In the hooks of shared memory. */
extern void running_plan_shmem_request(void);
extern void running_plan_shmem_startup(void);

/* The depth of executions in this process. */
extern HOT_DATA int running_plan_depth;

/* The process executes this plan from now on. */
extern void running_plan_publish(const PlannedStmt *stmt);

/* This parallel worker executes the plan that its leader has published. */
extern void running_plan_publish_leader(void);

/*
 * Around each piece of an execution. The outermost plan counts: for a
 * SELECT of a function it is the plan of the SELECT, for FETCH the plan of the
 * cursor's query, for CALL the plan of the procedure's latest statement.
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
 * The plan of the statement that the process in a slot (compat.h) reports: its
 * query id and the time of its start. 0: it has executed none yet. For everybody.
 */
extern int64 running_plan_in(int slot, uint64 reported, TimestampTz start);

/* Whether processes publish their plans: not with tacho.statements = off. */
extern bool running_plan_known(void);

#endif							/* TACHO_RUNNING_PLAN_H */
