/*
 * statement_target.h
 *	  The object that a utility statement creates, changes or drops, in words.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_TARGET_H
#define TACHO_STATEMENT_TARGET_H

#include "nodes/nodes.h"

#define COMMAND_BYTES	40
#define CLASS_BYTES		32
#define OBJECT_BYTES	160
#define REST_BYTES		136

/* Words of a statement; what does not fit is cut, what it lacks is empty. */
typedef struct StatementTarget
{
	char		command[COMMAND_BYTES]; /* its tag; ALTER SYSTEM SET, ALTER SYSTEM RESET */
	char		object_class[CLASS_BYTES];	/* table, materialized view, setting */
	char		object[OBJECT_BYTES];	/* names: public.orders; a, b and 3 more */
	char		rest[REST_BYTES];	/* on public.orders; to old_orders */
} StatementTarget;

/*
 * Takes the names as the statement has them. CREATE INDEX i ON s.t gives "CREATE
 * INDEX", "index", "i" and "on s.t". Reads the parse tree alone: no catalog, no
 * memory, no error.
 */
extern void statement_target(Node *statement, StatementTarget *target);

/* Whether it is about temporary objects alone, as far as the statement says. */
extern bool statement_is_temporary(const Node *statement);

#endif							/* TACHO_STATEMENT_TARGET_H */
