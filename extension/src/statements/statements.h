/*
 * statements.h
 *	  Statistics of statements: one entry for each user, database, query
 *	  identifier and nesting (top level or not).
 *
 * The interface for hooks and SQL functions. The layout of the shared memory
 * is in statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_H
#define TACHO_STATEMENTS_H

#include "core/compat.h"
#include "core/counters.h"
#include "statements/statement.h"

/*
 * Walks over all entries. Zero it, set with_text, then call statements_read()
 * until it returns false.
 */
typedef struct StatementReader
{
	uint32		slot;
	bool		with_text;
	TimestampTz texts_since;	/* only newer texts, 0 = all */
	TimestampTz called_since;	/* only entries called since then, 0 = all */
	int			waited;			/* ms of waiting for stopped writers */
	char	   *buffer;
	Size		buffer_size;
} StatementReader;

typedef struct StatementsInfo
{
	int64		evicted;		/* evicted entries */
	int64		skipped;		/* executions not counted */
	int64		entries;
	int64		max;			/* in effect */
	int64		reserved;
	int64		plans_missing;	/* executions without a plan's counters */
	int64		text_bytes;
	int64		text_bytes_max; /* in effect */
	int64		texts_missing;	/* number of times that a text did not fit */
	int64		normalizations;
	int64		promotions;		/* times that an entry got more stripes */
	TimestampTz stats_reset;
	TimestampTz last_eviction;	/* 0 = never */
} StatementsInfo;

/* At server start, from the hooks of shared memory; see hooks.c. */
extern void statements_shmem_request(void);
extern bool statements_shmem_startup(void);

/* True if this server keeps statistics of statements. */
extern bool statements_active(void);

/*
 * An execution of this duration, in ms, or longer has its CPU time and I/O
 * counted even if it was not drawn. It is the lower limit of a histogram
 * bucket.
 */
#define LONG_MS 4.096

/*
 * Sets the clock of the statistics to the present time, which it returns. The
 * clock never goes back. An entry keeps the clock's time of its last planning,
 * execution or failure (last_call). The sampler advances the clock at each
 * tick, so last_call is at most a tick too early. While no sampler runs, it is
 * as early as the last reading, or a new entry advances the clock.
 *
 * A reader advances the clock before it copies entries. An execution that it
 * does not see is counted later: it locks its stripe after the copy was made,
 * and reads the clock after that. So its last_call is not before the reading,
 * and a later reader that asks for entries called since then misses nothing.
 */
extern TimestampTz statements_clock_advance(void);

/*
 * Adds `delta` to the entry `key`, and makes the entry if it is missing.
 * Never raises an error; executions that could not be added are counted as
 * skipped. Without a source a new entry has no text until a call with a
 * source follows.
 *
 * If the entry exists and has its text, no lock of the server is taken: after
 * half a millisecond of trying, the execution is skipped. To make an entry or
 * give it a text, the function waits for the lock of its partition, one of
 * 64. A holder of this lock does not allocate, raise or wait. The longest
 * holder is a reader that copies a text, which has at most a 16th of the
 * memory for texts. If the operating system stops a holder, all processes
 * that make entries in this partition wait until it runs again.
 */
extern void statements_add(const StatementKey *key,
						   StatementDelta *delta,
						   const StatementSource *source);

/*
 * The same while an error is being handled, to count this error. Locks are
 * only tried, for half a millisecond, because the process may hold other
 * locks.
 */
extern void statements_add_failure(const StatementKey *key,
								   StatementDelta *delta,
								   const StatementSource *source);

/*
 * Adds `delta` of a parallel worker to the entry `key` if there is one, and to
 * the plan of its leader.
 */
extern void statements_add_if_there(const StatementKey *key,
									StatementDelta *delta);

/*
 * Makes the entry `key` with its normalised text, or gives the entry its
 * missing text. Does nothing if it has a text. Never raises an error.
 */
extern void statements_remember(const StatementKey *key,
								const StatementSource *source);

/*
 * Returns n if one of n executions of `query_id` has its CPU time and I/O
 * measured. n is 1 unless the statement is known to be short and frequent, so
 * that measuring every execution would cost too much. Then n is a power of
 * four from ONE_OF_LEAST to ONE_OF_MOST.
 */
#define ONE_OF_LEAST 4
#define ONE_OF_MOST 64
extern int	statements_one_of(uint64 query_id, bool toplevel);

/*
 * True if a process has noted that the history has the text of the current
 * user's `query_id`. statements_note_text() notes it. `texts` is a number
 * that changes every day, because each day's history has its own texts.
 * Without an entry nothing is known or noted.
 */
