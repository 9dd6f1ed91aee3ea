/*
 * prepared.c
 *	  Global identifiers of prepared transactions.
 *
 * The server has no function for this that works in a process without a
 * database. So this file reads the server's table of prepared transactions in
 * shared memory. No header declares its structure; compat.h has a copy. Three
 * checks protect against a difference. The table is used only if shared
 * memory has it under its name, with the size that we compute. An entry is
 * used only if its transaction id equals the one of the PGPROC it names. A
 * name is used only if it ends within its array. Otherwise the name stays
 * unknown.
 *
 * Locking: TwoPhaseStateLock, shared, and only if it is free at once.
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

/* larger than any area of shared memory; additions to it do not overflow */
#define IMPOSSIBLE_SIZE	(SIZE_MAX / 4)

/*
 * Requests an area of shared memory, which the server makes if it does not
 * exist. After an error returns NULL and sets *code.
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
 * Finds an area of shared memory; NULL if none has this name and this size.
 * It never makes one. Its first request has an impossible size, so it always
 * fails: for lack of memory if there is no such area, because of the size if
 * there is one.
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

/* Finds the table, once per process. */
static void
find_table(void)
{
	Size		size = compat_prepared_table_size();

	looked_up = true;
	if (size != 0 && max_prepared_xacts != 0)
		table = find_area("Prepared Transaction Table", size);
}

/* Copies the name of an entry, if the entry passes the checks. */
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
