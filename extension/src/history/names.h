/*
 * names.h
 *	  Names of databases, roles, wait events and kinds of processes.
 *
 * Looking up a name may need a lock or the shared catalogs, so it happens
 * between two scans. A scan calls names_want_*() for each name it needs.
 * names_resolve() then looks up all of them, and names_get_*() answer from
 * memory. A name that was not found is tried again later. A known name is read
 * again after a minute, so that a renamed database is noticed. A dropped
 * database or role keeps its name.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_NAMES_H
#define TACHO_NAMES_H

#include "core/compat.h"
#include "core/tacho.h"
#include "history/model.h"

/* Makes the caches in the current memory context. */
extern void names_init(void);

/*
 * Called once a tick, before the first names_want_*(): reads the clock and
 * empties caches that have become too large. Once a second it reads
 * invalidation messages, which say that databases or roles have changed.
 */
extern void names_begin(void);

/* A number that changes when databases or roles have changed. */
extern uint64 names_changes(void);

/* Clock for the age of names, which setting the wall clock does not change. */
extern int64 names_clock_ms(void);

/* Add a name to the list that the next names_resolve() looks up. */
extern void names_want_database(Oid database);
extern void names_want_role(Oid role);
extern void names_want_wait(uint32 number);

/*
 * Looks up the wanted names in short transactions: one for databases, one for
 * roles, one for wait events. Waits only a moment for a lock. Raises no error:
 * a name whose lookup fails stays pending.
 */
extern void names_resolve(void);

/* Number of names that were wanted and are not known yet. */
extern int	names_pending(void);

/* The name, or NULL while it is not known; *encoding describes its bytes. */
extern const char *names_get_database(Oid database, int *encoding);
extern const char *names_get_role(Oid role, int *encoding);

/* Encoding of the data in a database, 0 (SQL_ASCII) while it is not known. */
extern int	names_database_encoding(Oid database);

/* Class and name of a wait event; never NULL. */
extern void names_get_wait(uint32 number, const char **type,
						   const char **event);

/*
 * Type of a process as pg_stat_activity shows it, in a buffer of the caller.
 * For a background worker it takes the lock of background workers.
 */
extern void names_backend_type(int pid, BackendType type, char *buffer,
							   Size size);

/* Category of a process; `type_name` comes from names_backend_type(). */
extern Category names_category(BackendType type, const char *type_name,
							   BackendType leader);

/* Client address in digits, "[local]", or "" if there is none. */
extern void names_client_addr(const SockAddr *addr, char *buffer, Size size);

/* The encoding to record for bytes of unknown encoding. */
extern int	names_guess_encoding(const char *bytes, int length);

/* Processes pending invalidation messages of the server; raises no error. */
extern void names_catch_up(void);

#endif							/* TACHO_NAMES_H */
