/*
 * share.h
 *	  The rule by which roles share a limit.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SHARE_H
#define TACHO_SHARE_H

/*
 * The part of a limit that one role may still use: never more than is left for all
 * others. If the limit is 16, the first role gets 8, the next one 4, the third 2.
 * `by_all` includes `by_role`.
 */
static inline int64
share_left(int64 limit, int64 by_all, int64 by_role)
{
	return limit - by_all - by_role;
}

#endif							/* TACHO_SHARE_H */
