/*
 * executed.h
 *	  The statement that a top-level EXECUTE executes.
 *
 * pg_stat_activity and the log show the EXECUTE, because the server reports
 * it. Costs and load belong to the executed statement, so its query identifier
 * is in shared memory, too.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_EXECUTED_H
#define TACHO_EXECUTED_H

#include "nodes/parsenodes.h"
#include "utils/plancache.h"

#include "core/hot.h"

/* Called by the hooks of shared memory. */
extern void executed_shmem_request(void);
extern void executed_shmem_startup(void);

/*
 * Until executed_clear(), the `reported` query id of this process stands for
 * the statement `query_id`. executed_clear() may be called when nothing is
 * set.
 */
extern void executed_set(uint64 reported, uint64 query_id);
extern void executed_clear(void);

/*
 * Query id of the statement that a process executes: the id that it has set
 * for `reported`, or else `reported` itself. `slot` is the process's slot, as
 * in compat.h. Any process may call it.
 */
extern uint64 executed_in(int slot, uint64 reported);

/* Same as executed_in(), for the leader of this parallel worker. */
extern uint64 executed_in_leader(uint64 reported);

/*
 * The prepared statement that a top-level EXECUTE has not started yet, or
 * NULL. Before it starts, functions in its arguments and functions that the
 * planner folds may start other statements.
 */
extern HOT_DATA const CachedPlanSource *executed_pending;

/* A top-level EXECUTE begins. */
extern void executed_expect(const ExecuteStmt *statement);

/*
 * A top-level statement starts while executed_pending is set. If it belongs
 * to this prepared statement, samples get its query id instead of the
 * EXECUTE's. Other views still show the EXECUTE, as the server reports it.
 */
extern void executed_start(uint64 query_id);

#endif							/* TACHO_EXECUTED_H */
