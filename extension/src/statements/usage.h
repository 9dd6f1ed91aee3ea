/*
 * usage.h
 *	  Resources that one planning or execution used: differences of snapshots.
 *
 * Nothing here depends on the executor's instrumentation or on other
 * extensions, and all kinds of statements are measured alike. No function
 * raises errors.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_USAGE_H
#define TACHO_USAGE_H

#include <sys/resource.h>

#include "portability/instr_time.h"

#include "statements/statements.h"

struct JitInstrumentation;

/* Counters of the operating system for this process, when last read. */
typedef struct UsageReading
{
	int64		user_us;
	int64		system_us;
	uint32		read_blocks;	/* may wrap; only differences count */
	uint32		written_blocks;
	uint32		minor_faults;
	uint32		major_faults;
	uint32		voluntary_switches;
	uint32		involuntary_switches;
	double		unread_ms;		/* ms; executions since the reading */
} UsageReading;

typedef struct UsageStart
{
	instr_time	time;
	BufferUsage buffers;
	WalUsage	wal;
	UsageReading reading;		/* the last one before the piece began */
	UsageDraw	draw;
	int64		run_queue_ns;	/* only if draw.run_queue */
} UsageStart;

/* Decides which counters of the operating system an execution measures. */
extern UsageDraw usage_draw(uint64 query_id, bool toplevel);

/* Begins a piece of an execution. */
extern void usage_begin(UsageStart *start, UsageDraw draw);

/*
 * Ends the piece. Adds all resources it used, except its duration, to
 * `delta`. Returns the duration in milliseconds.
 */
extern double usage_end(const UsageStart *start, StatementDelta *delta);

/* Empties a delta: no group is filled, and counters are not touched. */
static inline void
usage_clear(StatementDelta *delta)
{
	delta->groups = 0;
	delta->histogram_bucket = -1;
	delta->sqlstate = 0;
	delta->plan_id = 0;
}

/* Rows of a utility command, if the server counts them. */
extern uint64 usage_utility_rows(const QueryCompletion *completion);

/*
 * Finish a delta: the whole execution took `ms`; the planning took `ms`; or
 * it failed with `sqlstate`, after `ms` if it was executed at all. Resources
 * of a failed execution are counted in separate counters only.
 */
extern void usage_executed(StatementDelta *delta, double ms, uint64 rows,
						   UsageDraw draw);
extern void usage_planned(StatementDelta *delta, double ms);
extern void usage_failed(StatementDelta *delta, double ms, int sqlstate);

/* Adds the counters that only the executor has. */
extern void usage_executor(StatementDelta *delta, const QueryDesc *query);

#endif							/* TACHO_USAGE_H */
