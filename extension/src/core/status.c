/*
 * status.c
 *	  Publishes and reads what the sampler tells about itself.
 *
 * Locking: TachoShared.mutex, held for one copy.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/shmem.h"
#include "core/status.h"

bool
tacho_status_available(void)
{
	return tacho_shared != NULL;
}

void
tacho_status_read(TachoStatus *copy)
{
	SpinLockAcquire(&tacho_shared->mutex);
	memcpy(copy, &tacho_shared->status, sizeof(*copy));
	SpinLockRelease(&tacho_shared->mutex);
}

void
status_publish(const TachoStatus *status)
{
	SpinLockAcquire(&tacho_shared->mutex);
	memcpy(&tacho_shared->status, status, sizeof(*status));
	SpinLockRelease(&tacho_shared->mutex);
}
