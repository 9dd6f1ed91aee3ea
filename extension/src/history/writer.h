/*
 * writer.h
 *	  The tape writer, a child process, and the frames on their way to it.
 *
 * A frame is kept until the writer has acknowledged it. If the writer dies,
 * the next one gets the frame again. Nothing here waits: frames that the pipe
 * does not take stay in a buffer of WRITER_BUFFER_BYTES. A frame that does
 * not fit there is lost and counted.
 *
 * Raises no error except out of memory. Used by the sampler only.
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
 * Makes a hello frame in `out`. `sequence` is the number of the data frame
 * that follows the hello, and the number of the hello itself. `restart` is
 * true if this sampler had a writer before.
 */
typedef void (*WriterHello) (StringInfo out, uint64 sequence, bool restart);

/* Sets up the queue. The first writer_turn() starts the process. */
extern void writer_init(uint64 incarnation, WriterHello hello);

/*
 * One turn: reaps a dead writer, starts a new one when its time has come,
 * takes acknowledgements, sends as much as the pipe takes. `now_ms` is from a
 * clock that never goes back. Fills the writer's part of `status`, with the
 * reason.
 */
extern void writer_turn(int64 now_ms, TachoStatus *status);

/* Sequence of the next frame that writer_put() takes. */
extern uint64 writer_next_sequence(void);

/*
 * Copies a data frame, which has the sequence of writer_next_sequence().
 * Returns false if the buffer is full: the frame is lost.
 */
extern bool writer_put(const char *frame, int length);

/*
 * Says that the frame with writer_next_sequence() holds new settings. A
 * writer that waits for disk space does not read it, so it is replaced.
 */
extern void writer_settings_changed(void);

/*
 * All frames before writer_first_unacknowledged() are acknowledged. Frames
 * from writer_first_unwritten() on are in no tape. A writer that still runs
 * may write the frames between these two.
 */
extern uint64 writer_first_unacknowledged(void);
extern uint64 writer_first_unwritten(void);

/* True if half of the buffer is free. */
extern bool writer_has_room(void);

/* True if frames wait for room in the pipe. */
extern bool writer_is_behind(void);

/*
 * Number of writers started. A new writer may lack definitions that were sent
 * to the one before.
 */
extern int64 writer_starts(void);

/*
 * Sends the remaining frames, closes the pipe and waits for the writer to
 * end, in steps of 5 ms and for at most `patience_ms`.
 */
extern void writer_close(int patience_ms);

#endif							/* TACHO_WRITER_H */
