/*
 * error_counts.h
 *	  Counts the errors of statements by SQLSTATE, for the history.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ERROR_COUNTS_H
#define TACHO_ERROR_COUNTS_H

#include "statements/statement.h"

/* Most pairs of a statement and an SQLSTATE between two records. */
#define ERROR_PLACES 1024

/* Errors of a statement with one SQLSTATE. */
typedef struct ErrorCount
{
	StatementKey key;			/* zeros with SQLSTATE 0 */
	int32		sqlstate;		/* 0 = errors that found no room */
	uint32		count;			/* 0 = unused */
} ErrorCount;

/* Called by the hooks of shared memory. */
extern void error_counts_shmem_request(void);
extern void error_counts_shmem_startup(void);

/*
 * Counts an error. Waits for the lock for half a millisecond at most. An error
 * that does not get the lock or a place is counted without its statement.
 */
extern void error_counts_add(const StatementKey *key, int sqlstate);

/*
 * Moves all counts to `rows`, which has ERROR_PLACES + 1 elements, and returns
 * their number. Returns -1 if another process has the lock. For the sampler.
 */
extern int	error_counts_take(ErrorCount *rows);

#endif							/* TACHO_ERROR_COUNTS_H */
