/*
 * shmem.c
 *	  Requests and attaches the shared memory of the extension.
 *
 * Locking: the postmaster makes the memory once under AddinShmemInitLock.
 * With EXEC_BACKEND the startup hook runs again in each process and finds the
 * memory made.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "core/hot.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "core/tacho.h"

HOT_DATA TachoShared *tacho_shared = NULL;
LWLock	   *tacho_ring_lock = NULL;

/*
 * the postmaster only: identity of the file that it loaded; after a crash
 * shared memory is made again, when an upgrade may have replaced the file
 */
static LibraryFile loaded;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void
shmem_request(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(TachoShared)));
	RequestNamedLWLockTranche(TACHO_PREFIX, 1);
}

/*
 * True if the control file says that the server was not shut down. It says so
 * after a base backup too, but then there is a backup_label.
 */
static bool
was_not_shut_down(void)
{
	struct stat status;
	bool		valid;
	ControlFileData *control = get_controlfile(DataDir, &valid);
	bool		clean = !valid || control->state == DB_SHUTDOWNED ||
		control->state == DB_SHUTDOWNED_IN_RECOVERY;

	pfree(control);
	return !clean && stat(BACKUP_LABEL_FILE, &status) != 0;
}

static void
shmem_make(TachoShared *shared)
{
	memset(shared, 0, sizeof(*shared));
	pg_atomic_init_u64(&shared->status_number, 0);
	shared->ring_lock = &GetNamedLWLockTranche(TACHO_PREFIX)->lock;
	strlcpy(shared->status[0].reason,
			settings_refusal() ? settings_refusal() :
			"the sampler has not started (check \"max_worker_processes\")", STATUS_TEXT_SIZE);
	shared->after_crash = was_not_shut_down();
	shared->library = loaded;
	pg_atomic_init_u64(&shared->worker_starts, 0);
	pg_atomic_init_u64(&shared->logins_failed, 0);
	pg_atomic_init_u64(&shared->logins_refused, 0);
	pg_atomic_init_u32(&shared->readers_running, 0);
	pg_atomic_init_u32(&shared->texts_wanted, 0);
	pg_atomic_init_u32(&shared->texts_generation, 1);
	pg_atomic_init_u64(&shared->texts_dropped, 0);
	pg_atomic_init_u64(&shared->ring_head, 0);
	pg_atomic_init_u64(&shared->ring_tail, 0);
	for (int i = 0; i < TEXT_ACCOUNTS; i++)
	{
		pg_atomic_init_u32(&shared->ring_used[i], 0);
		for (int kind = 0; kind < TEXT_KINDS; kind++)
			pg_atomic_init_u32(&shared->share_used[kind][i], 0);
	}
	pg_atomic_init_u64(&shared->trees_taken, 0);
	for (int i = 0; i < TREE_DATABASES; i++)
		pg_atomic_init_u64(&shared->trees_taken_in[i], 0);
	for (int i = 0; i < TREES_LEFT_OUT; i++)
		pg_atomic_init_u64(&shared->trees_left_out[i], 0);
	pg_atomic_init_u32(&shared->trees_left_out_changes, 0);
	for (int i = 0; i < MEASURED_PLANS; i++)
	{
		pg_atomic_init_u64(&shared->measured[i].key, 0);
		pg_atomic_init_u64(&shared->measured[i].due, 0);
	}
	for (int i = 0; i < SLOW_PLANS / 32; i++)
		pg_atomic_init_u32(&shared->slow_plans[i], 0);
	for (int i = 0; i < SLOW_QUERIES; i++)
		pg_atomic_init_u64(&shared->slow[i], 0);
	for (int i = 0; i < KNOWN_TEXTS; i++)
		pg_atomic_init_u64(&shared->known[i], 0);
}

static void
shmem_attach(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	tacho_shared = ShmemInitStruct(TACHO_PREFIX, sizeof(TachoShared), &found);
	if (!found)
		shmem_make(tacho_shared);
	tacho_ring_lock = tacho_shared->ring_lock;
	LWLockRelease(AddinShmemInitLock);
}

void
shmem_init(void)
{
	loaded = library_file();
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_attach;
}
