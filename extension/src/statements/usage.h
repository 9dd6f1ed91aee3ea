/*
 * usage.h
 *	  What one planning or execution used: snapshots before and after.
 *
 * Own measurement: nothing here depends on the instrumentation of the executor
 * or on other extensions, and it works alike for all kinds of statements.
 * No function raises errors.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_USAGE_H
#define TACHO_USAGE_H

#include <sys/resource.h>

#include "portability/instr_time.h"

#include "statements/statements.h"

struct JitInstrumentation;

/* What the operating system had counted of this process when it was last read. */
typedef struct UsageReading
{
	int64		user_us;
	int64		system_us;
	uint32		read_blocks;	/* these may wrap: differences count */
	uint32		written_blocks;
	uint32		minor_faults;
	uint32		major_faults;
	uint32		voluntary_switches;
	uint32		involuntary_switches;
	double		unread_ms;		/* that executions have taken since */
} UsageReading;

typedef struct UsageStart
{
	instr_time	time;
	BufferUsage buffers;
	WalUsage	wal;
	UsageReading reading;		/* the latest before it began */
	UsageDraw	draw;
	int64		run_queue_ns;	/* only if draw.run_queue */
} UsageStart;

/* Decides what of the operating system's counters an execution has measured. */
extern UsageDraw usage_draw(uint64 query_id, bool toplevel);

/* Begins a piece of an execution. */
extern void usage_begin(UsageStart *start, UsageDraw draw);

/*
 * Ends the piece and adds to `delta` all that it used but its time, which is
 * returned in milliseconds.
 */
extern double usage_end(const UsageStart *start, StatementDelta *delta);

/* An empty delta. Counters are not touched: no group is filled. */
static inline void
usage_clear(StatementDelta *delta)
{
	delta->groups = 0;
	delta->histogram_bucket = -1;
	delta->sqlstate = 0;
	delta->plan_id = 0;
}

/* Rows of a utility command, where the server counts them. */
extern uint64 usage_utility_rows(const QueryCompletion *completion);

/*
 * The last of it: the execution as a whole took `ms`, the planning did, or it
 * failed with `sqlstate`, after `ms` if it was executed. What a failed execution
 * used stands in counters of its own, and in no others.
 */
extern void usage_executed(StatementDelta *delta, double ms, uint64 rows,
						   UsageDraw draw);
extern void usage_planned(StatementDelta *delta, double ms);
extern void usage_failed(StatementDelta *delta, double ms, int sqlstate);

/* What only the executor knows. */
extern void usage_executor(StatementDelta *delta, const QueryDesc *query);

#endif							/* TACHO_USAGE_H */
