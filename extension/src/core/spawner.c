/*
 * spawner.c
 *	  Starts the tacho program: one way for the writer and for readers.
 *
 * Locking: none. Memory: static and on the stack.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/spawner.h"

/* where open descriptors cannot be listed, no more than these are closed */
#define MAX_DESCRIPTORS	65536

#if defined(__GLIBC_PREREQ) && !defined(TACHO_WITHOUT_CLOSEFROM)
#if __GLIBC_PREREQ(2, 34)
#define HAVE_SPAWN_CLOSEFROM 1
#endif
#endif

void
spawn_close(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

bool
spawn_pipe(int ends[2])
{
	int			save_errno;

	if (pipe(ends) < 0)
	{
		ends[PIPE_READ] = ends[PIPE_WRITE] = -1;
		return false;
	}
	if (fcntl(ends[PIPE_READ], F_SETFD, FD_CLOEXEC) >= 0 &&
		fcntl(ends[PIPE_WRITE], F_SETFD, FD_CLOEXEC) >= 0)
		return true;
	save_errno = errno;
	spawn_close(&ends[PIPE_READ]);
	spawn_close(&ends[PIPE_WRITE]);
	errno = save_errno;
	return false;
}

#ifndef HAVE_SPAWN_CLOSEFROM
/*
 * The system cannot close all descriptors of a program that it starts: they
 * are marked here. Programs that the server itself starts from this process
 * do not get them either, and need none.
 */
static void
close_others_on_exec(void)
{
	DIR		   *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	struct rlimit limit;
	int			count = MAX_DESCRIPTORS;

	if (directory != NULL)
	{
		while ((entry = readdir(directory)) != NULL)
			if (atoi(entry->d_name) > STDERR_FILENO)
				(void) fcntl(atoi(entry->d_name), F_SETFD, FD_CLOEXEC);
		closedir(directory);
		return;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count)
		count = (int) limit.rlim_cur;
	for (int i = STDERR_FILENO + 1; i < count; i++)
		(void) fcntl(i, F_SETFD, FD_CLOEXEC);
}
#endif

/* No locale; where to find time zones, if told. */
static void
fill_environment(char *environment[3])
{
	static char zones[MAXPGPATH + 8];
	const char *tzdir = getenv("TZDIR");
	int			n = 0;

	environment[n++] = "LC_ALL=C";
	if (tzdir != NULL && strlen(tzdir) < MAXPGPATH)
	{
		snprintf(zones, sizeof(zones), "TZDIR=%s", tzdir);
		environment[n++] = zones;
	}
	environment[n] = NULL;
}

static int
init_actions(posix_spawn_file_actions_t *actions, int in, int out, int err)
{
	int			rc = posix_spawn_file_actions_init(actions);

	if (rc != 0)
		return rc;
	if (in >= 0)
		rc = posix_spawn_file_actions_adddup2(actions, in, STDIN_FILENO);
	else
		rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO,
											  "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO);
#ifdef HAVE_SPAWN_CLOSEFROM
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions,
													  STDERR_FILENO + 1);
#else
	close_others_on_exec();
#endif
	if (rc != 0)
		posix_spawn_file_actions_destroy(actions);
	return rc;
}

/*
 * A handled signal becomes the default by itself when a program is executed;
 * these are the ones a server process may ignore.
 */
static int
init_attributes(posix_spawnattr_t *attributes)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2,
		SIGCHLD, SIGFPE, SIGTTIN, SIGTTOU, SIGURG, SIGXFSZ
	};
	sigset_t	defaults;
	sigset_t	none;
	int			rc = posix_spawnattr_init(attributes);

	if (rc != 0)
		return rc;
	sigemptyset(&none);
	sigemptyset(&defaults);
	for (size_t i = 0; i < lengthof(ignored); i++)
		sigaddset(&defaults, ignored[i]);

	rc = posix_spawnattr_setsigmask(attributes, &none);
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(attributes, &defaults);
	if (rc == 0)
		rc = posix_spawnattr_setpgroup(attributes, 0);
	if (rc == 0)
		rc = posix_spawnattr_setflags(attributes,
									  POSIX_SPAWN_SETSIGMASK |
									  POSIX_SPAWN_SETSIGDEF |
									  POSIX_SPAWN_SETPGROUP);
	if (rc != 0)
		posix_spawnattr_destroy(attributes);
	return rc;
}

int
spawn_program(pid_t *pid, const char *program, char *const argv[], int in,
			  int out, int err)
{
	char	   *environment[3];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int			rc;

	fill_environment(environment);
	rc = init_actions(&actions, in, out, err);
	if (rc != 0)
		return rc;
	rc = init_attributes(&attributes);
	if (rc == 0)
	{
		rc = posix_spawn(pid, program, &actions, &attributes, argv,
						 environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}
