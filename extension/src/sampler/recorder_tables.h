/*
 * recorder_tables.h
 *	  Records the activity of tables and indexes; see the .c file.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_TABLES_H
#define TACHO_RECORDER_TABLES_H

#include "core/tacho.h"

/* Does a part of the pending work, in a fraction of a millisecond. */
extern void tables_turn(int64 wall_us, int64 boot_us);

/* True if the last turn left work to do. */
extern bool tables_turn_again(void);

/* Records everything at once, when the worker is about to end. */
extern void tables_finish(int64 wall_us, int64 boot_us);

#endif							/* TACHO_RECORDER_TABLES_H */
