/*
 * statements.h
 *	  Statistics of statements: one entry for each user, database, query
 *	  identifier and nesting (top level or not).
 *
 * What hooks and SQL functions call. The layout of the shared memory is in
 * statements_shared.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_H
#define TACHO_STATEMENTS_H

#include "core/compat.h"
#include "core/counters.h"

/*
 * Identity of an entry. Zero it before filling: it is compared as bytes. Query
 * id 0 is of no statement: without a user what was evicted of the database,
 * with one the errors that happened outside of statements.
 */
typedef struct StatementKey
{
	uint64		query_id;
	Oid			user_id;
	Oid			database_id;
	uint32		toplevel;
	uint32		unused;
} StatementKey;

/*
 * How many executions one counts for in the counters of the operating system:
 * its usage, and its wait for a CPU. 0 = it is not measured.
 */
typedef struct UsageDraw
{
	uint16		rusage;
	uint16		run_queue;
} UsageDraw;

/*
 * What one planning or execution adds to an entry. Counters of the operating
 * system are those of the execution itself until they are added.
 */
typedef struct StatementDelta
{
	uint32		groups;			/* groups of `counters` that are filled */
	int32		histogram_bucket;	/* -1 = none */
	int32		sqlstate;		/* of the error, 0 = none */
	UsageDraw	weight;			/* with GROUP_cpu */
	int64		plan_id;		/* of an execution, 0 = it has none */
	Counters	counters;		/* only members of `groups` are set */
} StatementDelta;

/* Where the text of a statement is, if an entry has to be made for it. */
typedef struct StatementSource
{
	const char *string;			/* what the client sent, zero terminated */
	int			location;		/* of the statement in it, -1 = unknown */
	int			length;			/* 0 = the rest, as in PlannedStmt */
	CompatJumble *jumble;	/* constants, or NULL: text is taken as it is */
	bool		masked;			/* as it is, it has no constants */
} StatementSource;

/*
 * Copy of an entry, made by statements_read().
 *
 * restored: the entry was loaded when the server started (or made its memory
 * anew after a crash). Its counters then began with numbers that were counted
 * before, part of which is in the history: at first sight of such a
 * (key, generation) they are the baseline of differences and no difference
 * themselves. An entry that is not restored began with zero at stats_since.
 * Both hold for the entries without query id, too. Generations are given out
 * anew when memory is: (key, generation) is an identity only for as long as
 * the process that compares it has been attached.
 */
typedef struct StatementCopy
{
	StatementKey key;
	uint64		generation;
	TimestampTz stats_since;
	TimestampTz minmax_stats_since;
	TimestampTz text_since;		/* 0 = there is no text */
	TimestampTz last_error_at;
	int32		last_sqlstate;
	int32		encoding;
	Counters	counters;
	bool		restored;		/* see below */
	bool		has_text;
	char	   *text;			/* in StatementReader's buffer, or NULL */
	int			text_length;
} StatementCopy;

/* What is counted for each plan, in the units of Counters. */
typedef struct PlanCounters
{
	int64		calls;
	double		total_exec_time;
	int64		rows;
	int64		shared_blks_hit;
	int64		shared_blks_read;
	int64		temp_blks_written;
} PlanCounters;

/* Plans of an entry that are counted at a time, once there are two. */
#define PLANS_AT_ONCE 4

/*
 * The plans of an entry. Their counters add up to what the entry has counted.
 * Plan id 0: executions whose plan is not known, because they were before the
 * server started, or of plans that have made room for others.
 */
typedef struct PlanRow
{
	int64		plan_id;
	TimestampTz since;			/* 0 = not known */
	double		max_exec_time;	/* negative = not known */
	PlanCounters counters;
} PlanRow;

typedef struct PlanRows
{
	int			n;
	PlanRow		row[PLANS_AT_ONCE + 1];
} PlanRows;

/* Walks all entries. Zero it, set with_text, call until false. */
typedef struct StatementReader
{
	uint32		slot;
	bool		with_text;
	TimestampTz texts_since;	/* only texts kept since, 0 = all */
	int			waited;			/* ms, for writers stopped amid writing */
	char	   *buffer;
	Size		buffer_size;
} StatementReader;

typedef struct StatementsInfo
{
	int64		evicted;		/* entries that made room */
	int64		skipped;		/* executions that could not be counted */
	int64		entries;
	int64		max;			/* in effect */
	int64		reserved;
	int64		plans_missing;	/* executions not counted for their plan */
	int64		text_bytes;
	int64		text_bytes_max; /* in effect */
	int64		texts_missing;	/* times a text did not fit */
	int64		normalizations;
	int64		promotions;		/* entries that got more stripes */
	TimestampTz stats_reset;
	TimestampTz last_eviction;	/* 0 = never */
} StatementsInfo;

/* At server start: hooks of shared memory, see hooks.c. */
extern void statements_shmem_request(void);
extern bool statements_shmem_startup(void);

/* Whether entries are kept at all in this server. */
extern bool statements_active(void);

/*
 * An execution that takes as long, in ms, has its CPU time and I/O measured, also
 * when it was not drawn. It is the begin of a bucket of the histogram.
 */
#define LONG_MS 4.096

