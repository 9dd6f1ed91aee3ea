/*
 * child.h
 *	  Runs a program as a child of a backend and reads what it prints.
 *
 * A child never outlives the piece of work that started it: it is killed and
 * reaped by child_stop(), when the resource owner that was current at its
 * start is released (end or error of the query, cancel, subtransaction
 * abort), and when the backend exits. One that the kernel keeps longer than a
 * second after that has its own parent, tacho-parent, to wait for it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CHILD_H
#define TACHO_CHILD_H

#include "lib/stringinfo.h"

/* most bytes of the standard error output that are kept */
#define CHILD_ERRORS_LIMIT	(64 * 1024)

typedef struct Child Child;

/*
 * Starts `program` with the null-terminated argument vector `argv` and a
 * minimal environment. What it writes to standard error is appended to
 * `errors`, CHILD_ERRORS_LIMIT bytes at most.
 *
 * Returns NULL with errno set, and in *failed the path of what cannot be
 * started: the program or its parent. It is NULL when tacho.max_readers
 * children run in the whole server. Raises an error when memory or file
 * descriptors run out.
 */
extern Child *child_start(const char *program, char *const argv[],
						  StringInfo errors, const char **failed);

/*
 * Reads what the child printed, at most `size` bytes, and waits for it if
 * need be; 0 = the child has closed its output. Processes interrupts.
 */
extern int	child_read(Child *child, char *buffer, int size);

/*
 * Waits until the child has ended and returns its status as waitpid() reports
 * it; *error is 0, or why the program could not be started. Processes
 * interrupts. To be called after child_read() has returned 0, and the last
 * call for this child.
 */
extern int	child_finish(Child *child, int *error);

/* Kills the child if it still runs, reaps and frees it. */
extern void child_stop(Child *child);

#endif							/* TACHO_CHILD_H */
