/*
 * recorder_statements.h
 *	  Records the cost of statements in each interval; see the .c file.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_STATEMENTS_H
#define TACHO_RECORDER_STATEMENTS_H

#include "core/status.h"
#include "core/tacho.h"

/* Does a part of the pending work, in a fraction of a millisecond. */
extern void statements_turn(int64 wall_us, int64 boot_us, TachoStatus *status);

/* True if the last turn left work to do. */
extern bool statements_turn_again(void);

/* Records everything at once, when the worker is about to end. */
extern void statements_finish(int64 wall_us, int64 boot_us,
							  TachoStatus *status);

/*
 * At the end of the process: gives back rows that have not reached the
 * history.
 */
extern void statements_end(void);

#endif							/* TACHO_RECORDER_STATEMENTS_H */
