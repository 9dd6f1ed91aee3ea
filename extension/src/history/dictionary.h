/*
 * dictionary.h
 *	  Gives ids to names, waits, statements, sessions and entries of the
 *	  statistics of statements. Defines each id in the frame that uses it.
 *
 * The frame that first uses an entry defines it. A later frame that uses the
 * entry defines it again if the last definition is a minute old, or after
 * dictionary_redefine(). Ids ascend, and no id is used twice in a life of the
 * sampler. When one dictionary becomes too large, all are emptied between two
 * frames. Pointers to entries are valid until dictionary_epoch() changes.
 *
 * Memory: a context of its own. Out of memory raises an error.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_DICTIONARY_H
#define TACHO_DICTIONARY_H

#include "datatype/timestamp.h"

#include "history/frame.h"

typedef struct NameEntry NameEntry;
typedef struct SessionEntry SessionEntry;

/* Identifies a session. Keys are compared byte by byte: zero them first. */
typedef struct SessionKey
{
	TimestampTz backend_start;
	NameEntry  *backend_type;	/* names may be NULL */
	NameEntry  *database;
	NameEntry  *user;
	NameEntry  *application;
	NameEntry  *client_addr;
	Oid			database_oid;
	Oid			user_oid;
	int			pid;
	int			leader;
	int			category;
} SessionKey;

/* Identifies an entry of statistics; zero it first, too. */
typedef struct StatsEntryKey
{
	int64		query_id;
	NameEntry  *user;			/* names may be NULL */
	NameEntry  *database;
	Oid			user_oid;
	Oid			database_oid;
	uint64		toplevel;
} StatsEntryKey;

extern void dictionary_init(void);

/*
 * Sends later definitions to `frame`, and empties the dictionaries if one has
 * become too large. `boot_ms` is a clock that never goes back.
 */
extern void dictionary_begin_frame(Frame *frame, int64 boot_ms);

/*
 * Makes every entry of the dictionaries undefined, so that its next use
 * defines it again in the frame. Called when frames or the writer were lost,
 * and with them definitions.
 */
extern void dictionary_redefine(void);

/* Changes each time the dictionaries are emptied. */
extern uint64 dictionary_epoch(void);

/*
 * dictionary_find_* return the entry of a string without defining it, NULL
 * for an empty string; the encoding of a text is guessed.
 * dictionary_use_name() returns the id of an entry, 0 for NULL, and defines
 * it if necessary.
 */
extern NameEntry *dictionary_find_name(const char *bytes, int length,
									   int encoding);
extern NameEntry *dictionary_find_text(const char *text);
extern uint64 dictionary_use_name(NameEntry *entry);

/* The bytes of a name, not null-terminated; "?" for a NULL entry. */
extern const char *dictionary_bytes(const NameEntry *entry, int *length);

/* Find and use a string in one call. */
extern uint64 dictionary_name(const char *bytes, int length, int encoding);
extern uint64 dictionary_text(const char *text);

extern SessionEntry *dictionary_find_session(const SessionKey *key);
extern uint64 dictionary_use_session(SessionEntry *entry);

/* Ids of a wait event and of a statement, 0 for none; `tags` may be NULL. */
extern uint64 dictionary_wait(uint32 number);
extern uint64 dictionary_statement(int64 query_id, int64 plan_id,
								   uint64 text_key, NameEntry *tags);

/* Id of an entry of statistics. */
extern uint64 dictionary_stats_entry(const StatsEntryKey *key);

#endif							/* TACHO_DICTIONARY_H */
