/*
 * locks.c
 *	  Blocking: the lock waits of a scan and their blockers.
 *
 * Waiters are grouped by the address of the lock they wait for, which is
 * compared and never followed. If a group has a wait older than one tick, one
 * request goes to the lock manager, about the waiter that came last. The reply
 * has all holders of the lock, all waiters, and the queue ahead of that
 * waiter. That gives the edges of the whole group. The largest groups come
 * first.
 *
 * Waits begin and end between the scan and the reply. A waiter that is gone
 * gets no edge, and neither does a wait that the scan did not see.
 *
 * A wait for a safe snapshot is not a wait for a lock: predicate.c knows the
 * transactions that it waits for.
 *
 * Locking: ProcArrayLock and all partition locks of the lock manager, shared,
 * inside GetBlockerStatusData(). SerializableXactHashLock, shared, inside
 * GetSafeSnapshotBlockingPids(). None is held while names are read.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "storage/lock.h"
#include "storage/predicate_internals.h"
#include "utils/timestamp.h"

#include "core/clocks.h"
#include "history/dictionary.h"
#include "sampler/given_names.h"
#include "sampler/locks.h"
#include "sampler/prepared.h"
#include "sampler/processes.h"

#define LOCKS_CALLS			32		/* lookups per tick, ... */
#define LOCKS_BUDGET_US		2000	/* ... time for them, ... */
#define LOCKS_PART			50		/* ... at most 1/50 of the interval */
#define LOCKS_TRIES			3		/* waiters tried per lock */
#define HOLDERS				64		/* edges per waiter */
#define EDGES				4096	/* per tick */
#define BEHIND				INT_MAX

typedef struct Waiter
{
	const void *lock;
	TimestampTz since;
	int			row;			/* index in the scan's rows */
	int			pid;
} Waiter;

/* The waiters of one lock: a range of `waiters`. */
typedef struct LockGroup
{
	int			first;
	int			count;
} LockGroup;

typedef struct Edge
{
	int			waiter;			/* row of the scan */
	int			blocker;		/* row of the scan, -1 = not a session */
	TransactionId prepared;
	bool		hard;
	LOCKTAG		tag;
	LOCKMASK	held;
	LOCKMODE	requested;
	TimestampTz wait_start;
} Edge;

/* A process that waits for the lock of the reply. */
typedef struct Queued
{
	int			pid;
	int			position;		/* in the queue, BEHIND = unknown */
	LockInstanceData *instance;
} Queued;

/* The lock manager's reply about one lock. */
typedef struct Answer
{
	const LOCKMASK *conflicts;	/* by lock mode */
	LockInstanceData **holders;
	int			holder_count;
	Queued	   *by_pid;
	Queued	   *by_position;	/* the same processes, sorted by position */
	int			queued_count;
} Answer;

/*
 * The lookups that this tick may still make: their number, and the time at
 * which they end.
 */
typedef struct Lookups
{
	int			left;
	int64		until_us;		/* clock_boot_us() */
} Lookups;

typedef struct PidRow
{
	int			pid;
	int			row;
} PidRow;

/* State of one tick, in the memory of that tick. */
static Waiter *waiters;
static int	waiter_count;
static PidRow *rows_by_pid;		/* NULL = not needed yet */
static int	scanned_rows;		/* rows without added blockers */
static Edge *edges;
static int	edge_count = 0;
static int	unresolved = 0;

static int
compare_waiters(const void *left, const void *right)
{
	const Waiter *a = left;
	const Waiter *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return a->row - b->row;
}

static int
compare_groups(const void *left, const void *right)
{
	const LockGroup *a = left;
	const LockGroup *b = right;

	return a->count != b->count ? b->count - a->count : a->first - b->first;
}

static int
compare_pids(const void *left, const void *right)
{
	int			a = *(const int *) left;
	int			b = *(const int *) right;

	return a < b ? -1 : a > b;
}

static int
compare_positions(const void *left, const void *right)
{
	const Queued *a = left;
	const Queued *b = right;

	return a->position < b->position ? -1 : a->position > b->position;
}

/*
 * Collects the sessions that wait for a lock, sorted by lock and wait start.
 */