extern bool statements_text_known(uint64 query_id, bool toplevel, uint32 texts);
extern void statements_note_text(uint64 query_id, bool toplevel, uint32 texts);

/* True if the entry of the current user's `query_id` has its text. */
extern bool statements_text_there(uint64 query_id, bool toplevel);

/*
 * Reads the next entry into `copy`; false at the end. May run out of memory.
 */
extern bool statements_read(StatementReader *reader, StatementCopy *copy);

/* Counters of a plan, in the units of the history and the order of PlanCounters. */
typedef struct PlanValues
{
	int64		calls;
	int64		total_exec_time;
	int64		cpu_time;
	int64		rows;
	int64		shared_blks_hit;
	int64		shared_blks_read;
	int64		temp_blks_written;
} PlanValues;

/*
 * Increase of a plan since the entry was recorded last. `first`: from
 * `since` on the entry had this plan alone, until another one was executed.
 */
typedef struct PlanIncrease
{
	int64		plan_id;		/* 0 = not known */
	TimestampTz since;			/* 0 = not known */
	int64		max_exec_time;	/* of these executions, 0 = not known */
	bool		first;
	PlanValues	values;
} PlanIncrease;

/*
 * For the history. Only the sampler calls the following functions. They do
 * not wait unless their comment says so. A row has the growth of an entry's
 * counters since its last row. The plans of an entry that has had
 * several add up to the row; an entry with one plan has none.
 */
typedef struct StatementRow
{
	StatementKey key;
	uint64		generation;
	uint32		slot;
	int			plans;
	TimestampTz last_call;		/* 0 = not known, or evicted entries */
	int64		values[HISTORY_COLUMNS];
	PlanIncrease plan[PLANS_AT_ONCE + 1];
} StatementRow;

/* Number of slots; slots are numbered 0 … n - 1. */
extern uint32 statements_slots(void);

/*
 * Fills `row` with the counters since the last record and notes them as
 * recorded. False if the entry in the slot has counted nothing, or if another
 * process is changing it; then a later record has its counters.
 */
extern bool statements_record(uint32 slot, StatementRow *row);

/*
 * Takes back a row that did not reach the history: a later record contains
 * its counters, or the counters of evicted entries do if the entry is gone.
 * Waits for a lock; for rare cases.
 */
extern void statements_give_back(const StatementRow *row);

/*
 * Sets `values` to those counters of the entry just read that the history
 * lacks. False if there are none, or if the next start must not record them.
 * Only in the postmaster at its end.
 */
extern bool statements_lacking(const StatementReader *reader,
							   const StatementCopy *copy, int64 *values);

/* True if a record should come soon, because many slots wait for one. */
extern bool statements_want_record(void);

/* Time of the last reset of all statistics, and of some; 0 = never. */
extern TimestampTz statements_reset_at(void);
extern TimestampTz statements_partial_reset_at(void);

/* A number that changes when anything is counted, evicted or reset. */
extern uint64 statements_state(void);

/*
 * Time of the last record by any life of the sampler, from clock_boot_us();
 * at first the time at which the memory was made. 0 = the sampler discards
 * the counters so far.
 */
extern int64 statements_recorded_at(void);
extern void statements_set_recorded_at(int64 boot_us);

/*
 * If the last record is longer ago than this, or than two intervals if these
 * are longer, the sampler discards the counters.
 */
#define STATEMENTS_LONGEST_MS	(60 * 60 * 1000)

/*
 * Removes entries, or only unsets their extremes. An argument of 0 matches
 * every user, database or query. Returns the reset time, which is the same for
 * all affected entries. Waits for writers, and can be cancelled.
 */
extern TimestampTz statements_reset(Oid user_id, Oid database_id,
									uint64 query_id, bool minmax_only);

extern void statements_info(StatementsInfo *info);

/*
 * Sets `rows` to the plans of the entry just read. A utility statement has
 * none. False if the entry is gone.
 */
extern bool statements_plans(const StatementReader *reader,
							 const StatementCopy *copy, PlanRows *rows);

/*
 * Restores a saved entry. `lacking` has the counters that the history lacks
 * (NULL = none). Only in the postmaster while it starts. False if there is no
 * room.
 */
extern bool statements_restore(const StatementCopy *copy, const int64 *lacking);
extern void statements_restore_info(int64 evicted, int64 skipped,
									TimestampTz stats_reset);

/* Raises the error that this server has no statistics of statements. */
extern void statements_require(const char *library);

#endif							/* TACHO_STATEMENTS_H */
