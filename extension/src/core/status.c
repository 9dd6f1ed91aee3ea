/*
 * status.c
 *	  Publishes and reads the sampler's status.
 *
 * Locking: none. There are two copies. The sampler writes the copy that is
 * out of date, then makes it the valid one. So no process waits for another
 * that the operating system has stopped. A reader that was overtaken tries
 * again.
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
	uint64		number;

	do
	{
		number = pg_atomic_read_u64(&tacho_shared->status_number);
		pg_read_barrier();
		memcpy(copy, &tacho_shared->status[number & 1], sizeof(*copy));
		pg_read_barrier();
	} while (pg_atomic_read_u64(&tacho_shared->status_number) != number);
}

void
status_publish(const TachoStatus *status)
{
	uint64		number = pg_atomic_read_u64(&tacho_shared->status_number) + 1;

	memcpy(&tacho_shared->status[number & 1], status, sizeof(*status));
	pg_write_barrier();
	pg_atomic_write_u64(&tacho_shared->status_number, number);
	/* the other copy must not change before readers know */
	pg_write_barrier();
}
