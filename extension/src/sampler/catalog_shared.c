/*
 * catalog_shared.c
 *	  The request of the sampler to the catalog worker, and the worker's answer.
 *
 * Locking: see the header. Memory: 0.7 MB of shared memory, which no process
 * touches while tacho.catalog_interval is 0.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "sampler/catalog_shared.h"

CatalogShared *catalog_shared = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

static void
on_request(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(sizeof(CatalogShared));
}

static void
on_startup(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	catalog_shared = ShmemInitStruct("tacho catalog", sizeof(CatalogShared), &found);
	if (!found)
		pg_atomic_init_u64(&catalog_shared->phase, CATALOG_IDLE);
	LWLockRelease(AddinShmemInitLock);
}

void
catalog_shared_init(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = on_request;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = on_startup;
}

static inline uint64
phase_value(uint32 number, CatalogPhase phase)
{
	return (uint64) number * 4 + phase;
}

CatalogPhase
catalog_phase(void)
{
	CatalogPhase phase = pg_atomic_read_u64(&catalog_shared->phase) % 4;

	pg_read_barrier();
	return phase;
}

uint32
catalog_number(void)
{
	return pg_atomic_read_u64(&catalog_shared->phase) / 4;
}

/* The compare-and-swap is a full barrier. */
bool
catalog_move(uint32 number, CatalogPhase from, CatalogPhase to)
{
	uint64		expected = phase_value(number, from);

	return pg_atomic_compare_exchange_u64(&catalog_shared->phase, &expected,
										  phase_value(number, to));
}

void
catalog_request(uint32 number)
{
	pg_write_barrier();
	pg_atomic_write_u64(&catalog_shared->phase, phase_value(number, CATALOG_REQUESTED));
}

bool
catalog_database_is_free(Oid database)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	LockRelease(&tag, RowExclusiveLock, false);
	return true;
}
