/*
 * given_names.h
 *	  Limits the bytes of names that clients choose, by role and day.
 *
 * A client may give its sessions and prepared transactions new names all the
 * time: 100 sessions that did so every 0.9 s made the history 38 times as
 * large. Therefore a role may use as many bytes a day for names as
 * tacho.name_limit then leaves for all other roles. The first role gets half
 * of the limit, the next one half of the rest, as with texts
 * (history/text_share.h). In ten minutes a role may use a quarter of its
 * remaining bytes, so that a flood of names leaves room for its later names.
 * A session that changes its name is recorded again, which takes bytes too. A
 * name without room becomes "(other)". This is counted, and marked once a day
 * for each role.
 *
 * A session that returns to a name it had today ends a run and begins
 * another. After a minute its definition goes into the log again. A pooler
 * does that all day. So some returns of each minute are free: 128 by default
 * for all roles, shared in the same way. Further returns take bytes of the
 * day, once a minute for each name of a session.
 *
 * The shares begin again when the sampler starts, which only a superuser can
 * cause. The new sampler defines all names again in any case.
 *
 * Used by the sampler only. Memory: contexts of their own, emptied each day.
 * tacho.name_limit bounds them.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_GIVEN_NAMES_H
#define TACHO_GIVEN_NAMES_H

#include "history/dictionary.h"
#include "history/frame.h"

extern void given_names_init(void);

/*
 * Sets the time of the names that follow. When it is the first of a new UTC
 * day, the whole limit is free again.
 */
extern void given_names_now(UnixMs now);

/*
 * The entry for a name that a client of `role` chose, NULL for an empty name.
 * `session` is a hash of the session if it changes its name, else 0. Sets
 * *left_out if the name has no room. May add a marker to the open frame.
 */
extern NameEntry *given_name(Oid role, uint64 session, const char *name,
							 bool *left_out);

/*
 * The entry for the tags of a statement that `role` executes, NULL for none.
 * Tags without room become "(other)".
 */
extern NameEntry *given_tags(Oid role, const char *tags, int length, int encoding);

/*
 * Id of a name that is not a session's; defines it if necessary. 0 = no name.
 */
extern uint64 given_name_id(Oid role, const char *name);

/* Same, for text of a database in `encoding`. It is guessed for SQL_ASCII. */
extern uint64 given_text_id(Oid role, const char *text, int encoding);

/* Number of times that a name had no room. */
extern int64 given_names_left_out(void);

#endif							/* TACHO_GIVEN_NAMES_H */
