/*
 * given_names.h
 *	  Names that clients give, each role within its share of a day's bytes.
 *
 * A client may give its sessions and prepared transactions new names all the time:
 * 100 sessions that did it each 0.9 s made the history 38 times as large. So the
 * names of a role may have as many bytes as are left of tacho.name_limit for all
 * roles: the first role gets half of the limit, the next one half of the rest, as
 * with texts (history/text_share.h). In ten minutes a role gets a quarter of that,
 * so that a flood leaves room for its later names. A session that changes its name
 * is recorded again, which counts too. A name without room becomes "(other)",
 * which is counted, and marked once a day for each role.
 *
 * A session that returns to a name it had today ends a run and begins another, and
 * its definition goes into the log once more after a minute. A pooler does that all
 * day. So some returns of each minute are free: 128 by default for all roles, shared
 * in the same way. More of them take bytes of the day, once a minute for each name
 * of a session.
 *
 * The shares begin again with the sampler: only a superuser can end it, and the
 * names that it recorded before are defined again in any case.
 *
 * Used by the sampler only. Memory: contexts of their own, emptied each day; they
 * are bounded by tacho.name_limit.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_GIVEN_NAMES_H
#define TACHO_GIVEN_NAMES_H

#include "history/dictionary.h"
#include "history/frame.h"

extern void given_names_init(void);

/* Sets the time of the names that follow. A new UTC day has all of the limit. */
extern void given_names_now(UnixMs now);

/*
 * The entry of a name that a client of this role gives, NULL for an empty one.
 * `session` is a hash of the session that changes its name to it, else 0. Sets
 * *left_out when the name has no room. May add a marker to the open frame.
 */
extern NameEntry *given_name(Oid role, uint64 session, const char *name,
							 bool *left_out);

/* The id of a name that is not a session's, defining it if need be; 0 for an empty one. */
extern uint64 given_name_id(Oid role, const char *name);

/* How often a name was left out. */
extern int64 given_names_left_out(void);

#endif							/* TACHO_GIVEN_NAMES_H */
