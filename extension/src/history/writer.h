/*
 * writer.h
 *	  The child process that keeps the history files, and the frames on their
 *	  way to it.
 *
 * Frames are kept until the writer has acknowledged them and are sent again
 * to the next writer when it dies. Nothing here waits: what the pipe does not
 * take stays in a buffer of WRITER_BUFFER_BYTES; what does not fit there is
 * lost and counted.
 *
 * Raises no error but out of memory. Used by the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_WRITER_H
#define TACHO_WRITER_H

#include "lib/stringinfo.h"

#include "core/status.h"
#include "core/tacho.h"

#define WRITER_BUFFER_BYTES	(8 * 1024 * 1024)

/*
 * Makes a hello frame whose sequence is `sequence`, the next data frame's, in
 * `out`; `restart` when this sampler had a writer before.
 */
typedef void (*WriterHello) (StringInfo out, uint64 sequence, bool restart);

/* Starts no process yet: writer_turn() does. */
extern void writer_init(uint64 incarnation, WriterHello hello);

/*
 * One turn: reaps a dead writer, starts a new one when its time has come,
 * takes acknowledgements, sends what the pipe takes. `now_ms` never goes back.
 * Fills the writer's part of `status`, reason included.
 */
extern void writer_turn(int64 now_ms, TachoStatus *status);

/* Sequence of the frame that writer_put() would take next. */
extern uint64 writer_next_sequence(void);

/*
 * Takes a copy of a data frame with that sequence. Returns false when the
 * buffer is full: the frame is lost.
 */
extern bool writer_put(const char *frame, int length);

/*
 * The frame with writer_next_sequence() holds new settings, which a writer
 * that waits for space gets all the same.
 */
extern void writer_settings_changed(void);

/*
 * Every frame before this one is acknowledged; every one from this one on is in
 * no tape (between them are those that a writer, which is still there, may
 * write).
 */
extern uint64 writer_first_unacknowledged(void);
extern uint64 writer_first_unwritten(void);

/* True when half of the buffer is free. */
extern bool writer_has_room(void);

/* True when frames wait for room in the pipe. */
extern bool writer_is_behind(void);

/*
 * How often a new writer was started: it may lack definitions that went to
 * its predecessor.
 */
extern int64 writer_starts(void);

/*
 * Sends what the pipe takes, closes it and waits for the writer's end, in
 * steps of a few milliseconds and for `patience_ms` at most.
 */
extern void writer_close(int patience_ms);

#endif							/* TACHO_WRITER_H */
