/*
 * child.c
 *	  Runs a program as a child of a backend and reads what it prints.
 *
 * The child is started by posix_spawn() with an argument vector, without a
 * shell: nothing of its arguments is ever interpreted. It gets /dev/null as
 * standard input, pipes as standard output and standard error, no other
 * descriptor where the system can close them, default signal dispositions, an
 * empty signal mask, a process group of its own (a Ctrl-C on the terminal of
 * a server in the foreground does not reach it) and an environment of two
 * variables.
 *
 * Locking: takes no lock. To be called without holding any.
 *
 * Memory: a Child lives in TopMemoryContext, because it is freed by a
 * callback of its resource owner, after the memory contexts of the query may
 * have gone. The StringInfo for standard error belongs to the caller and is
 * not touched by callbacks.
 *
 * A backend that is killed by SIGKILL or SIGQUIT runs no callback; the
 * program asks the kernel for a signal in that case (PR_SET_PDEATHSIG).
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "child.h"
#include "compat.h"

/* longest time between two looks at standard error and at interrupts */
#define CHILD_WAIT_MS		10

/* how long a killed child is waited for before it is left for later */
#define CHILD_KILL_WAIT_US	1000000L

#define READ_END	0
#define WRITE_END	1

#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
#define HAVE_SPAWN_CLOSEFROM 1
#endif
#endif

struct Child
{
	dlist_node	node;			/* in children */
	ResourceOwner owner;		/* NULL = nobody's any more */
	pid_t		pid;			/* 0 = not started or already reaped */
	int			status;			/* of waitpid(), once it was reaped */
	int			out;			/* read ends of the pipes, -1 = closed */
	int			err;
	int			external_fds;	/* descriptors reported to fd.c */
	StringInfo	errors;
};

/* all children of this process, also killed ones that did not die yet */
static dlist_head children = DLIST_STATIC_INIT(children);
static bool callbacks_registered = false;
static uint32 wait_event_reader = 0;

static void child_release(Child *child);

static void
close_pipe_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
child_close(Child *child)
{
	close_pipe_end(&child->out);
	close_pipe_end(&child->err);
	for (; child->external_fds > 0; child->external_fds--)
		ReleaseExternalFD();
}

/*
 * Reaps the child if it has ended. A status nobody can tell any more (the
 * process that loaded us ignores SIGCHLD) counts as success: the reader knows
 * by the end marker whether the output is complete.
 */
static bool
child_reap(Child *child)
{
	pid_t		result;

	if (child->pid == 0)
		return true;

	do
		result = waitpid(child->pid, &child->status, WNOHANG);
	while (result < 0 && errno == EINTR);

	if (result == 0)
		return false;
	if (result < 0)
		child->status = 0;
	child->pid = 0;
	return true;
}

/*
 * Kills and reaps. A process that hangs in the kernel cannot be waited for
 * without end: it stays in the list and is reaped by a later call.
 */
static bool
child_kill(Child *child)
{
	long		waited_us = 0;
	long		pause_us = 50;

	if (child_reap(child))
		return true;

	/* its process group, should it ever start something itself */
	kill(-child->pid, SIGKILL);
	kill(child->pid, SIGKILL);
	while (!child_reap(child))
	{
		if (waited_us > CHILD_KILL_WAIT_US)
			return false;
		pg_usleep(pause_us);
		waited_us += pause_us;
		pause_us = Min(pause_us * 2, 5000L);
	}
	return true;
}

static void
child_free(Child *child)
{
	dlist_delete(&child->node);
	pfree(child);
}

static void
child_release(Child *child)
{
	child->owner = NULL;
	child->errors = NULL;
	child_close(child);
	if (child_kill(child))
		child_free(child);
}

/* Reaps those that did not die when they were killed. */
static void
reap_leftovers(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &children)
	{
		Child	   *child = dlist_container(Child, node, iter.cur);

		if (child->owner == NULL && child_reap(child))
			child_free(child);
	}
}

static void
release_callback(ResourceReleasePhase phase, bool isCommit, bool isTopLevel,
				 void *arg)
{
	dlist_mutable_iter iter;

	if (phase != RESOURCE_RELEASE_BEFORE_LOCKS || dlist_is_empty(&children))
		return;

	dlist_foreach_modify(iter, &children)
	{
		Child	   *child = dlist_container(Child, node, iter.cur);

		if (child->owner == CurrentResourceOwner)
			child_release(child);
	}
}

static void
exit_callback(int code, Datum arg)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &children)
		child_release(dlist_container(Child, node, iter.cur));
}

static void
register_callbacks(void)
{
	if (callbacks_registered)
		return;
	before_shmem_exit(exit_callback, (Datum) 0);
	RegisterResourceReleaseCallback(release_callback, NULL);
	callbacks_registered = true;
}

