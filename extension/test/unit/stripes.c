/*
 * stripes.c
 *	  Holds the locks of an entry's stripes, as a writer does that the
 *	  operating system has stopped at the worst moment.
 *	  109_statements_stripes.pl builds it; not part of the extension.
 *
 * A stripe's lock is a bit that belongs to no process, so one statement can
 * lock it and another one unlock it. The lock of a partition belongs to the
 * process that holds it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/pg_prng.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* gives access to the shared memory; its settings do not matter here */
#include "statements/statements_memory.c"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(stripes_lock);
PG_FUNCTION_INFO_V1(stripes_unlock);
PG_FUNCTION_INFO_V1(stripes_used);
PG_FUNCTION_INFO_V1(stripes_storm);
PG_FUNCTION_INFO_V1(stripes_hold);
PG_FUNCTION_INFO_V1(stripes_hot);
PG_FUNCTION_INFO_V1(stripes_hand);

int			tacho_statements_max = 100;
int			tacho_statements_max_reserved = 0;
int			tacho_query_text_memory = 0;
int			tacho_query_text_memory_reserved = 0;
StatementsAlias statements_alias;

/* The only entry of a query identifier. */
static StatementEntry *
entry_of(int64 query_id)
{
	if (!statements_active())
		statements_shmem_startup();
	for (uint32 i = 0; i < pg_atomic_read_u32(&statements_memory.shared->slots.untouched); i++)
	{
		StatementEntry *entry = &statements_memory.entries[i];

		if (pg_atomic_read_u64(&entry->generation) != 0 &&
			entry->key.query_id == (uint64) query_id)
			return entry;
	}
	elog(ERROR, "there is no entry of the query " INT64_FORMAT, query_id);
	return NULL;
}

/* Stripe `i`, NULL if the entry has fewer. */
static Stripe *
stripe_of(StatementEntry *entry, int i)
{
	StripeGroup *group = entry_group(entry);

	return i < stripe_count(group) ? entry_stripe(entry, group, i) : NULL;
}

/*
 * Locks a stripe that others use; raises an error if it stays locked for 30
 * s.
 */
static void
lock_soon(Stripe *stripe)
{
	for (int i = 0; i < 30000; i++)
	{
		if (stripe_trylock(stripe))
			return;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	elog(ERROR, "a stripe stays locked");
}

/* Locks the first `n` stripes of a query's entry; returns their number. */
Datum
stripes_lock(PG_FUNCTION_ARGS)
{
	StatementEntry *entry = entry_of(PG_GETARG_INT64(0));
	Stripe	   *stripe;
	int			i;

	for (i = 0; (stripe = stripe_of(entry, i)) != NULL; i++)
		if (i < PG_GETARG_INT32(1))
			lock_soon(stripe);
	PG_RETURN_INT32(i);
}

/* Unlocks all locked stripes; no other process may be writing. */
Datum
stripes_unlock(PG_FUNCTION_ARGS)
{
	StatementEntry *entry = entry_of(PG_GETARG_INT64(0));
	Stripe	   *stripe;

	for (int i = 0; (stripe = stripe_of(entry, i)) != NULL; i++)
		if (pg_atomic_read_u32(&stripe->change) & 1)
			stripe_unlock(stripe);
	PG_RETURN_VOID();
}

/*
 * Locks random stripes of a query's entry, one after the other, each for 100
 * us, until a file exists. Simulates many processors that use the entry.
 * Returns how often it got a lock.
 */
Datum
stripes_storm(PG_FUNCTION_ARGS)
{
	StatementEntry *entry = entry_of(PG_GETARG_INT64(0));
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int64		had = 0;

	while (access(path, F_OK) != 0)
	{
		int			count = stripe_count(entry_group(entry));
		Stripe	   *stripe = stripe_of(entry, pg_prng_uint64_range(&pg_global_prng_state, 0, count - 1));

		CHECK_FOR_INTERRUPTS();
		if (stripe == NULL || !stripe_trylock(stripe))
			continue;
		pg_usleep(100);
		stripe_unlock(stripe);
		had++;
	}
	PG_RETURN_INT64(had);
}

/*
 * Holds the partition lock of a query's entry until a file exists, or for a
 * number of seconds. Query 0 selects the entry without a query. True if the
 * file came.
 */
Datum
stripes_hold(PG_FUNCTION_ARGS)
{
	LWLock	   *lock = partition_lock(entry_of(PG_GETARG_INT64(0))->hash);
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char	   *held = psprintf("%s.held", path);
	int			tries = PG_GETARG_INT32(2) * 1000;
	bool		came = false;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	close(open(held, O_CREAT | O_WRONLY, 0600));
	while (!came && tries-- > 0)
	{
		pg_usleep(1000);
		came = access(path, F_OK) == 0;
	}
	LWLockRelease(lock);
	PG_RETURN_BOOL(came);
}

/* Gives all entries the highest number of chances. */
Datum
stripes_hot(PG_FUNCTION_ARGS)
{
	if (!statements_active())
		statements_shmem_startup();
	for (uint32 i = 0; i < pg_atomic_read_u32(&statements_memory.shared->slots.untouched); i++)
		statements_memory.entries[i].usage = USAGE_MAX;
	PG_RETURN_VOID();
}

/* Number of slots that the hand has passed. */
Datum
stripes_hand(PG_FUNCTION_ARGS)
{
	if (!statements_active())
		statements_shmem_startup();
	PG_RETURN_INT64(pg_atomic_read_u32(&statements_memory.shared->hand));
}

/* Number of stripes that have counted executions. */
Datum
stripes_used(PG_FUNCTION_ARGS)
{
	StatementEntry *entry = entry_of(PG_GETARG_INT64(0));
	Stripe	   *stripe;
	int			n = 0;

	for (int i = 0; (stripe = stripe_of(entry, i)) != NULL; i++)
		n += stripe->hot.calls > 0;
	PG_RETURN_INT32(n);
}
