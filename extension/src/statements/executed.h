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

#endif							/* TACHO_EXECUTED_H */
