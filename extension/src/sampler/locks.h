/*
 * locks.h
 *	  Blocking: the lock waits of a scan and their blockers.
 *
 * A lock that a session has waited for longer than one tick costs one lookup a
 * tick, whatever its number of waiters. A waiter gets an edge to every session
 * or prepared transaction that holds the lock in a conflicting mode. If none
 * does, it gets one edge to the frontmost waiter ahead of it in the queue that
 * requests a conflicting mode. A transaction that waits for a safe snapshot
 * gets no edge: its `blocked_by` is one session that it waits for.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_LOCKS_H
#define TACHO_LOCKS_H

#include "history/frame.h"
#include "sampler/session_scan.h"

/*
 * Finds the blockers of the scan's lock waits. Adds blockers that the scan
 * left out to it, marked; sets `blocked_by` of rows. `now` is the time of the
 * scan. The result lives in the caller's memory context until locks_put() has
 * used it. Takes locks of the server's lock manager, shared and briefly.
 * Starts no lookup after LOCKS_BUDGET_US or after its part of the interval.
 */
extern void locks_find(SessionScan *scan, TimestampTz now, int interval_ms);

/* Number of waiters that locks_find() had no budget for. */
extern int	locks_unresolved(void);

/*
 * Adds the edges of locks_find() to the frame; `at` is the tick's index in
 * it.
 */
extern void locks_put(Frame *frame, int at, SessionScan *scan);

#endif							/* TACHO_LOCKS_H */
