/*
 * child.h
 *	  Runs a program as a child of a backend and reads its output.
 *
 * A child never outlives the work that started it. Three events kill and reap
 * it: child_stop(), the exit of the backend, and the release of the resource
 * owner that was current at its start. The owner is released at the end or
 * error of the query, at a cancel, and when a subtransaction aborts. If the
 * kernel keeps the child for more than a second after that, its parent,
 * tacho-parent, waits for it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CHILD_H
#define TACHO_CHILD_H

#include "lib/stringinfo.h"

/* most bytes of standard error that are kept */
#define CHILD_ERRORS_LIMIT	(64 * 1024)

typedef struct Child Child;

/*
 * Starts `program` with the null-terminated argument vector `argv` and a
 * minimal environment. Its standard error is appended to `errors`, at most
 * CHILD_ERRORS_LIMIT bytes.
 *
 * On failure returns NULL with errno set; *failed is the path of the program
 * that did not start, which may be its parent's. *failed is NULL if
 * tacho.max_readers children already run in the whole server. Raises an error
 * if memory or file descriptors run out.
 */
extern Child *child_start(const char *program, char *const argv[],
						  StringInfo errors, const char **failed);

/*
 * Reads at most `size` bytes of the child's output, and waits for output if
 * there is none. Returns 0 when the child has closed its output. Processes
 * interrupts.
 */
extern int	child_read(Child *child, char *buffer, int size);

/*
 * Waits until the child has ended and returns its status in the form of
 * waitpid(). *error is 0, or the errno of a program that could not be
 * started. Processes interrupts. To be called after child_read() has returned
 * 0, as the last call for this child.
 */
extern int	child_finish(Child *child, int *error);

/* Kills the child if it still runs; reaps and frees it. */
extern void child_stop(Child *child);

#endif							/* TACHO_CHILD_H */
