/*
 * held.h
 *	  The counters of held interrupts, saved around a swallowed error.
 *
 * An error sets the server's counters of held interrupts to zero, because the
 * server expects a handler that ends the transaction. Code that swallows the
 * error continues inside the callers that hold interrupts. So each PG_TRY of
 * ours that swallows errors saves the counters before, and restores them
 * first in PG_CATCH. Otherwise the next RESUME_INTERRUPTS() makes a counter
 * wrap around, and the process can be neither cancelled nor ended.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HELD_H
#define TACHO_HELD_H

#include "miscadmin.h"

typedef struct Held
{
	uint32		interrupts;
	uint32		cancels;
} Held;

static inline Held
held_now(void)
{
	Held		held = {InterruptHoldoffCount, QueryCancelHoldoffCount};

	return held;
}

static inline void
held_restore(Held held)
{
	InterruptHoldoffCount = held.interrupts;
	QueryCancelHoldoffCount = held.cancels;
}

#endif							/* TACHO_HELD_H */
