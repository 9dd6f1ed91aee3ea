/*
 * text_ring.h
 *	  The ring that takes texts and trees of plans from backends to the
 *	  sampler. Also the set of keys of the texts and trees that were taken.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TEXT_RING_H
#define TACHO_TEXT_RING_H

#include "core/shmem.h"

typedef struct QueryText
{
	int64		query_id;
	int64		plan_id;		/* of the tree that is in `bytes`; 0 = a text */
	bool		has_actuals;	/* the tree has counted rows */
	Oid			database;
	Oid			user;
	int			encoding;
	int			length;			/* of `bytes` */
	int			whole_length;	/* of the whole text if it was cut, else 0 */
	const char *bytes;			/* not null-terminated */
} QueryText;

/*
 * Sampler: takes all texts out of the ring and calls `take` for each. Does
 * not wait for backends.
 */
extern void query_text_drain(void (*take) (const QueryText *text));

/*
 * Sampler: sets whether backends put texts into the ring. `again`: they also
 * put texts again that were taken before, and all shares are unused.
 */
extern void query_text_want(bool wanted, bool again);

/*
 * Number of texts lost so far: the ring was full or busy, or the text could
 * not be made, or nothing of it could be kept. query_text_drop() counts one
 * more.
 */
extern int64 query_text_dropped(void);
extern void query_text_drop(void);

/* Number of the account of a role in a database, below TEXT_ACCOUNTS. */
extern int	query_text_account(Oid database, Oid user);

/*
 * Sampler: the role's share of today is used up, so its backends need not
 * try.
 */
extern void query_text_share_used(TextKind kind, Oid database, Oid user);

/*
 * Backends: the set of keys, and the ring, for the trees of plans
 * (plan_trees.c).
 */
extern bool query_text_is_known(uint64 key);
extern void query_text_remember(uint64 key);
extern bool query_text_share_is_used(TextKind kind);

/* True if a text of this length has room; without the lock, so a guess. */
extern bool query_text_has_room(int account, int length);

/* Puts a text into the ring; false if it has no room or is busy. */
extern bool query_text_put(const QueryText *text);

#endif							/* TACHO_TEXT_RING_H */
