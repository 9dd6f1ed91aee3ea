/*
 * parent.c
 *	  tacho-parent: the parent of a program that the server runs.
 *
 *	  tacho-parent kill|wait PROGRAM ARGUMENT...
 *
 * The postmaster is process 1 of many containers. As such it becomes the
 * parent of every process there that loses its own parent. It restarts the
 * whole server when an unknown child ends by a signal or with an exit code
 * other than 0 and 1. A program that a backend has started can become such a
 * child: the kernel keeps even a killed process while a disk does not answer,
 * and the backend may end in between.
 *
 * So the program is a child of this process. This process stays until the
 * program and all its descendants have ended, and then ends with exit code 0.
 * Only SIGKILL ends it earlier, and the server does not send that.
 *
 * The socket PARENT_CONTROL connects it to the backend. It reports the start
 * and the end of the program there. It reads only the end of the connection,
 * which comes however the backend ends. With "kill" it then kills the
 * program. With "wait" it continues a stopped program and waits until it ends
 * by itself.
 *
 * Memory: none is allocated. It uses only the system's libraries.
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

/*
 * Sends a report. The backend may have ended and read nothing; that is no
 * error.
 */
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
 * Blocks all signals; pselect() unblocks SIGCHLD. Makes this process the new
 * parent of the program's descendants that lose theirs.
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

/*
 * Starts the program in a process group of its own, with an empty signal
 * mask.
 */
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
 * Closes the pipes, so that only the program holds their other ends.
 * Overwrites the command line, so that a search for the program's command
 * line does not find this process.
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
 * Kills the children of this process that have left the program's group or
 * have lost their own parent.
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

/* Until the program is reaped, no other process group can get its number. */
static void
kill_all(void)
{
	if (program != 0)
		kill(-program, SIGKILL);
	kill_adopted();
}

/* Kills the processes that the program has left behind. */
static void
end_processes(void)
{
	if (program == 0 || (backend_ended && kills))
		kill_all();
	else if (backend_ended)
		kill(-program, SIGCONT);
}

/* Reaps the processes that have ended. Returns false if no child is left. */
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
