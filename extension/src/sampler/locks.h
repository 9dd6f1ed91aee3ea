/*
 * locks.h
 *	  Who blocks whom: lock waits of a scan and their blockers.
 *
 * A lock somebody has been waiting for longer than one tick is looked up once
 * a tick, whatever the number of its waiters. A waiter gets an edge to every
 * session (or prepared transaction) that holds the lock in a mode that
 * conflicts; when none does, one to the frontmost waiter ahead of it in the
 * queue that asks for such a mode. A transaction that waits for a safe snapshot
 * gets a session that it waits for.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_LOCKS_H
#define TACHO_LOCKS_H

#include "history/frame.h"
#include "sampler/session_scan.h"

/*
 * Looks up the blockers of the scan's lock waits. Blockers that the scan left
 * out are added to it, marked; rows get their `blocked_by`. `now` is when the
 * scan was made. The result is used by locks_put() and lives in the caller's
 * memory context. Takes locks of the server's lock manager, shared, for a
 * moment; spends at most LOCKS_BUDGET_US and a part of the interval, beyond the
 * lookup under way.
 */
extern void locks_find(SessionScan *scan, TimestampTz now, int interval_ms);

/* Waiters that locks_find() had no budget for. */
extern int	locks_unresolved(void);

/* Adds what locks_find() found to the frame; `now` as for names. */
extern void locks_put(Frame *frame, int at, SessionScan *scan);

#endif							/* TACHO_LOCKS_H */
