/*
 * parent.c
 *	  tacho-parent: the parent of a program that the server runs.
 *
 *	  tacho-parent kill|wait PROGRAM ARGUMENT...
 *
 * The postmaster is the first process of many containers. It becomes the
 * parent of every process there that loses its own, and it restarts the whole
 * server when an unknown child ends by a signal or with an exit code other
 * than 0 and 1. A program that a backend has started can do that: the kernel
 * keeps even a killed process for as long as a disk does not answer, and the
 * backend may end meanwhile.
 *
 * So the program is a child of this process, which stays until the program
 * and all that the program has started have ended, and then ends with exit
 * code 0. No signal but SIGKILL ends it, and the server sends it none.
 *
 * The socket PARENT_CONTROL connects it to the backend. It reports there when
 * the program has started and ended. It reads nothing but the end of the
 * connection, which comes whatever ends the backend: "kill" then kills the
 * program, "wait" lets a stopped one go on and waits until it ends by itself.
 *
 * Memory: none is allocated. No library but the system's is used.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "core/parent.h"

extern char **environ;

static pid_t program = 0;		/* 0 = not started, or reaped */
static bool kills;
static bool backend_ended = false;

/* The backend may have ended: then nobody reads it. */
static void
report(ParentEvent event, int value)
{
	ParentReport message = {event, value};
	ssize_t		written;

	do
		written = write(PARENT_CONTROL, &message, sizeof(message));
	while (written < 0 && errno == EINTR);
}

static void
on_child(int signal_number)
{
	(void) signal_number;
}

/*
 * All signals are blocked, SIGCHLD but for pselect(). What the program starts
 * becomes a child of this process when it loses its parent.
 */
static void
prepare(void)
{
	struct sigaction action;
	sigset_t	all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_child;
	sigaction(SIGCHLD, &action, NULL);
#ifdef PR_SET_CHILD_SUBREAPER
	prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
	fcntl(PARENT_CONTROL, F_SETFD, FD_CLOEXEC);
}

/* The program gets a process group of its own and an empty signal mask. */
static int
start_program(char **command)
{
	posix_spawnattr_t attributes;
	sigset_t	none;
	int			rc = posix_spawnattr_init(&attributes);

	if (rc != 0)
		return rc;
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes,
							 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(&program, command[0], NULL, &attributes, command + 1,
					 environ);
	posix_spawnattr_destroy(&attributes);
	if (rc != 0)
		program = 0;
	return rc;
}

/*
 * The program has the other ends of its pipes for itself, and its command
 * line: who looks for it by that must not find this process.
 */
static void
let_go(int argc, char **argv)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	for (int i = 1; i < argc; i++)
		memset(argv[i], 0, strlen(argv[i]));
}

/*
 * Kills those children of this process that have left the group of the
 * program, or whose parent has ended.
 */
static void
kill_adopted(void)
{
	char		list[4096];
	char	   *at = list;
	char	   *end;
	long		pid;
	ssize_t		length;
	int			fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	length = read(fd, list, sizeof(list) - 1);
	close(fd);
	list[length > 0 ? length : 0] = '\0';
	while ((pid = strtol(at, &end, 10)) > 0)
	{
		kill((pid_t) pid, SIGKILL);
		at = end;
	}
}

/* The number of the group cannot be another's before the program is reaped. */
static void
kill_all(void)
{
	if (program != 0)
		kill(-program, SIGKILL);
	kill_adopted();
}

/* What the program leaves behind is killed. */
static void
end_processes(void)
{
	if (program == 0 || (backend_ended && kills))
		kill_all();
	else if (backend_ended)
		kill(-program, SIGCONT);
}

/* Reaps the processes that have ended. False = there is no other. */
static bool
reap(void)
{
	int			status;
	pid_t		pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
	{
		if (pid != program)
			continue;
		program = 0;
		report(PARENT_ENDED, status);
	}
	return pid == 0;
}

/* Waits for the end of a child or of the backend. */
static void
wait_for_end(void)
{
	sigset_t	mask;
	fd_set		control;
	char		byte;

	sigfillset(&mask);
	sigdelset(&mask, SIGCHLD);
	FD_ZERO(&control);
	if (!backend_ended)
		FD_SET(PARENT_CONTROL, &control);
	if (pselect(PARENT_CONTROL + 1, &control, NULL, NULL, NULL, &mask) > 0)
		backend_ended = read(PARENT_CONTROL, &byte, 1) <= 0;
}

int
main(int argc, char **argv)
{
	int			rc;

	if (argc < 4)
	{
		fputs("tacho-parent: only the extension tacho of a server uses it\n",
			  stderr);
		return 1;
	}
	kills = strcmp(argv[1], PARENT_KILLS) == 0;
	prepare();
	rc = start_program(argv + 2);
	if (rc == 0)
		report(PARENT_STARTED, program);
	else
		report(PARENT_FAILED, rc);
	let_go(argc, argv);
	while (reap())
	{
		end_processes();
		wait_for_end();
	}
	return 0;
}
