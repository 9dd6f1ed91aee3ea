/*
 * session_scan.c
 *	  One pass over the backend status array.
 *
 * The array is private to the server. Its begin follows from the entry of
 * this process and the index of that entry. Each entry is read under the
 * server's changecount protocol. The wait event, transaction ids and lock
 * group of its PGPROC are read in the same window. So the values of a row
 * belong together as far as the server allows: a PGPROC is not written under
 * the changecount, but a statement that begins or ends in between is noticed.
 *
 * Locking: none. Memory: none after session_scan_create(). A writer that is
 * stopped in the middle of an update cannot stop the scan: after SCAN_TRIES
 * the row is marked failed.
 *
 * Auxiliary processes and most background workers report no state. They count
 * as idle if they wait in class Activity.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "port/atomics.h"

#include "plans/running_plan.h"
#include "sampler/session_scan.h"
#include "statements/executed.h"
#include "statements/running_tags.h"

#define SCAN_TRIES		100

/*
 * The CPU caches of a process that scans once a second have lost these
 * entries. So they are prefetched this number of slots, or rows, ahead.
 */
#define CACHE_LINE		64
#define PEEK_AHEAD		16
#define READ_AHEAD		4

#if defined(__GNUC__) || defined(__clang__)
#define ask_for(address)	__builtin_prefetch((const void *) (address))
#else
#define ask_for(address)	((void) 0)
#endif

/* room for the activity strings of one scan */
#define ACTIVITY_BYTES	(256 * 1024)

static PgBackendStatus *
status_array(void)
{
	return MyBEEntry - compat_my_slot();
}

SessionScan *
session_scan_create(void)
{
	SessionScan *scan = palloc0(sizeof(SessionScan));

	scan->slots = compat_status_slots();
	scan->identities = palloc0(sizeof(SlotIdentity) * scan->slots);
	scan->idle_at = palloc0(sizeof(int) * scan->slots);
	scan->found = palloc0(sizeof(int) * scan->slots);
	scan->rows = palloc0(sizeof(SessionRow) * scan->slots);
	scan->idle = palloc0(sizeof(SessionIdle) * scan->slots);
	scan->activity_size = Max(ACTIVITY_BYTES,
							  4 * pgstat_track_activity_query_size);
	scan->activity = palloc0(scan->activity_size);
	return scan;
}

/*
 * Up to 16, a free PGPROC keeps the process id of its last user, which may be
 * the id of another process by now. The latch of a free PGPROC has no owner.
 */
static bool
is_valid_proc(const volatile PGPROC *proc, int pid)
{
	return proc != NULL && proc->pid == pid && proc->procLatch.owner_pid == pid;
}

/* The PGPROC of a process, or NULL if it is gone. */
static volatile PGPROC *
find_proc(SlotIdentity *identity, int slot, int pid)
{
	volatile PGPROC *proc = compat_slot_proc(slot);

	if (proc != NULL)
		return is_valid_proc(proc, pid) ? proc : NULL;
	if (identity->procno >= 0)
	{
		proc = GetPGProcByNumber(identity->procno);
		if (is_valid_proc(proc, pid))
			return proc;
	}
	for (int i = 0; i < ProcGlobal->allProcCount; i++)
	{
		proc = GetPGProcByNumber(i);
		if (is_valid_proc(proc, pid))
		{
			identity->procno = i;
			return proc;
		}
	}
	identity->procno = -1;
	return NULL;
}

static SessionState
session_state(BackendState state, BackendType type)
{
	if (compat_state_starting(state))
		return SESSION_STARTING;
	switch (state)
	{
		case STATE_IDLE:
			return SESSION_IDLE;
		case STATE_RUNNING:
			return SESSION_ACTIVE;
		case STATE_IDLEINTRANSACTION:
			return SESSION_IDLE_IN_TRANSACTION;
		case STATE_FASTPATH:
			return SESSION_FASTPATH;
		case STATE_IDLEINTRANSACTION_ABORTED:
			return SESSION_IDLE_IN_TRANSACTION_ABORTED;
		case STATE_DISABLED:
			return SESSION_DISABLED;
		default:
			return type == B_BACKEND ? SESSION_STARTING : SESSION_STATE_NONE;
	}
}

/*
 * Copies the fields from the PGPROC. The pointer to the leader always points
 * into the array of all PGPROCs, even if another process uses that PGPROC
 * now.
 */
static void
read_proc(SessionRow *row, volatile PGPROC *proc, int pid)
{
	PGPROC	   *leader;

	row->wait = 0;
	row->xid = row->xmin = InvalidTransactionId;
	row->xmin_ignored = false;
	row->leader = 0;
	if (proc == NULL)
		return;
	row->wait = proc->wait_event_info;
	row->xid = proc->xid;
	row->xmin = proc->xmin;
	row->xmin_ignored = (proc->statusFlags & PROC_IN_VACUUM) != 0;
	leader = proc->lockGroupLeader;
	if (leader == NULL || leader->pid == pid)
		return;
	row->leader = leader->pid;
	/* workers publish none of their own */
	if (row->tags_length == 0)
		row->tags_length = running_tags_in(compat_proc_slot(leader),
										   row->query_start, row->tags);
}

