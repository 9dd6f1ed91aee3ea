/*
 * catalog_shared.h
 *	  The request of the sampler to the catalog worker, and the worker's answer.
 *
 * One request at a time. The sampler writes the OIDs and starts a worker. The
 * worker connects to the database and writes a row for each table and each of
 * its indexes. A worker that starts too late finds that the
 * number of the request has changed.
 *
 * Locking: none. The phase says which process may use the other fields.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CATALOG_SHARED_H
#define TACHO_CATALOG_SHARED_H

#include "port/atomics.h"

#define CATALOG_ASKED	1000	/* most OIDs of a request */
#define CATALOG_ROWS	4096	/* most rows of an answer */

typedef enum CatalogPhase
{
	CATALOG_IDLE,				/* the sampler may ask */
	CATALOG_REQUESTED,			/* the worker may begin */
	CATALOG_READING,			/* the worker writes */
	CATALOG_ANSWERED			/* the worker ends; the sampler may read */
} CatalogPhase;

/* A table or index. Numbers are stored plus one; 0 = not known. */
typedef struct CatalogRow
{
	Oid			oid;
	Oid			table;			/* of an index, else 0 */
	int			kind;			/* RelationKind */
	bool		shared;			/* by all databases */
	uint64		bytes;			/* size of the main fork */
	uint64		rows;			/* pg_class.reltuples */
	char		schema[NAMEDATALEN];
	char		name[NAMEDATALEN];
} CatalogRow;

typedef struct CatalogShared
{
	pg_atomic_uint64 phase;		/* number of the request * 4 + phase */
	Oid			database;
	int			wanted_count;	/* at the begin of asked[]: did something */
	int			asked_count;
	Oid			asked[CATALOG_ASKED];
	int			encoding;		/* of the names */
	bool		whole;			/* the worker found room and time for all */
	int			row_count;
	CatalogRow	rows[CATALOG_ROWS];
} CatalogShared;

extern CatalogShared *catalog_shared;

/* Installs the hooks for the shared memory. */
extern void catalog_shared_init(void);

extern CatalogPhase catalog_phase(void);

/*
 * Changes the phase of request `number` if it is `from`. Returns false if it
 * is not.
 */
extern bool catalog_move(uint32 number, CatalogPhase from, CatalogPhase to);

/* The number of the last request. */
extern uint32 catalog_number(void);

/* Sampler: begins request `number` while the phase is CATALOG_IDLE. */
extern void catalog_request(uint32 number);

/*
 * False if DROP DATABASE, ALTER DATABASE or CREATE DATABASE ... TEMPLATE has
 * its lock on the database or waits for it. Tries a lock and does not wait.
 * Must be called in a transaction.
 */
extern bool catalog_database_is_free(Oid database);

#endif							/* TACHO_CATALOG_SHARED_H */
