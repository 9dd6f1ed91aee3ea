/*
 * statement_target.h
 *	  The object that a utility statement creates, changes or drops, as text.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_TARGET_H
#define TACHO_STATEMENT_TARGET_H

#include "nodes/nodes.h"

#define COMMAND_BYTES	40
#define CLASS_BYTES		32
#define OBJECT_BYTES	160
#define REST_BYTES		160

/* Texts of a statement. A long text is cut; a missing one is empty. */
typedef struct StatementTarget
{
	char		command[COMMAND_BYTES]; /* the tag, or ALTER SYSTEM SET or
										 * RESET */
	char		object_class[CLASS_BYTES];	/* table, materialized view,
											 * setting */
	char		object[OBJECT_BYTES];	/* public.orders; a, b and 3 more */
	char		rest[REST_BYTES];	/* on public.orders; to old_orders */
} StatementTarget;

/*
 * Copies the names as the statement has them. CREATE INDEX i ON s.t gives
 * "CREATE INDEX", "index", "i" and "on s.t". Reads only the parse tree: no
 * catalog, no allocation, no error.
 */
extern void statement_target(Node *statement, StatementTarget *target);

/*
 * The statement that a utility statement executes: CREATE TABLE AS for EXPLAIN
 * ANALYZE CREATE TABLE AS. Mostly the statement itself.
 */
extern Node *statement_executed(Node *statement);

/*
 * True if the statement is about temporary objects only, as far as its parse
 * tree shows.
 */
extern bool statement_is_temporary(const Node *statement);

/*
 * True for a statement with IF EXISTS or IF NOT EXISTS, and for CLUSTER and REINDEX of
 * all tables.
 */
extern bool statement_may_do_nothing(const Node *statement);

#endif							/* TACHO_STATEMENT_TARGET_H */
