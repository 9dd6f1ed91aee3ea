/*
 * statement.h
 *	  A statement of the statistics: its identity, what one execution adds, and
 *	  copies of its counters and plans.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_H
#define TACHO_STATEMENT_H

#include "executor/execdesc.h"

#include "core/compat.h"
#include "core/counters.h"

/*
 * Identity of an entry. Zero it before filling it: keys are compared as
 * bytes. Query id 0 marks two kinds of entries without a statement. Without a
 * user, it has the counters evicted from the database; with a user, the
 * errors that happened outside of statements.
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
 * Weights of what the operating system measured for one execution: the number
 * of executions for which its usage (rusage) counts, and its wait for a CPU
 * (run_queue). 0 = not measured.
 */
typedef struct UsageDraw
{
	uint16		rusage;
	uint16		run_queue;
} UsageDraw;

/*
 * The counters that one planning or execution adds to an entry. Counters of
 * the operating system are those that the execution itself used;
 * statements_add() weighs them.
 */
typedef struct StatementDelta
{
	uint32		groups;			/* groups that `counters` has */
	int32		histogram_bucket;	/* -1 = none */
	int32		sqlstate;		/* of the error, 0 = none */
	UsageDraw	weight;			/* of an execution, 0 = none */
	int64		plan_id;		/* of an execution or its worker, 0 = none */
	Counters	counters;		/* only `groups` are set */
} StatementDelta;

/* The text of a statement, for an entry that has to be made or lacks it. */
typedef struct StatementSource
{
	const char *string;			/* the client's message, zero-terminated */
	int			location;		/* of the statement in it, -1 = unknown */
	int			length;			/* 0 = the rest, as in PlannedStmt */
	CompatJumble *jumble;	/* constants, or NULL: keep the text as it is */
	bool		masked;			/* the text has no constants */
} StatementSource;

/* The text of an execution, without the positions of its constants. */
static inline StatementSource
source_of(const QueryDesc *query)
{
	return (StatementSource) {
		.string = query->sourceText,
		.location = query->plannedstmt->stmt_location,
		.length = query->plannedstmt->stmt_len,
	};
}

/*
 * Copy of an entry, made by statements_read().
 *
 * restored: the entry was loaded when the server started, or when its memory
 * was made again after a crash. Its counters then began with older numbers,
 * and the history has a part of these. When a reader of differences first
 * sees such a (key, generation), its counters are only the base of later
 * differences. An entry that is not restored began with zeros at stats_since.
 * Entries without a query id follow the same rules. Generations begin again
 * when the memory is made again. So (key, generation) identifies an entry
 * only while the comparing process stays attached.
 */
typedef struct StatementCopy
{
	StatementKey key;
	uint64		generation;
	TimestampTz stats_since;
	TimestampTz minmax_stats_since;
	TimestampTz text_since;		/* 0 = no text */
	TimestampTz last_call;		/* see statements_clock_advance(); 0 = not known */
	TimestampTz last_error_at;
	int32		last_sqlstate;
	int32		encoding;
	Counters	counters;
	bool		restored;		/* see above */
	bool		has_text;
	char	   *text;			/* in StatementReader's buffer, or NULL */
	int			text_length;
} StatementCopy;

/* The counters of one plan, in the units of Counters. */
typedef struct PlanCounters
{
	int64		calls;
	double		total_exec_time;
	double		cpu_time;		/* user and system, parallel workers too */
	int64		rows;
	int64		shared_blks_hit;
	int64		shared_blks_read;
	int64		temp_blks_written;
} PlanCounters;

/* Plans that have counters of their own, once an entry has two. */
#define PLANS_AT_ONCE 4

/*
 * The plans of an entry. Their counters add up to the entry's counters. Plan
 * id 0 has the executions of unknown plans: from before the server started,
 * or of plans that have made room for others.
 */
typedef struct PlanRow
{
	int64		plan_id;
	TimestampTz since;			/* 0 = not known */
	double		max_exec_time;	/* ms; negative = not known */
	PlanCounters counters;
} PlanRow;

typedef struct PlanRows
{
	int			n;
	PlanRow		row[PLANS_AT_ONCE + 1];
} PlanRows;

#endif							/* TACHO_STATEMENT_H */
