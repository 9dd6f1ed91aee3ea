/*
 * slot_area.c
 *	  Shared memory with a place for each process of the server.
 *
 * Locking: AddinShmemInitLock while an area is made or found.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "core/slot_area.h"

static Size
area_size(Size place)
{
	return mul_size(place, compat_status_slots());
}

void
slot_area_request(Size place)
{
	RequestAddinShmemSpace(area_size(place));
}

void *
slot_area_startup(const char *name, Size place, void (*init) (void *place))
{
	bool		found;
	char	   *area;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	area = ShmemInitStruct(name, area_size(place), &found);
	for (int slot = 0; !found && slot < compat_status_slots(); slot++)
		init(area + slot * place);
	LWLockRelease(AddinShmemInitLock);
	return area;
}
