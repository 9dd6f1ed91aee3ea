/*
 * executed.h
 *	  The statement behind an EXECUTE of the top level.
 *
 * What others see a session execute (pg_stat_activity, the log) stays the
 * server's business: there it is the EXECUTE. Costs and load belong to the
 * statement, so its query identifier stands in shared memory beside.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_EXECUTED_H
#define TACHO_EXECUTED_H

#include "nodes/parsenodes.h"
#include "utils/plancache.h"

#include "core/hot.h"

/* In the hooks of shared memory. */
extern void executed_shmem_request(void);
extern void executed_shmem_startup(void);

/*
 * What this process reports as `reported` is the statement `query_id` until
 * executed_clear(), which may be called without.
 */
extern void executed_set(uint64 reported, uint64 query_id);
extern void executed_clear(void);

/*
 * The statement that a process executes: what it has set for `reported`, or
 * else that itself. By slot of the process, as in compat.h. For everybody.
 */
extern uint64 executed_in(int slot, uint64 reported);

/* The same for the leader of this parallel worker. */
extern uint64 executed_in_leader(uint64 reported);

/*
 * The prepared statement that an EXECUTE of the top level has not started yet, or
 * NULL. Before it, functions in its arguments and functions that planning folds
 * may start other statements.
 */
extern HOT_DATA const CachedPlanSource *executed_pending;

/* An EXECUTE of the top level begins. */
extern void executed_expect(const ExecuteStmt *statement);

/*
 * A statement of the top level starts while executed_pending is set. If it belongs
 * to this prepared statement, samples have its query id instead of the EXECUTE's.
 * Other views go on showing what the server reports, the EXECUTE.
 */
extern void executed_start(uint64 query_id);

#endif							/* TACHO_EXECUTED_H */
