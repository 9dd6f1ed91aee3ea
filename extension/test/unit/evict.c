/*
 * evict.c
 *	  Tests of eviction (statements_evict.c): a change between the first look
 *	  at a slot and the lock of its partition is noticed. The lock is a stub
 *	  of this program, which changes the entry as another process would.
 *	  Prints a line a test, "ok - name" or the difference; built and run by
 *	  181_units.pl.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "statements/statements_evict.c"

#undef printf

StatementsMemory statements_memory;

static StatementsShared shared;
static StatementEntry entry;
static LWLock lock;
static bool busy;
static int	locked;
static int	removed;
static void (*meanwhile) (void);

/* ---- what the server and the other files would provide ---- */

bool
LWLockConditionalAcquire(LWLock *which, LWLockMode mode)
{
	if (meanwhile)
		meanwhile();
	locked += !busy;
	return !busy;
}

void
LWLockRelease(LWLock *which)
{
	locked--;
}

LWLock *
partition_lock(uint32 hash)
{
	return &lock;
}

TimestampTz
GetCurrentTimestamp(void)
{
	return 1;
}

bool
entry_lock_stripes(StatementEntry *which)
{
	return true;
}

void
entry_remove(StatementEntry *which, Counters *counters, uint32 *text)
{
	removed++;
	*text = 0;
}

void
entry_release(StatementEntry *which, uint32 text)
{
}

bool
recorded_of(const StatementEntry *which, uint64 generation, int64 *values)
{
	return false;
}

void
statements_accumulate(Oid database_id, const Counters *counters, const int64 *recorded)
{
}

uint32
statements_limit(void)
{
	return 1;
}

/* ---- tests ---- */

static void
reused(void)
{
	pg_atomic_write_u64(&entry.generation, 8);
}

static void
reused_in_another_chain(void)
{
	entry.hash++;
}

static void
used(void)
{
	entry.usage = 1;
}

/* An entry that was seen as generation 7 without a chance left. */
static void
evicts(void (*change) (void), bool taken, bool expected, const char *name)
{
	Seen		seen = {.entry = &entry, .generation = 7, .usage = 0};
	bool		evicted;

	entry = (StatementEntry) {.key.query_id = 1, .hash = 5};
	pg_atomic_write_u64(&entry.generation, 7);
	meanwhile = change;
	busy = taken;
	removed = 0;
	evicted = evict(&seen, 0);
	if (evicted == expected && removed == expected && locked == 0)
		printf("ok - %s\n", name);
	else
		printf("not ok - %s: evicted %d, removed %d, locks left %d\n", name,
			   evicted, removed, locked);
}

int
main(void)
{
	statements_memory.shared = &shared;
	evicts(NULL, false, true, "the entry that the sweep saw is evicted");
	evicts(reused, false, false, "an entry that came into its slot meanwhile stays");
	evicts(reused_in_another_chain, false, false, "an entry reused in another partition stays");
	evicts(used, false, false, "an entry used meanwhile stays");
	evicts(NULL, true, false, "the sweep waits for no lock");
	return 0;
}