static Child *
child_create(StringInfo errors)
{
	Child	   *child;

	child = MemoryContextAllocZero(TopMemoryContext, sizeof(Child));
	child->owner = CurrentResourceOwner;
	child->out = -1;
	child->err = -1;
	child->errors = errors;
	dlist_push_tail(&children, &child->node);

	while (child->external_fds < 2)
	{
		if (!AcquireExternalFD())
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("could not start a program: too many open files")));
		child->external_fds++;
	}
	return child;
}

/*
 * A pipe that no program started by this process inherits. Its read end does
 * not block. On failure both ends are -1 and errno is set.
 */
static bool
open_pipe(int ends[2])
{
	if (pipe(ends) < 0)
	{
		ends[READ_END] = ends[WRITE_END] = -1;
		return false;
	}
	if (fcntl(ends[READ_END], F_SETFD, FD_CLOEXEC) < 0 ||
		fcntl(ends[WRITE_END], F_SETFD, FD_CLOEXEC) < 0 ||
		fcntl(ends[READ_END], F_SETFL, O_NONBLOCK) < 0)
	{
		int			save_errno = errno;

		close_pipe_end(&ends[READ_END]);
		close_pipe_end(&ends[WRITE_END]);
		errno = save_errno;
		return false;
	}
	return true;
}

/* Environment of the child: no locale; where to find time zones, if told. */
static void
child_environment(char **environment)
{
	const char *tzdir = getenv("TZDIR");
	int			n = 0;

	environment[n++] = pstrdup("LC_ALL=C");
	if (tzdir != NULL)
		environment[n++] = psprintf("TZDIR=%s", tzdir);
	environment[n] = NULL;
}

static int
init_actions(posix_spawn_file_actions_t *actions, int out, int err)
{
	int			rc = posix_spawn_file_actions_init(actions);

	if (rc != 0)
		return rc;
	rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null",
										  O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO);
#ifdef HAVE_SPAWN_CLOSEFROM
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions,
													  STDERR_FILENO + 1);
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

/* posix_spawn() with all trimmings; 0 or an error number. */
static int
spawn(pid_t *pid, const char *program, char *const argv[], int out, int err)
{
	char	   *environment[3];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int			rc;

	child_environment(environment);
	rc = init_actions(&actions, out, err);
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

Child *
child_start(const char *program, char *const argv[], StringInfo errors)
{
	Child	   *child;
	int			out[2] = {-1, -1};
	int			err[2] = {-1, -1};
	int			rc;

	reap_leftovers();
	register_callbacks();
	/* may raise an error, so before anything is opened */
	compat_wait_event(&wait_event_reader, "TachoReader");
	child = child_create(errors);

	if (open_pipe(out) && open_pipe(err))
		rc = spawn(&child->pid, program, argv, out[WRITE_END],
				   err[WRITE_END]);
	else
		rc = errno;

	close_pipe_end(&out[WRITE_END]);
	close_pipe_end(&err[WRITE_END]);
	child->out = out[READ_END];
	child->err = err[READ_END];
	if (rc != 0)
	{
		child->pid = 0;
		child_release(child);
		errno = rc;
		return NULL;
	}
	return child;
}

/*
 * Takes what there is on standard error, without waiting. A child that never
 * stops writing must not keep us here.
 */
static void
drain_errors(Child *child)
{
	char		buffer[4096];

	for (int i = 0; i < 16 && child->err >= 0; i++)
	{
		ssize_t		n = read(child->err, buffer, sizeof(buffer));
		int			space = CHILD_ERRORS_LIMIT - child->errors->len;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0)
			close_pipe_end(&child->err);
		else
			appendBinaryStringInfo(child->errors, buffer, Min(n, space));
	}
}

static void
wait_for(int fd, int events, long timeout_ms)
{
	int			rc;

	rc = WaitLatchOrSocket(MyLatch,
						   events | WL_LATCH_SET | WL_TIMEOUT |
						   WL_EXIT_ON_PM_DEATH,
						   fd < 0 ? PGINVALID_SOCKET : fd, timeout_ms,
						   wait_event_reader);
	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

int
child_read(Child *child, char *buffer, int size)
{
	for (;;)
	{
		ssize_t		n;

		CHECK_FOR_INTERRUPTS();
		drain_errors(child);
		n = read(child->out, buffer, size);
		if (n >= 0)
			return (int) n;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read the output of a program: %m")));
		wait_for(child->out, WL_SOCKET_READABLE, CHILD_WAIT_MS);
	}
}

/*
 * A process closes its descriptors a moment before it can be reaped. The
 * first looks come in quick succession, so that this moment costs no more
 * than it lasts.
 */
int
child_finish(Child *child)
{
	int			status;

	for (drain_errors(child); child->err >= 0; drain_errors(child))
		wait_for(child->err, WL_SOCKET_READABLE, CHILD_WAIT_MS);

	for (int i = 0; !child_reap(child); i++)
	{
		if (i < 40)
			pg_usleep(25L);
		else
			wait_for(-1, 0, 1);
		CHECK_FOR_INTERRUPTS();
	}
	status = child->status;
	child_close(child);
	child_free(child);
	return status;
}

void
child_stop(Child *child)
{
	child_release(child);
}
