/*
 * recorder_statements.h
 *	  Records what statements have cost in an interval, see the .c file.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_STATEMENTS_H
#define TACHO_RECORDER_STATEMENTS_H

#include "core/status.h"
#include "core/tacho.h"

/* Does a part of what is due; takes a fraction of a millisecond. */
extern void statements_turn(int64 wall_us, int64 boot_us, TachoStatus *status);

/* True while there is more to do than a turn has done. */
extern bool statements_turn_again(void);

/* Records everything at once: the worker is about to end. */
extern void statements_finish(int64 wall_us, int64 boot_us,
							  TachoStatus *status);

/* At the end of the process: gives back what has not come into the history. */
extern void statements_end(void);

#endif							/* TACHO_RECORDER_STATEMENTS_H */
