/*
 * dictionary.h
 *	  Gives ids to names, waits, statements, sessions and entries of the
 *	  statistics of statements, and defines them in
 *	  the frame that uses them.
 *
 * An entry is defined in the frame of first use, again when it is used a
 * minute after its last definition, and after dictionary_redefine(). Ids
 * ascend and are never used twice in a life of the sampler. When a dictionary
 * becomes too large all are emptied between two frames: pointers to entries
 * are valid until dictionary_epoch() changes.
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

/* What makes a session entry; compared byte by byte: zero it first. */
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

/* What makes an entry of statistics; compared likewise. */
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
 * Later definitions go into `frame`; `boot_ms` is a clock that never goes
 * back. Empties dictionaries that have become too large.
 */
extern void dictionary_begin_frame(Frame *frame, int64 boot_ms);

/* Everything has to be defined again: frames were lost, or the writer. */
extern void dictionary_redefine(void);

/* Changes whenever all entries have been forgotten. */
extern uint64 dictionary_epoch(void);

/*
 * The entry of a string, without defining it; NULL for an empty one. The
 * encoding of a text is guessed. The id of an entry, 0 for NULL, defining it if
 * need be.
 */
extern NameEntry *dictionary_find_name(const char *bytes, int length,
									   int encoding);
extern NameEntry *dictionary_find_text(const char *text);
extern uint64 dictionary_use_name(NameEntry *entry);

/* The bytes of a name, not terminated; those of NULL are a question mark. */
extern const char *dictionary_bytes(const NameEntry *entry, int *length);

/* Both at once. */
extern uint64 dictionary_name(const char *bytes, int length, int encoding);
extern uint64 dictionary_text(const char *text);

extern SessionEntry *dictionary_find_session(const SessionKey *key);
extern uint64 dictionary_use_session(SessionEntry *entry);

/* Ids of a wait event and of a statement, 0 for none. */
extern uint64 dictionary_wait(uint32 number);
extern uint64 dictionary_statement(int64 query_id, int64 plan_id,
								   uint64 text_key);

/* Id of an entry of statistics. */
extern uint64 dictionary_stats_entry(const StatsEntryKey *key);

#endif							/* TACHO_DICTIONARY_H */