/*
 * Adds `delta` to the entry `key`, which is made when it is missing. Never
 * raises an error; what could not be added is counted as skipped. Without a
 * source the entry has no text until a call with one follows.
 *
 * An entry that is there and has its text is added to without a lock of the
 * server: after half a millisecond of trying the execution is skipped. To make an
 * entry, or to give it a text, this waits for the lock of its partition, one of
 * 64. Its holders allocate nothing, raise nothing and wait for nothing under it;
 * the longest is a reader that copies a text, a 16th of the memory for texts at
 * most. If the operating system stops a holder, all who make entries in its
 * partition wait until that runs again.
 */
extern void statements_add(const StatementKey *key,
						   StatementDelta *delta,
						   const StatementSource *source);

/*
 * The same while an error is being handled, for counting that. Its locks are
 * only ever tried, for half a millisecond: the process may hold others.
 */
extern void statements_add_failure(const StatementKey *key,
								   StatementDelta *delta,
								   const StatementSource *source);

/* Adds `delta` to the entry `key`, or nothing where there is none. */
extern void statements_add_if_there(const StatementKey *key,
									StatementDelta *delta);

/*
 * Makes the entry `key` with its normalised text, or gives it the text it
 * lacks. Does nothing when it has one. Never raises an error.
 */
extern void statements_remember(const StatementKey *key,
								const StatementSource *source);

/*
 * One of how many executions of `query_id` has its CPU time and I/O measured: 1
 * unless it is known to be short and frequent, so that measuring each would cost
 * more than it tells; then ONE_OF_LEAST to ONE_OF_MOST, powers
 * of four.
 */
#define ONE_OF_LEAST 4
#define ONE_OF_MOST 64
extern int	statements_one_of(uint64 query_id, bool toplevel);

/*
 * Whether somebody has noted that the history has the text of the current
 * user's `query_id`; noting it. `texts` tells the texts of today from those of
 * other days. Where there is no entry, nothing is known and nothing noted.
 */
extern bool statements_text_known(uint64 query_id, bool toplevel, uint32 texts);
extern void statements_note_text(uint64 query_id, bool toplevel, uint32 texts);

/* Whether the entry of the current user's `query_id` has its text. */
extern bool statements_text_there(uint64 query_id, bool toplevel);

/* Next entry into `copy`; false at the end. May raise errors (memory). */
extern bool statements_read(StatementReader *reader, StatementCopy *copy);

/*
 * For the history, by the sampler only; waits for nothing, but for what says
 * so. What an entry has counted since it was recorded last.
 */
typedef struct StatementRow
{
	StatementKey key;
	uint64		generation;
	uint32		slot;
	int64		values[HISTORY_COLUMNS];
} StatementRow;

/* Slots to ask for: 0 … n - 1. */
extern uint32 statements_slots(void);

/*
 * Fills `row` and notes that it is recorded. False when the entry in the slot
 * has not counted anything; also when somebody is at it, then it comes with
 * the next record.
 */
extern bool statements_record(uint32 slot, StatementRow *row);

/*
 * The history did not get a row after all: it comes with a later record, or
 * with the evicted if the entry is gone. Waits for a lock; for rare cases.
 */
extern void statements_give_back(const StatementRow *row);

/*
 * What the history lacks of the entry that was just read, if that is to be
 * kept. Only in the postmaster at its end.
 */
extern bool statements_lacking(const StatementReader *reader,
							   const StatementCopy *copy, int64 *values);

/*
 * Whether a record should come soon, as many slots wait for one; the latest
 * resets, 0 = none, of everything and of some entries.
 */
extern bool statements_want_record(void);
extern TimestampTz statements_reset_at(void);
extern TimestampTz statements_partial_reset_at(void);

/* A number that is another one when anything was counted, evicted or reset. */
extern uint64 statements_state(void);

/*
 * Time of the last record, in any life of the sampler or when the server
 * started, as clock_boot_us() tells it; 0 = what comes next is not to be
 * recorded.
 */
extern int64 statements_recorded_at(void);
extern void statements_set_recorded_at(int64 boot_us);

/* Of what was counted longer ago than this the history tells nothing. */
#define STATEMENTS_LONGEST_MS	(60 * 60 * 1000)

/*
 * Removes entries, or unsets their extremes only. Zero matches everything.
 * Returns the one time that all touched entries carry. Waits for writers, can
 * be cancelled.
 */
extern TimestampTz statements_reset(Oid user_id, Oid database_id,
									uint64 query_id, bool minmax_only);

extern void statements_info(StatementsInfo *info);

/*
 * The plans of the entry that was just read. A utility statement has none. False if the entry has gone meanwhile.
 */
extern bool statements_plans(const StatementReader *reader,
							 const StatementCopy *copy, PlanRows *rows);

/*
 * Puts a saved entry back, of which the history lacks so much (NULL =
 * nothing). Only in the postmaster while it starts. False when there is no room.
 */
extern bool statements_restore(const StatementCopy *copy, const int64 *lacking);
extern void statements_restore_info(int64 evicted, int64 skipped,
									TimestampTz stats_reset);

/* Raises the error that there are no statistics here. */
extern void statements_require(const char *library);

#endif							/* TACHO_STATEMENTS_H */
