/*
 * error_counts.c
 *	  Counts the errors of statements by SQLSTATE, for the history.
 *
 * The counts are in one hash table in shared memory (32 kB). A place has the
 * errors of one statement with one SQLSTATE. The sampler empties the table
 * with each record. So the table has room for the pairs of one interval. A
 * crash of the server loses the counts that are not recorded yet.
 *
 * Example: between two records two queries fail with 23505, one of them also
 * with 40P01. Three places are in use.
 *
 * Locking: `locked` protects the places. It is only tried, with short pauses.
 * Its holder calls nothing that may fail. Executions without an error do not
 * come here.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/s_lock.h"
#include "storage/shmem.h"

#include "statements/error_counts.h"
#include "statements/statements.h"
#include "statements/statements_shared.h"

#define AREA	"tacho errors"
#define PROBES	16				/* places that a pair may be in */

typedef struct ErrorCounts
{
	pg_atomic_uint32 locked;
	pg_atomic_uint32 beyond;	/* errors that found no room */
	uint32		used;			/* places */
	ErrorCount	place[ERROR_PLACES];
} ErrorCounts;

static ErrorCounts *counts = NULL;	/* NULL = not set up */

void
error_counts_shmem_request(void)
{
	RequestAddinShmemSpace(sizeof(ErrorCounts));
}

void
error_counts_shmem_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	counts = ShmemInitStruct(AREA, sizeof(ErrorCounts), &found);
	if (!found)
	{
		memset(counts, 0, sizeof(*counts));
		pg_atomic_init_u32(&counts->locked, 0);
		pg_atomic_init_u32(&counts->beyond, 0);
	}
	LWLockRelease(AddinShmemInitLock);
}

static bool
trylock(void)
{
	uint32		expected = 0;

	return pg_atomic_compare_exchange_u32(&counts->locked, &expected, 1);
}

static void
unlock(void)
{
	pg_write_barrier();
	pg_atomic_write_u32(&counts->locked, 0);
}

/* Tries a hundred times, and three times more after about 0.1 ms each. */
static bool
lock_for_a_while(void)
{
	for (int attempt = 0; attempt < 103; attempt++)
	{
		if (trylock())
			return true;
		if (attempt >= 99)
			pg_usleep(50);
		else
			pg_spin_delay();
	}
	return false;
}

/* The place of a pair, maybe an unused one; NULL if there is no room. */
static ErrorCount *
find_place(const StatementKey *key, int sqlstate)
{
	uint32		hash = hash_combine(statement_hash(key), murmurhash32(sqlstate));

	for (uint32 i = 0; i < PROBES; i++)
	{
		ErrorCount *place = &counts->place[(hash + i) % ERROR_PLACES];

		if (place->count == 0 ||
			(place->sqlstate == sqlstate &&
			 memcmp(&place->key, key, sizeof(*key)) == 0))
			return place;
	}
	return NULL;
}

void
error_counts_add(const StatementKey *key, int sqlstate)
{
	ErrorCount *place = NULL;

	if (counts == NULL)
		return;
	if (lock_for_a_while())
	{
		place = find_place(key, sqlstate);
		if (place != NULL && place->count == 0)
		{
			place->key = *key;
			place->sqlstate = sqlstate;
			counts->used++;
		}
		if (place != NULL)
			place->count++;
		unlock();
	}
	if (place == NULL)
		pg_atomic_add_fetch_u32(&counts->beyond, 1);
}

/* Moves the places that are in use. The lock is held. */
static int
move_places(ErrorCount *rows)
{
	int			n = 0;

	if (counts->used == 0)
		return 0;
	for (int i = 0; i < ERROR_PLACES; i++)
		if (counts->place[i].count != 0)
			rows[n++] = counts->place[i];
	memset(counts->place, 0, sizeof(counts->place));
	counts->used = 0;
	return n;
}

int
error_counts_take(ErrorCount *rows)
{
	uint32		beyond;
	int			n;

	if (!trylock())
		return -1;
	n = move_places(rows);
	unlock();
	beyond = pg_atomic_exchange_u32(&counts->beyond, 0);
	if (beyond > 0)
		rows[n++] = (ErrorCount) {.count = beyond};
	return n;
}
