/*
 * share.h
 *	  The rule by which roles share a limit.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SHARE_H
#define TACHO_SHARE_H

/*
 * The part of a limit that one role may still use. `by_all` is the part that all
 * roles use, this role's `by_role` included. The result is never more than what
 * is left for all others. If the limit is 16, the first role gets 8, the next 4,
 * the third 2.
 */
static inline int64
share_left(int64 limit, int64 by_all, int64 by_role)
{
	return limit - by_all - by_role;
}

#endif							/* TACHO_SHARE_H */
