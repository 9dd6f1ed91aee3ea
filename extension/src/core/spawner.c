/*
 * spawner.c
 *	  Starts the tacho program, for the writer and for readers.
 *
 * Locking: none. Memory: static and on the stack.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/parent.h"
#include "core/spawner.h"

/* most descriptors to close if open ones cannot be listed */
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

/* Closes both ends; errno stays. */
static void
close_ends(int ends[2])
{
	int			save_errno = errno;

	spawn_close(&ends[PIPE_READ]);
	spawn_close(&ends[PIPE_WRITE]);
	errno = save_errno;
}

/*
 * Takes the result of pipe() or socketpair() and marks both ends
 * close-on-exec.
 */
static bool
keep_ends(int ends[2], int result)
{
	if (result < 0)
	{
		ends[PIPE_READ] = ends[PIPE_WRITE] = -1;
		return false;
	}
	if (fcntl(ends[PIPE_READ], F_SETFD, FD_CLOEXEC) >= 0 &&
		fcntl(ends[PIPE_WRITE], F_SETFD, FD_CLOEXEC) >= 0)
		return true;
	close_ends(ends);
	return false;
}

bool
spawn_pipe(int ends[2])
{
	return keep_ends(ends, pipe(ends));
}

/*
 * Makes the connection to a parent. Our end does not block. The other end
 * gets a number above the descriptors that the parent is started with, so
 * that setting these up does not overwrite it.
 */
static bool
make_control(int ends[2])
{
	int			moved;

	if (!keep_ends(ends, socketpair(AF_UNIX, SOCK_STREAM, 0, ends)))
		return false;
	moved = fcntl(ends[PIPE_WRITE], F_DUPFD_CLOEXEC, PARENT_CONTROL + 1);
	if (moved >= 0 && fcntl(ends[PIPE_READ], F_SETFL, O_NONBLOCK) >= 0)
	{
		close(ends[PIPE_WRITE]);
		ends[PIPE_WRITE] = moved;
		return true;
	}
	spawn_close(&moved);
	close_ends(ends);
	return false;
}

#ifndef HAVE_SPAWN_CLOSEFROM
/*
 * Marks all descriptors close-on-exec, where the C library cannot close them
 * in the new program. Programs that the server starts from this process do
 * not get them either, and need none.
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

/* The environment: LC_ALL=C, and TZDIR (where time zones are) if it is set. */
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
init_actions(posix_spawn_file_actions_t *actions, int in, int out, int err,
			 int control)
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
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, control,
											  PARENT_CONTROL);
#ifdef HAVE_SPAWN_CLOSEFROM
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions,
													  PARENT_CONTROL + 1);
#else
	close_others_on_exec();
#endif
	if (rc != 0)
		posix_spawn_file_actions_destroy(actions);
	return rc;
}

/*
 * exec() resets signals that have a handler, but keeps ignored signals
 * ignored. `ignored` lists the signals that a server process may ignore; the
 * parent starts with their default actions. All signals are blocked in the
 * parent.
 */
static int
init_attributes(posix_spawnattr_t *attributes)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2,
		SIGCHLD, SIGFPE, SIGTTIN, SIGTTOU, SIGURG, SIGXFSZ
	};
	sigset_t	defaults;
	sigset_t	all;
	int			rc = posix_spawnattr_init(attributes);

	if (rc != 0)
		return rc;
	sigfillset(&all);
	sigemptyset(&defaults);
	for (size_t i = 0; i < lengthof(ignored); i++)
		sigaddset(&defaults, ignored[i]);

	rc = posix_spawnattr_setsigmask(attributes, &all);
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

/*
 * Path of the parent, which is installed beside this library. The library may
 * have been loaded through a symbolic link (docs/drop-in.md).
 */
static const char *
parent_path(void)
{
	static char path[MAXPGPATH] = PARENT_PROGRAM;
	Dl_info		library;
	char	   *real;

	if (path[0] == '/' || dladdr(parent_path, &library) == 0)
		return path;
	real = realpath(library.dli_fname, NULL);
	if (real == NULL)
		return path;
	strlcpy(path, real, sizeof(path));
	free(real);
	get_parent_directory(path);
	join_path_components(path, path, PARENT_PROGRAM);
	return path;
}

/* Runs the parent with this argument vector; returns 0 or an error number. */
static int
spawn_parent(pid_t *pid, char *const argv[], int in, int out, int err,
			 int control)
{
	char	   *environment[3];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int			rc;

	fill_environment(environment);
	rc = init_actions(&actions, in, out, err, control);
	if (rc != 0)
		return rc;
	rc = init_attributes(&attributes);
	if (rc == 0)
	{
		rc = posix_spawn(pid, parent_path(), &actions, &attributes, argv,
						 environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/*
 * The parent's arguments: how it ends, the path and arguments of the program.
 */
static bool
parent_arguments(char *vector[], const char *program, char *const argv[],
				 bool kills)
{
	int			n = 0;

	vector[n++] = PARENT_PROGRAM;
	vector[n++] = kills ? PARENT_KILLS : PARENT_WAITS;
	vector[n++] = unconstify(char *, program);
	for (int i = 0; argv[i] != NULL; i++)
	{
		if (i >= SPAWN_MOST_ARGUMENTS)
			return false;
		vector[n++] = argv[i];
	}
	vector[n] = NULL;
	return true;
}

const char *
spawn_program(Spawned *spawned, const char *program, char *const argv[],
			  int in, int out, int err, bool kills)
{
	char	   *vector[SPAWN_MOST_ARGUMENTS + 4];
	int			control[2];
	int			rc;

	memset(spawned, 0, sizeof(*spawned));
	spawned->control = -1;
	if (!parent_arguments(vector, program, argv, kills))
	{
		errno = E2BIG;
		return program;
	}
	if (!make_control(control))
		return program;
	rc = spawn_parent(&spawned->parent, vector, in, out, err,
					  control[PIPE_WRITE]);
	spawn_close(&control[PIPE_WRITE]);
	if (rc == 0)
	{
		spawned->control = control[PIPE_READ];
		return NULL;
	}
	spawned->parent = 0;
	spawn_close(&control[PIPE_READ]);
	errno = rc;
	return rc == E2BIG ? program : parent_path();
}

static void
take_report(Spawned *spawned, const ParentReport *report)
{
	if (report->event == PARENT_STARTED)
		spawned->program = report->value;
	else
	{
		spawned->ended = true;
		if (report->event == PARENT_FAILED)
			spawned->error = report->value;
		else
			spawned->status = report->value;
	}
}

/* A killed parent closes the connection without a report. */
bool
spawn_ended(Spawned *spawned)
{
	while (!spawned->ended && spawned->control >= 0)
	{
		ParentReport report;
		ssize_t		n = read(spawned->control, &report, sizeof(report));

		if (n == sizeof(report))
			take_report(spawned, &report);
		else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		else if (n >= 0 || errno != EINTR)
			spawn_close(&spawned->control);
	}
	return spawned->ended || spawn_reap(spawned);
}

void
spawn_let_go(Spawned *spawned)
{
	spawn_close(&spawned->control);
}

bool
spawn_reap(Spawned *spawned)
{
	int			status;
	pid_t		result;

	if (spawned->parent == 0)
		return true;
	do
		result = waitpid(spawned->parent, &status, WNOHANG);
	while (result < 0 && errno == EINTR);

	if (result == 0)
		return false;
	if (!spawned->ended)
		spawned->status = result < 0 ? 0 : status;
	spawned->ended = true;
	spawned->parent = 0;
	return true;
}
