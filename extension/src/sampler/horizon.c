/*
 * horizon.c
 *	  Finds the session, prepared transaction or slot that holds back vacuum.
 *
 * Locking: only the lock of prepared.h. Transaction ids of sessions come from
 * the scan. Transaction ids of prepared transactions and slots are single
 * reads of 32 bits from shared memory. A slot that is dropped at the same
 * time may be named once more.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "replication/slot.h"

#include "sampler/horizon.h"
#include "sampler/prepared.h"

/* Makes a full transaction id of `xid`, which is not newer than `next_xid`. */
static uint64
full_xid(TransactionId xid, uint64 next_xid)
{
	int32		age = (int32) ((uint32) next_xid - xid);

	return age < 0 || (uint64) age > next_xid ? next_xid : next_xid - age;
}

/*
 * Notes `xid` and returns true if it is older than the oldest so far, or
 * equally old and a better answer. The session that runs a transaction is a
 * better answer than one whose snapshot needs it.
 */
static bool
consider(Horizon *horizon, TransactionId xid, bool better, uint64 next_xid)
{
	uint64		full;

	if (!TransactionIdIsNormal(xid))
		return false;
	full = full_xid(xid, next_xid);
	if (horizon->oldest != 0 &&
		(full > horizon->oldest || (full == horizon->oldest && !better)))
		return false;
	horizon->oldest = full;
	return true;
}

static void
consider_sessions(Horizon *horizon, const SessionScan *scan, uint64 next_xid)
{
	for (int i = 0; i < scan->row_count; i++)
	{
		const SessionRow *row = &scan->rows[i];
		bool		older;

		if (row->failed)
			continue;
		older = consider(horizon, row->xid, true, next_xid);
		if (!row->xmin_ignored)
			older |= consider(horizon, row->xmin, false, next_xid);
		if (older)
		{
			horizon->holder = XMIN_HOLDER_SESSION;
			horizon->pid = scan->identities[row->slot].pid;
		}
	}
}

/*
 * A prepared transaction has a PGPROC without a process. If its preparation
 * failed, the id stays in that PGPROC but is not among the running ids.
 */
static TransactionId
prepared_xid(int i)
{
	const volatile PGPROC *proc = &PreparedXactProcs[i];
	TransactionId xid = proc->xid;

	return TransactionIdIsValid(xid) &&
		ProcGlobal->xids[proc->pgxactoff] == xid ? xid : InvalidTransactionId;
}

static void
consider_prepared(Horizon *horizon, uint64 next_xid)
{
	TransactionId oldest = InvalidTransactionId;

	for (int i = 0; i < max_prepared_xacts; i++)
	{
		TransactionId xid = prepared_xid(i);

		if (consider(horizon, xid, true, next_xid))
			oldest = xid;
	}
	if (!TransactionIdIsValid(oldest))
		return;
	horizon->holder = XMIN_HOLDER_PREPARED;
	horizon->pid = 0;
	(void) prepared_gid(oldest, horizon->name, &horizon->owner);
}

static void
consider_slots(Horizon *horizon, uint64 next_xid)
{
	if (ReplicationSlotCtl == NULL)
		return;
	for (int i = 0; i < compat_slots_total(); i++)
	{
		volatile ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		bool		older;

		if (!slot->in_use || compat_slot_is_invalid(slot))
			continue;
		older = consider(horizon, slot->effective_xmin, true, next_xid);
		older |= consider(horizon, slot->effective_catalog_xmin, true,
						  next_xid);
		if (older)
		{
			horizon->holder = XMIN_HOLDER_SLOT;
			horizon->pid = 0;
			strlcpy(horizon->name, (const char *) NameStr(slot->data.name),
					sizeof(horizon->name));
		}
	}
}

void
horizon_find(Horizon *horizon, const SessionScan *scan, uint64 next_xid)
{
	memset(horizon, 0, sizeof(*horizon));
	consider_sessions(horizon, scan, next_xid);
	consider_prepared(horizon, next_xid);
	consider_slots(horizon, next_xid);
}
