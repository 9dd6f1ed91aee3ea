/*
 * prepared.c
 *	  Global identifiers of prepared transactions.
 *
 * The server has no function that a process without a database could ask, so
 * the table of prepared transactions is read as it lies in shared memory. Its
 * structure is the server's own business (compat.h has a copy): it is used
 * only when it is there under its name and its size agrees with what the server
 * allocated, an entry only when its transaction id agrees with that of the
 * PGPROC it names, and a name only when it ends within its room. Otherwise the
 * name stays unknown.
 *
 * Locking: TwoPhaseStateLock, shared and only if it is free at once.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/twophase.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "core/compat.h"
#include "core/held.h"
#include "sampler/prepared.h"

static bool looked_up = false;
static volatile CompatPreparedTable *table = NULL;

/* more than any server has; nothing that is added to it overflows */
#define IMPOSSIBLE_SIZE	(SIZE_MAX / 4)

/*
 * Asks for an area of the server's, which makes one where there is none.
 * Returns NULL after an error and sets *code.
 */
static void *
ask_for_area(const char *name, Size size, int *code)
{
	MemoryContext context = CurrentMemoryContext;
	const Held	held = held_now();
	void	   *volatile start = NULL;
	bool		found;

	*code = 0;
	PG_TRY();
	{
		start = ShmemInitStruct(name, size, &found);
	}
	PG_CATCH();
	{
		*code = geterrcode();
		held_restore(held);
		MemoryContextSwitchTo(context);
		FlushErrorState();
		LWLockReleaseAll();
	}
	PG_END_TRY();
	return start;
}

/*
 * An area of the server's, NULL = none has this name and this size. Never makes
 * one: the first question is for more than can be there. It fails by the size
 * of an area that is there, and for lack of memory where none is.
 */
static void *
find_area(const char *name, Size size)
{
	int			code;

	if (ask_for_area(name, IMPOSSIBLE_SIZE, &code) != NULL ||
		code == ERRCODE_OUT_OF_MEMORY)
		return NULL;
	return ask_for_area(name, size, &code);
}

/* Finds the table, once a process. */
static void
find_table(void)
{
	Size		size = compat_prepared_table_size();

	looked_up = true;
	if (size != 0 && max_prepared_xacts != 0)
		table = find_area("Prepared Transaction Table", size);
}

/* Copies the name of an entry that is what we take it for. */
static bool
copy_gid(const volatile CompatPrepared *entry, TransactionId xid,
		 char gid[GIDSIZE], Oid *owner)
{
	if (compat_prepared_xid(entry) != xid || entry->pgprocno < 0 ||
		entry->pgprocno >= MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts ||
		((volatile PGPROC *) GetPGProcByNumber(entry->pgprocno))->xid != xid)
		return false;
	memcpy(gid, (const char *) entry->gid, GIDSIZE);
	*owner = entry->owner;
	return gid[0] != '\0' && memchr(gid, '\0', GIDSIZE) != NULL;
}

bool
prepared_gid(TransactionId xid, char gid[GIDSIZE], Oid *owner)
{
	bool		found = false;

	gid[0] = '\0';
	if (!looked_up)
		find_table();
	if (table == NULL ||
		!LWLockConditionalAcquire(TwoPhaseStateLock, LW_SHARED))
		return false;
	for (int i = 0; i < table->count && i < max_prepared_xacts && !found; i++)
	{
		const volatile CompatPrepared *entry = table->entries[i];

		if (ShmemAddrIsValid((const void *) entry) &&
			ShmemAddrIsValid((const void *) (entry + 1)))
			found = copy_gid(entry, xid, gid, owner);
	}
	LWLockRelease(TwoPhaseStateLock);
	if (!found)
		gid[0] = '\0';
	return found;
}
