/*
 * scan.c
 *	  Tests of session_scan.c: an entry that another process changes during the
 *	  scan, and a free PGPROC. Prints a line a test, "ok - name" or the
 *	  difference; built and run by 181_units.pl.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <arpa/inet.h>

/* called during a copy: another process changes the source */
static void (*meanwhile) (void);

static void
copy_and_wait(void *to, const void *from, size_t size)
{
	void		(*happens) (void) = meanwhile;

	meanwhile = NULL;
	memmove(to, from, size);
	if (happens)
		happens();
}

#undef memcpy
#define memcpy copy_and_wait
#include "sampler/session_scan.c"

#undef printf

#define SLOTS	2
#define PID		42

/* ---- provided by the server and other files ---- */

static char application[NAMEDATALEN];
static char activity[NAMEDATALEN];
static PgBackendStatus entries[SLOTS + 100];	/* and auxiliary processes */
static PGPROC procs[SLOTS];
static PROC_HDR header = {.allProcs = procs, .allProcCount = SLOTS};

PROC_HDR   *ProcGlobal = &header;
PgBackendStatus *MyBEEntry = entries;
int			MyProcNumber = 0;	/* from 17 on */
int			MyBackendId = 1;	/* before */
int			MaxBackends = SLOTS;
int			pgstat_track_activity_query_size = NAMEDATALEN;

void *
palloc0(Size size)
{
	return calloc(1, size);
}

#undef strlcpy
size_t
strlcpy(char *to, const char *from, size_t size)
{
	size_t		length = strlen(from);

	memmove(to, from, Min(length + 1, size));
	to[size - 1] = '\0';
	return length;
}

uint64
executed_in(int slot, uint64 reported)
{
	return reported;
}

bool
running_plan_known(void)
{
	return false;
}

int64
running_plan_in(int slot, uint64 reported, TimestampTz start)
{
	return 0;
}

int
running_tags_in(int slot, TimestampTz start, char *out)
{
	return 0;
}

/* ---- tests ---- */

static void
is(int64 got, int64 expected, const char *name)
{
	if (got == expected)
		printf("ok - %s\n", name);
	else
		printf("not ok - %s: got %lld, expected %lld\n", name,
			   (long long) got, (long long) expected);
}

static void
set_address(PgBackendStatus *entry, uint32 address)
{
	struct sockaddr_in *in = (struct sockaddr_in *) &entry->st_clientaddr.addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = address;
}

static int64
address_of(const SlotIdentity *identity)
{
	return ((const struct sockaddr_in *) &identity->client_addr.addr)->sin_addr.s_addr;
}

/* Makes a session in slot 1, whose process owns PGPROC 1. */
static PgBackendStatus *
session(void)
{
	PgBackendStatus *entry = &entries[1];

	memset(entries, 0, sizeof(entries));
	memset(procs, 0, sizeof(procs));
	entry->st_procpid = PID;
	entry->st_proc_start_timestamp = 7;
	entry->st_backendType = B_BACKEND;
	entry->st_state = STATE_RUNNING;
	entry->st_appname = application;
	entry->st_activity_raw = activity;
	procs[1].pid = procs[1].procLatch.owner_pid = PID;
	procs[1].wait_event_info = 2;
	return entry;
}

/* The new session completes its entry. */
static void
finish_entry(void)
{
	set_address(&entries[1], 2);
	entries[1].st_changecount++;
}

int
main(void)
{
	SessionScan *scan = session_scan_create();

	(void) session();
	procs[0].pid = PID;
	procs[0].wait_event_info = 1;
	session_scan_run(scan, false);
	is(scan->row_count == 1 ? scan->rows[0].wait : -1, 2,
	   "a free PGPROC is not that of a process with its old id");

	set_address(session(), 1);
	memset(scan->identities, 0, sizeof(SlotIdentity) * SLOTS);
	entries[1].st_changecount = 1;
	meanwhile = finish_entry;
	session_scan_run(scan, false);
	is(scan->row_count == 1 ? address_of(&scan->identities[1]) : -1, 2,
	   "a session that was read too early has its own address, not the one before");
	return 0;
}
