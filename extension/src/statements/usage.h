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

/*
 * How often an execution counts in the counters of the operating system: 0 =
 * it is not measured, 1 = it is, n = it stands for n executions.
 */
typedef struct UsageDraw
{
	uint16		rusage;
	uint16		run_queue;
} UsageDraw;

typedef struct UsageStart
{
	instr_time	time;
	BufferUsage buffers;
	WalUsage	wal;
	UsageDraw	draw;
	int64		run_queue_ns;	/* only if draw.run_queue */
	struct rusage rusage;		/* only if draw.rusage */
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
}

/*
 * The last of it: the execution as a whole took `ms`, the planning did, or it
 * failed with `sqlstate`.
 */
extern void usage_executed(StatementDelta *delta, double ms, uint64 rows,
						   UsageDraw draw);
extern void usage_planned(StatementDelta *delta, double ms);
extern void usage_failed(StatementDelta *delta, int sqlstate);

/* What only the executor knows. */
extern void usage_executor(StatementDelta *delta, const QueryDesc *query);

#endif							/* TACHO_USAGE_H */
