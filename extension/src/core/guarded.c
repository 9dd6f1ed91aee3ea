/*
 * guarded.c
 *	  Steps of the sampler that may raise an error.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/guarded.h"
#include "core/held.h"

bool
guarded_run(void (*step) (void))
{
	MemoryContext context = CurrentMemoryContext;
	const Held	held = held_now();
	volatile bool done = false;

	PG_TRY();
	{
		StartTransactionCommand();
		step();
		CommitTransactionCommand();
		done = true;
	}
	PG_CATCH();
	{
		held_restore(held);
		MemoryContextSwitchTo(context);
		HOLD_INTERRUPTS();
		FlushErrorState();
		AbortCurrentTransaction();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return done;
}
