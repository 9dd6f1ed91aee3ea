/*
 * slot_area.h
 *	  Shared memory with a place for each process of the server.
 *
 * A place belongs to the slot of a process (compat.h). The process writes it
 * without a lock, and the sampler reads it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SLOT_AREA_H
#define TACHO_SLOT_AREA_H

#include "core/compat.h"

/* Asks for the memory of an area, in the hook for that. */
extern void slot_area_request(Size place);

/*
 * Returns the first place of the area `name`. If the area is new, calls `init`
 * with each place. Called in the hook for the startup of shared memory.
 */
extern void *slot_area_startup(const char *name, Size place,
							   void (*init) (void *place));

/* True if an area has a place for the slot. */
static inline bool
slot_area_has(int slot)
{
	return slot >= 0 && slot < compat_status_slots();
}

#endif							/* TACHO_SLOT_AREA_H */
