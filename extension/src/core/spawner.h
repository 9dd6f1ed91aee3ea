/*
 * spawner.h
 *	  Starts the tacho program: one way for the writer and for readers.
 *
 * The program gets an argument vector, so that no shell interprets anything,
 * three descriptors and no other one, default signal dispositions, an empty
 * signal mask, a process group of its own (signals to the server's processes
 * do not reach it), and an environment of two variables.
 *
 * It is a child of tacho-parent (extension/parent/parent.c), which is the
 * child of this process: a program that ends after this process is none that
 * the postmaster could take for a backend.
 *
 * Raises no error, takes no lock and allocates nothing of the server's.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SPAWNER_H
#define TACHO_SPAWNER_H

/* a hint where the parent cannot be started */
#define SPAWN_PARENT_HINT	"Install the extension again: tacho-parent belongs beside its library."

#define PIPE_READ	0
#define PIPE_WRITE	1

/*
 * A pipe that no program inherits as such. On failure both ends are -1 and
 * errno is set.
 */
extern bool spawn_pipe(int ends[2]);

/* Closes an end unless it is -1, which it is then. */
extern void spawn_close(int *end);

/* The last argument of `argv` must be among the first so many. */
#define SPAWN_MOST_ARGUMENTS	128

/* A program and its parent. All zero, with a control of -1, is none. */
typedef struct Spawned
{
	pid_t		parent;			/* 0 = not started, or reaped */
	pid_t		program;		/* 0 = not known */
	int			control;		/* connection to the parent, -1 = closed */
	bool		ended;			/* the program has ended, or did not start */
	int			error;			/* why it did not start, or 0 */
	int			status;			/* of waitpid(), if it has ended */
} Spawned;

/*
 * Starts a program with these descriptors as its standard input, output and
 * error; `in` of -1 is /dev/null. `kills` says whether spawn_let_go() and the
 * end of this process kill it.
 *
 * Returns NULL, or the path of the program that could not be started, which
 * may be that of the parent, with errno set. That the program itself cannot
 * be started is told by spawn_ended(), with *error.
 */
extern const char *spawn_program(Spawned *spawned, const char *program,
								 char *const argv[], int in, int out, int err,
								 bool kills);

/* True when the program has ended or could not be started. Does not wait. */
extern bool spawn_ended(Spawned *spawned);

/* Closes the connection: the parent ends when all has ended. */
extern void spawn_let_go(Spawned *spawned);

/*
 * Reaps the parent. True = no process is left. A status nobody can tell any
 * more (the process that loaded us ignores SIGCHLD) counts as success.
 */
extern bool spawn_reap(Spawned *spawned);

#endif							/* TACHO_SPAWNER_H */
