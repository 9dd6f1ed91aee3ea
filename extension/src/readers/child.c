/*
 * child.c
 *	  Runs a program as a child of a backend and reads its output.
 *
 * spawner.c starts the child, with /dev/null as standard input and pipes as
 * standard output and standard error.
 *
 * Locking: takes no lock, and must be called without holding one.
 *
 * Memory: a Child lives in TopMemoryContext, because a callback of its
 * resource owner frees it, possibly after the memory contexts of the query
 * are gone. The StringInfo for standard error belongs to the caller;
 * callbacks do not touch it.
 *
 * A backend killed by SIGKILL or SIGQUIT runs no callback. But the connection
 * to the child's parent closes, and the parent then kills the child.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "core/compat.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "core/spawner.h"
#include "readers/child.h"

/* longest time without reading standard error and checking interrupts */
#define CHILD_WAIT_MS		10

/* two pipes and the connection to the parent */
#define CHILD_DESCRIPTORS	3

/* longest wait for a killed child; a later call reaps it then */
#define CHILD_KILL_WAIT_US	1000000L

struct Child
{
	dlist_node	node;			/* in `children` */
	ResourceOwner owner;		/* NULL = released */
	Spawned		spawned;
	int			out;			/* read ends of the pipes, -1 = closed */
	int			err;
	int			external_fds;	/* descriptors reported to fd.c */
	bool		counted;		/* in tacho_shared->readers_running */
	StringInfo	errors;
};

/* all children of this process, including killed ones that have not ended */
static dlist_head children = DLIST_STATIC_INIT(children);
static bool callbacks_registered = false;
static uint32 wait_event_reader = 0;

static void child_release(Child *child);

/* Counts a child; false if tacho.max_readers already run in the server. */
static bool
count_child(Child *child)
{
	uint32		running = pg_atomic_read_u32(&tacho_shared->readers_running);

	while (running < (uint32) tacho_max_readers && !child->counted)
		child->counted =
			pg_atomic_compare_exchange_u32(&tacho_shared->readers_running,
										   &running, running + 1);
	return child->counted;
}

/*
 * Closes the pipes of a child and takes it out of the count for
 * tacho.max_readers, even if it does not end at once.
 */
static void
child_close(Child *child)
{
	if (child->counted)
		pg_atomic_fetch_sub_u32(&tacho_shared->readers_running, 1);
	child->counted = false;
	spawn_let_go(&child->spawned);
	spawn_close(&child->out);
	spawn_close(&child->err);
	for (; child->external_fds > 0; child->external_fds--)
		ReleaseExternalFD();
}

/*
 * Waits for a child that was let go, which its parent kills. A process that
 * hangs in the kernel may never end, so the wait is limited. Returns false if
 * the child has not ended. It then stays in `children`, and a later call reaps
 * it; after the end of this backend the operating system does.
 */
static bool
child_wait(Child *child)
{
	long		waited_us = 0;
	long		pause_us = 50;

	while (!spawn_reap(&child->spawned))
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
	if (child_wait(child))
		child_free(child);
}

/*
 * Reaps children that have ended: released children, and children whose end
 * was already noticed.
 */
static void
reap_leftovers(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &children)
	{
		Child	   *child = dlist_container(Child, node, iter.cur);

		if ((child->owner == NULL || child->spawned.ended) &&
			spawn_reap(&child->spawned))
		{
			child_close(child);
			child_free(child);
		}
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
	child->spawned.control = -1;
	child->errors = errors;
	dlist_push_tail(&children, &child->node);

	while (child->external_fds < CHILD_DESCRIPTORS)
	{
		if (!AcquireExternalFD())
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("could not start a program: too many open files")));
		child->external_fds++;
	}
	return child;
}

/* Makes a pipe; our read end does not block. */
static bool
open_pipe(int ends[2])
{
	return spawn_pipe(ends) &&
		fcntl(ends[PIPE_READ], F_SETFL, O_NONBLOCK) >= 0;
}

Child *
child_start(const char *program, char *const argv[], StringInfo errors,
			const char **failed)
{
	Child	   *child;
	int			out[2] = {-1, -1};
	int			err[2] = {-1, -1};
	int			error;

	reap_leftovers();
	register_callbacks();
	/* may raise an error, so it comes before anything is opened */
	compat_wait_event(&wait_event_reader, "TachoReader");
	child = child_create(errors);
	if (!count_child(child))
	{
		child_release(child);
		*failed = NULL;
		return NULL;
	}

	if (open_pipe(out) && open_pipe(err))
		*failed = spawn_program(&child->spawned, program, argv, -1,
								out[PIPE_WRITE], err[PIPE_WRITE], true);
	else
		*failed = program;
	error = *failed != NULL ? errno : 0;

	spawn_close(&out[PIPE_WRITE]);
	spawn_close(&err[PIPE_WRITE]);
	child->out = out[PIPE_READ];
	child->err = err[PIPE_READ];
	if (error != 0)
	{
		child_release(child);
		errno = error;
		return NULL;
	}
	return child;
}

/*
 * Reads standard error without waiting. The number of reads is limited: a
 * child that never stops writing must not keep the backend here.
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
			spawn_close(&child->err);
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
 * first checks follow each other quickly, so that this moment costs no more
 * than it lasts. The parent is reaped later, at the end of the query.
 */
int
child_finish(Child *child, int *error)
{
	for (drain_errors(child); child->err >= 0; drain_errors(child))
		wait_for(child->err, WL_SOCKET_READABLE, CHILD_WAIT_MS);

	for (int i = 0; !spawn_ended(&child->spawned); i++)
	{
		if (i < 40)
			pg_usleep(25L);
		else
			wait_for(-1, 0, 1);
		CHECK_FOR_INTERRUPTS();
	}
	child_close(child);
	child->errors = NULL;
	*error = child->spawned.error;
	return child->spawned.status;
}

void
child_stop(Child *child)
{
	child_release(child);
}
