/*
 * spawner.h
 *	  Starts the tacho program: one way for the writer and for readers.
 *
 * The program gets an argument vector, so that no shell interprets anything,
 * three descriptors and no other one, default signal dispositions, an empty
 * signal mask, a process group of its own (signals to the server's processes
 * do not reach it), and an environment of two variables.
 *
 * Raises no error, takes no lock and allocates nothing of the server's.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SPAWNER_H
#define TACHO_SPAWNER_H

#define PIPE_READ	0
#define PIPE_WRITE	1

/*
 * A pipe that no program inherits as such. On failure both ends are -1 and
 * errno is set.
 */
extern bool spawn_pipe(int ends[2]);

/* Closes an end unless it is -1, which it is then. */
extern void spawn_close(int *end);

/*
 * Starts a program with these descriptors as its standard input, output and
 * error; `in` of -1 is /dev/null. Returns 0 or an error number.
 */
extern int	spawn_program(pid_t *pid, const char *program, char *const argv[],
						  int in, int out, int err);

#endif							/* TACHO_SPAWNER_H */