static void
read_status(SessionRow *row, const volatile PgBackendStatus *entry)
{
	row->server_state = entry->st_state;
	row->xact_start = entry->st_xact_start_timestamp;
	row->query_start = entry->st_activity_start_timestamp;
	row->state_change = entry->st_state_start_timestamp;
	row->database = entry->st_databaseid;
	row->user = entry->st_userid;
	row->query_id = (int64) executed_in(row->slot, entry->st_query_id);
	row->plan_id = running_plan_known() ?
		running_plan_in(row->slot, entry->st_query_id, row->query_start) :
		compat_plan_id(entry);
	row->tags_length = running_tags_in(row->slot, row->query_start, row->tags);
	row->progress_command = entry->st_progress_command;
	row->progress_relation = entry->st_progress_command_target;
	strlcpy(row->application, entry->st_appname, NAMEDATALEN);
}

/*
 * True if the activity of a row without a query id is needed. A client has no
 * query id while its parse analysis waits for a lock, for example on a table
 * that is being altered.
 */
static bool
wants_activity(const SessionRow *row, BackendType type, bool raw_activity)
{
	return raw_activity || type != B_BACKEND ||
		(row->wait & 0xFF000000U) == PG_WAIT_LOCK;
}

/* Copies the activity string of a row that has no query id. */
static void
read_activity(SessionScan *scan, SessionRow *row,
			  const volatile PgBackendStatus *entry, bool wanted)
{
	Size		room = scan->activity_size - scan->activity_used;
	char	   *to = scan->activity + scan->activity_used;

	row->activity = NULL;
	row->activity_length = 0;
	if (!wanted || row->query_id != 0 || row->server_state != STATE_RUNNING ||
		room < pgstat_track_activity_query_size)
		return;
	strlcpy(to, entry->st_activity_raw, pgstat_track_activity_query_size);
	row->activity = to;
	row->activity_length = strlen(to);
}

/*
 * Identifies the process in the entry. Returns the known identity, or *other,
 * filled, if another process is there.
 */
static SlotIdentity *
read_identity(SlotIdentity *known, SlotIdentity *other,
			  const volatile PgBackendStatus *entry, int pid)
{
	other->pid = pid;
	other->backend_start = entry->st_proc_start_timestamp;
	other->type = entry->st_backendType;
	if (known->pid == pid && known->type == other->type &&
		known->backend_start == other->backend_start)
		return known;
	other->category = CATEGORY_NONE;
	other->procno = -1;
	memcpy(&other->client_addr, (const void *) &entry->st_clientaddr,
		   sizeof(SockAddr));
	return other;
}

/*
 * Reads one entry. Returns false if it is free. If row->failed is set, the
 * entry could not be read; the identity may then belong to the process
 * before.
 */
static bool
read_entry(SessionScan *scan, SessionRow *row,
		   const volatile PgBackendStatus *entry, bool raw_activity)
{
	SlotIdentity *known = &scan->identities[row->slot];
	SlotIdentity other;

	row->failed = row->only_blocks = false;
	row->blocked_by = -1;
	row->cpu = CPU_NONE;
	for (int try = 0; try < SCAN_TRIES; try++)
	{
		int			before;
		int			after;
		int			pid;
		SlotIdentity *identity;

		pgstat_begin_read_activity(entry, before);
		pid = entry->st_procpid;
		if (pid == 0)
			return false;
		identity = read_identity(known, &other, entry, pid);
		read_status(row, entry);
		read_proc(row, find_proc(identity, row->slot, pid), pid);
		read_activity(scan, row, entry,
					  wants_activity(row, identity->type, raw_activity));
		pgstat_end_read_activity(entry, after);
		if (pgstat_read_activity_complete(before, after))
		{
			row->state = session_state(row->server_state, identity->type);
			if (identity == &other)
				*known = other;
			return true;
		}
	}
	row->failed = true;
	row->state = session_state(entry->st_state, entry->st_backendType);
	row->activity = NULL;
	return entry->st_procpid != 0;
}

static bool
is_idle(const SessionRow *row)
{
	if (row->failed)
		return false;
	if (row->state == SESSION_IDLE)
		return true;
	return row->state == SESSION_STATE_NONE &&
		(row->wait & 0xFF000000U) == PG_WAIT_ACTIVITY;
}

/*
 * True if the entry is free or has an idle client. Every change of an entry
 * changes its changecount, so an idle client that has done nothing since the
 * last scan costs one cache line.
 */