static void
collect_waiters(SessionScan *scan)
{
	waiter_count = 0;
	for (int i = 0; i < scan->row_count; i++)
	{
		SessionRow *row = &scan->rows[i];
		volatile PGPROC *proc;
		Waiter	   *waiter;

		if (row->failed || (row->wait & 0xFF000000U) != PG_WAIT_LOCK)
			continue;
		proc = session_scan_proc(scan, row);
		if (proc == NULL)
			continue;
		if (waiter_count == 0)
			waiters = palloc(sizeof(Waiter) * (scan->row_count - i));
		waiter = &waiters[waiter_count];
		waiter->lock = proc->waitLock;
		waiter->since = pg_atomic_read_u64(&((PGPROC *) proc)->waitStart);
		waiter->row = i;
		waiter->pid = scan->identities[row->slot].pid;
		if (waiter->lock != NULL && waiter->since != 0)
			waiter_count++;
	}
	if (waiter_count > 1)
		qsort(waiters, waiter_count, sizeof(Waiter), compare_waiters);
}

/* The locks with a wait that began by `since`, largest group first. */
static int
group_waiters(LockGroup *groups, int64 since)
{
	int			count = 0;

	for (int first = 0, end; first < waiter_count; first = end)
	{
		end = first + 1;
		while (end < waiter_count && waiters[end].lock == waiters[first].lock)
			end++;
		if (waiters[first].since <= since)
			groups[count++] = (LockGroup) {first, end - first};
	}
	qsort(groups, count, sizeof(LockGroup), compare_groups);
	return count;
}

static void
index_rows(const SessionScan *scan)
{
	rows_by_pid = palloc(sizeof(PidRow) * scanned_rows);
	for (int i = 0; i < scanned_rows; i++)
		rows_by_pid[i] = (PidRow)
	{
		scan->identities[scan->rows[i].slot].pid, i
	};
	qsort(rows_by_pid, scanned_rows, sizeof(PidRow), compare_pids);
}

/*
 * The row of a process, which is added to the scan if the process is idle; -1
 * if it is gone.
 */
static int
find_row(SessionScan *scan, int pid)
{
	PidRow	   *found;

	if (rows_by_pid == NULL)
		index_rows(scan);
	found = bsearch(&pid, rows_by_pid, scanned_rows, sizeof(PidRow),
					compare_pids);
	if (found)
		return found->row;
	for (int i = scanned_rows; i < scan->row_count; i++)
		if (scan->identities[scan->rows[i].slot].pid == pid)
			return i;
	return session_scan_add(scan, pid);
}

static Queued *
find_queued(const Answer *answer, int pid)
{
	return bsearch(&pid, answer->by_pid, answer->queued_count, sizeof(Queued),
				   compare_pids);
}

/* Splits the reply into holders and waiters, and sorts the waiters. */
static void
read_answer(Answer *answer, const BlockedProcsData *data,
			const BlockedProcData *asked)
{
	LockInstanceData *instances = &data->locks[asked->first_lock];
	Queued	   *self;

	answer->holders = palloc(sizeof(LockInstanceData *) * asked->num_locks);
	answer->by_pid = palloc(sizeof(Queued) * asked->num_locks);
	answer->holder_count = answer->queued_count = 0;
	for (int i = 0; i < asked->num_locks; i++)
	{
		if (instances[i].holdMask != 0)
			answer->holders[answer->holder_count++] = &instances[i];
		if (instances[i].waitLockMode != NoLock)
			answer->by_pid[answer->queued_count++] = (Queued)
		{
			instances[i].pid, BEHIND, &instances[i]
		};
	}
	qsort(answer->by_pid, answer->queued_count, sizeof(Queued), compare_pids);
	for (int i = 0; i < asked->num_waiters; i++)
	{
		Queued	   *ahead = find_queued(answer,
										data->waiter_pids[asked->first_waiter + i]);

		if (ahead)
			ahead->position = i;
	}
	self = find_queued(answer, asked->pid);
	if (self)
		self->position = asked->num_waiters;
	answer->by_position = palloc(sizeof(Queued) * answer->queued_count);
	memcpy(answer->by_position, answer->by_pid,
		   sizeof(Queued) * answer->queued_count);
	qsort(answer->by_position, answer->queued_count, sizeof(Queued),
		  compare_positions);
	answer->conflicts = asked->num_locks == 0 ? NULL :
		GetLockTagsMethodTable(&instances[0].locktag)->conflictTab;
}

