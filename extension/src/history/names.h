/*
 * names.h
 *	  Names of databases, roles, wait events and kinds of processes.
 *
 * Looking one up may need a lock or the shared catalogs, so it is done
 * between two scans: what a scan needs is asked for with names_want_*(),
 * names_resolve() looks everything up at once, and names_get_*() answer from
 * memory. A name that could not be found yet is tried again later; one that
 * was found is looked up again once a minute, so that a renamed database is
 * noticed; a dropped one keeps its name.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_NAMES_H
#define TACHO_NAMES_H

#include "core/compat.h"
#include "core/tacho.h"
#include "history/model.h"

/* Sets up the caches in the current memory context. */
extern void names_init(void);

/*
 * Before names are asked for, once a tick: reads the clock, empties caches that
 * have become too large, and hears, once a second, which databases and roles
 * have changed.
 */
extern void names_begin(void);

/* Differs from an earlier answer when databases or roles have changed. */
extern uint64 names_changes(void);

/* The clock that says how long a name is valid; a set wall clock is not it. */
extern int64 names_clock_ms(void);

/* Notes what the next names_resolve() should look up. */
extern void names_want_database(Oid database);
extern void names_want_role(Oid role);
extern void names_want_wait(uint32 number);

/*
 * Looks up what was asked for, in one short transaction that waits for no
 * lock longer than a moment. Raises no error: what fails stays pending.
 */
extern void names_resolve(void);

/* Names that were asked for and not found yet. */
extern int	names_pending(void);

/* The name, or NULL while it is not known. *encoding is that of the bytes. */
extern const char *names_get_database(Oid database, int *encoding);
extern const char *names_get_role(Oid role, int *encoding);

/* Encoding of the data in a database, 0 (SQL_ASCII) while it is not known. */
extern int	names_database_encoding(Oid database);

/* Class and name of a wait event; never NULL. */
extern void names_get_wait(uint32 number, const char **type,
						   const char **event);

/*
 * Type as pg_stat_activity shows it, in a buffer of the caller. Takes the
 * lock of the background workers for one of them.
 */
extern void names_backend_type(int pid, BackendType type, char *buffer,
							   Size size);

/* Category of a process; `type_name` as names_backend_type() tells it. */
extern Category names_category(BackendType type, const char *type_name,
							   BackendType leader);

/* Client address in numbers, "[local]", or "" when there is none. */
extern void names_client_addr(const SockAddr *addr, char *buffer, Size size);

/* The encoding to record for bytes whose encoding nobody knows. */
extern int	names_guess_encoding(const char *bytes, int length);

/* Takes part in the server's invalidation traffic; raises no error. */
extern void names_catch_up(void);

#endif							/* TACHO_NAMES_H */