static bool
pass_by(SessionScan *scan, const volatile PgBackendStatus *entry, int slot)
{
	int			count = entry->st_changecount;

	pg_read_barrier();
	if (count == 0 || count != scan->idle_at[slot])
	{
		scan->idle_at[slot] = 0;
		if (entry->st_procpid == 0)
			return true;
		if (entry->st_backendType != B_BACKEND)
			return false;
		if (entry->st_state != STATE_IDLE)
		{
			scan->clients++;
			return false;
		}
		if ((count & 1) == 0)
			scan->idle_at[slot] = count;
	}
	scan->clients++;
	scan->idle_clients++;
	return true;
}

/* Finds the slots to read, and counts idle clients. Returns their number. */
static int
peek(SessionScan *scan, const volatile PgBackendStatus *entries)
{
	int			own = compat_my_slot();
	int			count = 0;

	for (int slot = 0; slot < scan->slots; slot++)
	{
		if (slot + PEEK_AHEAD < scan->slots)
			ask_for(&entries[slot + PEEK_AHEAD].st_changecount);
		if (slot != own && !pass_by(scan, &entries[slot], slot))
			scan->found[count++] = slot;
	}
	return count;
}

static void
ask_for_entry(const SessionScan *scan, const volatile PgBackendStatus *entry,
			  int slot)
{
	for (Size at = 0; at < sizeof(PgBackendStatus); at += CACHE_LINE)
		ask_for((const char *) entry + at);
	ask_for(&scan->identities[slot]);
	ask_for(&scan->identities[slot].procno);
}

/* Prefetches the memory that an entry points to; the entry is in the cache. */
static void
ask_for_rest(const SessionScan *scan, const volatile PgBackendStatus *entry,
			 int slot)
{
	volatile PGPROC *proc = compat_slot_proc(slot);
	int			procno = scan->identities[slot].procno;

	ask_for(entry->st_appname);
	if (proc == NULL && (procno < 0 || scan->identities[slot].pid == 0))
		return;
	if (proc == NULL)
		proc = GetPGProcByNumber(procno);
	ask_for(&proc->pid);
	ask_for(&proc->wait_event_info);
	ask_for(&proc->xid);
	ask_for(&proc->statusFlags);
	ask_for(&proc->lockGroupLeader);
}

/* Reads a slot and adds it to the rows or to the idle processes. */
static void
take_slot(SessionScan *scan, const volatile PgBackendStatus *entry, int slot,
		  bool raw_activity)
{
	SessionRow *row = &scan->rows[scan->row_count];

	row->slot = slot;
	if (!read_entry(scan, row, entry, raw_activity))
		return;
	if (!is_idle(row))
	{
		scan->row_count++;
		scan->rows_failed += row->failed;
		if (row->activity)
			scan->activity_used += row->activity_length + 1;
	}
	else if (scan->identities[slot].type == B_BACKEND)
		scan->idle_clients++;
	else
	{
		SessionIdle *idle = &scan->idle[scan->idle_count++];

		idle->slot = slot;
		idle->state = row->state;
	}
}

void
session_scan_run(SessionScan *scan, bool raw_activity)
{
	const volatile PgBackendStatus *entries = status_array();
	int			count;

	scan->row_count = scan->idle_count = 0;
	scan->clients = scan->idle_clients = scan->rows_failed = 0;
	scan->activity_used = 0;
	count = peek(scan, entries);
	for (int i = 0; i < count; i++)
	{
		if (i + 2 * READ_AHEAD < count)
			ask_for_entry(scan, &entries[scan->found[i + 2 * READ_AHEAD]],
						  scan->found[i + 2 * READ_AHEAD]);
		if (i + READ_AHEAD < count)
			ask_for_rest(scan, &entries[scan->found[i + READ_AHEAD]],
						 scan->found[i + READ_AHEAD]);
		take_slot(scan, &entries[scan->found[i]], scan->found[i],
				  raw_activity);
	}
}

int
session_scan_add(SessionScan *scan, int pid)
{
	const volatile PgBackendStatus *entries = status_array();

	for (int slot = 0; slot < scan->slots && scan->row_count < scan->slots;
		 slot++)
	{
		SessionRow *row = &scan->rows[scan->row_count];

		if (entries[slot].st_procpid != pid)
			continue;
		row->slot = slot;
		if (!read_entry(scan, row, &entries[slot], false) ||
			scan->identities[slot].pid != pid)
			return -1;
		row->only_blocks = true;
		return scan->row_count++;
	}
	return -1;
}

volatile PGPROC *
session_scan_proc(SessionScan *scan, const SessionRow *row)
{
	SlotIdentity *identity = &scan->identities[row->slot];

	return find_proc(identity, row->slot, identity->pid);
}

BackendType
session_scan_type(const SessionScan *scan, int pid)
{
	const volatile PgBackendStatus *entries = status_array();

	for (int slot = 0; slot < scan->slots; slot++)
		if (entries[slot].st_procpid == pid)
			return entries[slot].st_backendType;
	return B_INVALID;
}
