/*
 * pending.h
 *	  Rows of the history of statements on their way to the writer.
 *
 * When a row is made, statements_record.c notes its counters as recorded. A
 * row may still be lost with its frame, or be unwritten when the sampler
 * ends. Such rows are given back: a later record contains their counters
 * again.
 *
 * Memory: its own context, about four times the size of the rows in the
 * writer's buffer. Used by the sampler only. Raises no error except out of
 * memory, in pending_note().
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PENDING_H
#define TACHO_PENDING_H

#include "statements/statements.h"

/*
 * Notes a row that was put into the open frame. `boot_us` is the time at which
 * its record began, by clock_boot_us().
 */
extern void pending_note(const StatementRow *row, int64 boot_us);

/*
 * pending_sent(): the open frame has gone to the writer's buffer, under this
 * sequence. pending_lost(): the open frame was lost.
 */
extern void pending_sent(uint64 sequence);
extern void pending_lost(void);

/* Forgets the rows of all frames before `sequence`: they are written. */
extern void pending_written(uint64 sequence);

/*
 * At the end: gives back the rows of the open frame and of frames from
 * `sequence` on, if they were made at `since_us` or later. Forgets all
 * others.
 */
extern void pending_end(uint64 sequence, int64 since_us);

#endif							/* TACHO_PENDING_H */
