/*
 * schema_change.h
 *	  Passes changes of the schema from backends to the sampler.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SCHEMA_CHANGE_H
#define TACHO_SCHEMA_CHANGE_H

#include "datatype/timestamp.h"
#include "libpq/pqcomm.h"

#include "changes/statement_target.h"

/* How the transaction of a change ended. */
typedef enum SchemaOutcome
{
	/* values of enumeration "outcome" */
	SCHEMA_COMMITTED,			/* also in part, by a statement that failed */
	SCHEMA_PREPARED,			/* by PREPARE TRANSACTION */
	SCHEMA_ROLLED_BACK,			/* after running for a second or more */
} SchemaOutcome;

/* A statement that changed the schema. Strings in the database's encoding. */
typedef struct SchemaChange
{
	TimestampTz begin;			/* of the statement */
	TimestampTz end;			/* of its transaction */
	SchemaOutcome outcome;
	Oid			database;
	Oid			user;
	int			left_out;		/* later changes without a note */
	Oid			object;			/* OID of a relation, else 0 */
	StatementTarget target;
	char		application[NAMEDATALEN];
	SockAddr	client;			/* no family = not a client */
	int			encoding;		/* of the database */
} SchemaChange;

/* Installs the hooks and requests the shared memory. */
extern void schema_change_init(void);

/* Passes all changes that have ended to `take`, in no order. */
extern void schema_change_drain(void (*take) (const SchemaChange *change));

/*
 * The number of changes that found no slot since the last call. A sampler that
 * starts again goes on where the one before ended.
 */
extern uint64 schema_change_take_dropped(void);

#endif							/* TACHO_SCHEMA_CHANGE_H */
