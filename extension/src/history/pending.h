/*
 * pending.h
 *	  Rows of the history of statements on their way to the writer.
 *
 * What the history has of an entry is noted when a row is made (see
 * statements_record.c). Rows whose frame is lost, or that no writer has taken
 * when the sampler ends, are given back: they come with a later record.
 *
 * Memory: its own context, about four times what the rows take in the
 * writer's buffer. Used by the sampler only. Raises no error but out of
 * memory, in pending_note().
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PENDING_H
#define TACHO_PENDING_H

#include "statements/statements.h"

/* A row was put into the open frame. */
extern void pending_note(const StatementRow *row, int64 boot_us);

/* The open frame has gone to the writer's buffer with that number, or is lost. */
extern void pending_sent(uint64 sequence);
extern void pending_lost(void);

/* Forgets what was written: all frames before `sequence`. */
extern void pending_written(uint64 sequence);

/*
 * At the end: gives back the rows of frames from `sequence` on and of the open
 * one, but those from before `since_us`, and forgets the others.
 */
extern void pending_end(uint64 sequence, int64 since_us);

#endif							/* TACHO_PENDING_H */
