/*
 * parent.h
 *	  The protocol between the server and tacho-parent, the parent of each
 *	  program.
 *
 * extension/parent/parent.c includes this file too, and knows nothing of the
 * server.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PARENT_H
#define TACHO_PARENT_H

#define PARENT_PROGRAM	"tacho-parent"

/* descriptor of the socket in the parent */
#define PARENT_CONTROL	3

/*
 * first argument of the parent: whether it kills the program when the socket
 * is closed, or waits for its end
 */
#define PARENT_KILLS	"kill"
#define PARENT_WAITS	"wait"

typedef enum ParentEvent
{
	PARENT_STARTED = 1,			/* value = process id of the program */
	PARENT_FAILED,				/* value = why it could not be started: errno */
	PARENT_ENDED				/* value = its status as of waitpid() */
} ParentEvent;

/* one event, small enough that a write is never split */
typedef struct ParentReport
{
	int			event;
	int			value;
} ParentReport;

#endif							/* TACHO_PARENT_H */