static Lookups
lookups_of_tick(int interval_ms)
{
	int64		budget_us = Min(LOCKS_BUDGET_US,
								(int64) interval_ms * 1000 / LOCKS_PART);

	return (Lookups)
	{
		LOCKS_CALLS * budget_us / LOCKS_BUDGET_US, clock_boot_us() + budget_us
	};
}

/* Takes one lookup of this tick; false if none is left. */
static bool
take_lookup(Lookups *lookups)
{
	if (lookups->left == 0 || clock_boot_us() >= lookups->until_us)
		return false;
	lookups->left--;
	return true;
}

/*
 * Asks the lock manager about the newest waiter of a group. If it waits no
 * more, tries the one before, up to LOCKS_TRIES.
 */
static bool
ask(Answer *answer, const LockGroup *group, Lookups *lookups)
{
	for (int i = 1; i <= Min(group->count, LOCKS_TRIES); i++)
	{
		int			pid = waiters[group->first + group->count - i].pid;
		BlockedProcsData *data;

		if (!take_lookup(lookups))
			return false;
		data = GetBlockerStatusData(pid);
		for (int k = 0; k < data->nprocs; k++)
			if (data->procs[k].pid == pid)
			{
				read_answer(answer, data, &data->procs[k]);
				return answer->conflicts != NULL;
			}
	}
	return false;
}

static void
add_edge(SessionScan *scan, const Waiter *waiter, const Queued *queued,
		 const LockInstanceData *blocker, bool hard)
{
	Edge	   *edge = &edges[edge_count++];

	edge->waiter = waiter->row;
	edge->blocker = -1;
	edge->prepared = InvalidTransactionId;
	if (blocker->pid == 0)
		edge->prepared = compat_prepared_holder(blocker);
	else
		edge->blocker = find_row(scan, blocker->leaderPid);
	edge->hard = hard;
	edge->tag = queued->instance->locktag;
	edge->held = blocker->holdMask;
	edge->requested = queued->instance->waitLockMode;
	edge->wait_start = waiter->since;	/* the reply has no time */
	if (scan->rows[waiter->row].blocked_by < 0)
		scan->rows[waiter->row].blocked_by = edge->blocker;
}

/* Adds edges to all holders in a conflicting mode; false if there is none. */
static bool
add_holders(SessionScan *scan, const Answer *answer, const Waiter *waiter,
			const Queued *queued)
{
	LOCKMASK	conflicts = answer->conflicts[queued->instance->waitLockMode];
	int			found = 0;

	for (int i = 0; i < answer->holder_count; i++)
	{
		const LockInstanceData *holder = answer->holders[i];

		if ((holder->holdMask & conflicts) == 0 ||
			holder == queued->instance ||
			holder->leaderPid == queued->instance->leaderPid)
			continue;
		if (found++ >= HOLDERS || edge_count >= EDGES)
			break;
		add_edge(scan, waiter, queued, holder, true);
	}
	return found > 0;
}

/*
 * Adds an edge to the frontmost waiter ahead that requests a conflicting
 * mode.
 */
static void
add_ahead(SessionScan *scan, const Answer *answer, const Waiter *waiter,
		  const Queued *queued)
{
	LOCKMASK	conflicts = answer->conflicts[queued->instance->waitLockMode];

	for (int i = 0; i < answer->queued_count; i++)
	{
		const Queued *ahead = &answer->by_position[i];

		if (ahead->position >= queued->position)
			return;
		if ((LOCKBIT_ON(ahead->instance->waitLockMode) & conflicts) == 0 ||
			ahead->instance->leaderPid == queued->instance->leaderPid)
			continue;
		add_edge(scan, waiter, queued, ahead->instance, false);
		return;
	}
}

static void
add_edges(SessionScan *scan, const Answer *answer, const LockGroup *group)
{
	for (int i = 0; i < group->count; i++)
	{
		const Waiter *waiter = &waiters[group->first + i];
		Queued	   *queued = find_queued(answer, waiter->pid);

		if (queued == NULL)
			continue;
		if (edge_count >= EDGES)
			unresolved++;
		else if (!add_holders(scan, answer, waiter, queued))
			add_ahead(scan, answer, waiter, queued);
	}
}

