/*
 * writer_messages.h
 *	  What the tape writer says on its standard error, for the server's log.
 *
 * A line is a severity, a colon, two spaces and a text. TROUBLE says why the
 * newest frame is not written or why the writer ends; it is kept for whoever
 * reports that, and not logged by itself. All others are logged at once, with
 * the prefix and in the format of the server's log. A line of another shape (a
 * panic, a message of the dynamic linker) is logged as it is.
 *
 * Nothing here waits or raises an error. Used by writer.c only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_WRITER_MESSAGES_H
#define TACHO_WRITER_MESSAGES_H

/* A new writer says its messages to the pipe whose read end does not block. */
extern void writer_messages_begin(int descriptor);

/* Takes what there is. */
extern void writer_messages_read(void);

/* The writer is gone, and its pipe is closed. The trouble stays. */
extern void writer_messages_end(void);

/* The last trouble of the newest writer, "" = none. */
extern const char *writer_messages_trouble(void);

#endif							/* TACHO_WRITER_MESSAGES_H */
