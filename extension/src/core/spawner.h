/*
 * spawner.h
 *	  Starts the tacho program, for the writer and for readers.
 *
 * The program gets an argument vector, so that no shell interprets anything.
 * It gets three descriptors and no others, default signal dispositions, an
 * empty signal mask, and an environment of two variables. It has a process
 * group of its own, so signals to the server's processes do not reach it.
 *
 * It is a child of tacho-parent (extension/parent/parent.c), which is a child
 * of this process. If the program ends after this process, the postmaster
 * does not inherit it and cannot take it for a backend.
 *
 * Raises no error, takes no lock, and allocates no memory of the server.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SPAWNER_H
#define TACHO_SPAWNER_H

/* hint for the error that the parent cannot be started */
#define SPAWN_PARENT_HINT	"Install the extension again: tacho-parent belongs beside its library."

#define PIPE_READ	0
#define PIPE_WRITE	1

/*
 * Makes a pipe whose ends close in every program that is executed. On failure
 * both ends are -1 and errno is set.
 */
extern bool spawn_pipe(int ends[2]);

/* Closes an end unless it is -1, and sets it to -1. */
extern void spawn_close(int *end);

/* Most strings that `argv` may have, without the terminating NULL. */
#define SPAWN_MOST_ARGUMENTS	128

/*
 * A program and its parent. All fields zero and a control of -1 mean "no
 * program".
 */
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
 * error; an `in` of -1 is /dev/null. `kills` says whether spawn_let_go() and
 * the end of this process kill it.
 *
 * Returns NULL, or the path of the program that could not be started, with
 * errno set. That path may be the parent's. If the parent starts and the
 * program does not, spawn_ended() returns true with spawned->error set.
 */
extern const char *spawn_program(Spawned *spawned, const char *program,
								 char *const argv[], int in, int out, int err,
								 bool kills);

/* True when the program has ended or could not be started. Does not wait. */
extern bool spawn_ended(Spawned *spawned);

/* Closes the connection; the parent ends when the program has ended. */
extern void spawn_let_go(Spawned *spawned);

/*
 * Reaps the parent, and returns true if no process is left. If the program
 * that loaded this library ignores SIGCHLD, the exit status is lost; it then
 * counts as success.
 */
extern bool spawn_reap(Spawned *spawned);

#endif							/* TACHO_SPAWNER_H */