/* Finds edges for all locks with a wait that began by `since`. */
static void
find_lock_holders(SessionScan *scan, int64 since, Lookups *lookups)
{
	LockGroup  *groups;
	int			count;

	collect_waiters(scan);
	if (waiter_count == 0)
		return;
	groups = palloc(sizeof(LockGroup) * waiter_count);
	count = group_waiters(groups, since);
	if (count == 0)
		return;
	edges = palloc(sizeof(Edge) * EDGES);
	for (int i = 0; i < count; i++)
	{
		Answer		answer;

		if (ask(&answer, &groups[i], lookups))
			add_edges(scan, &answer, &groups[i]);
		else
			unresolved += groups[i].count;
	}
}

/*
 * READ ONLY DEFERRABLE waits for transactions that could make its snapshot
 * unsafe. These hold no lock that the lock manager could report.
 */
static void
find_snapshot_blockers(SessionScan *scan, int64 since, Lookups *lookups)
{
	for (int i = 0; i < scanned_rows; i++)
	{
		SessionRow *row = &scan->rows[i];
		int			pid = scan->identities[row->slot].pid;
		int			blocker;

		if (row->failed || row->wait != WAIT_EVENT_SAFE_SNAPSHOT ||
			row->query_start > since)
			continue;
		if (!take_lookup(lookups))
			unresolved++;
		else if (GetSafeSnapshotBlockingPids(pid, &blocker, 1) > 0)
			row->blocked_by = find_row(scan, blocker);
	}
}

void
locks_find(SessionScan *scan, TimestampTz now, int interval_ms)
{
	int64		since = now - (int64) interval_ms * 1000;
	Lookups		lookups = lookups_of_tick(interval_ms);

	edge_count = unresolved = 0;
	rows_by_pid = NULL;
	scanned_rows = scan->row_count;
	find_lock_holders(scan, since, &lookups);
	find_snapshot_blockers(scan, since, &lookups);
}

int
locks_unresolved(void)
{
	return unresolved;
}

/*
 * Puts the fields of a lock tag: OIDs, and numbers as the lock manager has
 * them.
 */
static void
put_tag(Section *section, int row, const LOCKTAG *tag)
{
	section_set(section, row, COL_lock_locktype, tag->locktag_type + 1);
	switch ((LockTagType) tag->locktag_type)
	{
		case LOCKTAG_TRANSACTION:
		case LOCKTAG_VIRTUALTRANSACTION:
		case LOCKTAG_SPECULATIVE_TOKEN:
			section_set(section, row, COL_lock_field1, tag->locktag_field1);
			section_set(section, row, COL_lock_field2, tag->locktag_field2);
			return;
		default:
			section_set(section, row, COL_lock_lock_database,
						tag->locktag_field1);
			section_set(section, row, COL_lock_field1, tag->locktag_field2);
			section_set(section, row, COL_lock_field2, tag->locktag_field3);
			section_set(section, row, COL_lock_field3, tag->locktag_field4);
	}
}

static void
put_edge(Frame *frame, Section *section, int at, SessionScan *scan,
		 const Edge *edge)
{
	uint64		waiter = processes_session(scan, &scan->rows[edge->waiter]);
	uint64		blocker = 0;
	uint64		gid = 0;
	char		name[GIDSIZE];
	Oid			owner;
	int			row;

	if (edge->blocker >= 0)
		blocker = processes_session(scan, &scan->rows[edge->blocker]);
	if (TransactionIdIsValid(edge->prepared) &&
		prepared_gid(edge->prepared, name, &owner))
		gid = given_name_id(owner, name);
	row = section_add(section);
	section_set(section, row, COL_lock_at, at);
	section_set(section, row, COL_lock_waiter, waiter);
	section_set(section, row, COL_lock_blocker, blocker);
	section_set(section, row, COL_lock_blocker_xid, edge->prepared);
	section_set(section, row, COL_lock_blocker_gid, gid);
	section_set(section, row, COL_lock_hard, edge->hard);
	put_tag(section, row, &edge->tag);
	section_set(section, row, COL_lock_modes_held, edge->held);
	section_set(section, row, COL_lock_mode_requested, edge->requested);
	section_set(section, row, COL_lock_wait_start, edge->wait_start == 0 ? 0 :
				frame_time(frame, (edge->wait_start + TACHO_EPOCH_OFFSET_US) /
						   1000));
}

void
locks_put(Frame *frame, int at, SessionScan *scan)
{
	Section    *section;

	if (edge_count == 0)
		return;
	section = frame_section(frame, TABLE_lock);
	for (int i = 0; i < edge_count; i++)
		put_edge(frame, section, at, scan, &edges[i]);
}
