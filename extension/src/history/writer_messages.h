/*
 * writer_messages.h
 *	  Messages of the tape writer on its standard error, for the server's log.
 *
 * A line is a severity, a colon, two spaces and a text. A line of TROUBLE
 * says why the newest frame is not written or why the writer ends. It is not
 * logged: it is kept for the report of that failure. A line of DISK is a
 * measurement of a file system (disks.h). All other lines are logged at once, with the prefix and in the format of the server's log. A
 * line of another shape (a panic, a message of the dynamic linker) is logged
 * unchanged.
 *
 * Nothing here waits or raises an error. Used by writer.c only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_WRITER_MESSAGES_H
#define TACHO_WRITER_MESSAGES_H

/*
 * Begins with a new writer. `descriptor` is the pipe's read end, which does
 * not block.
 */
extern void writer_messages_begin(int descriptor);

/* Reads the messages that are in the pipe. */
extern void writer_messages_read(void);

/* The writer is gone and its pipe is closed. The trouble is kept. */
extern void writer_messages_end(void);

/* The last trouble of the newest writer, "" = none. */
extern const char *writer_messages_trouble(void);

#endif							/* TACHO_WRITER_MESSAGES_H */
