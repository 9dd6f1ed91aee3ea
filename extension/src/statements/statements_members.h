/*
 * statements_members.h
 *	  The functions of the extension pg_stat_statements in this database.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_MEMBERS_H
#define TACHO_STATEMENTS_MEMBERS_H

#include "nodes/nodes.h"
#include "nodes/pg_list.h"

#define STATEMENTS_CONTRIB "pg_stat_statements"

/*
 * OIDs of the extension's functions that call contrib's library. NIL if the
 * extension is not installed. Inside a transaction only.
 */
extern List *statements_contrib_members(void);

/*
 * True if a utility command that is about to run may give this database
 * functions of the extension that tacho shall answer for. If so,
 * statements_adopt_members() must be called when the command has run. For
 * other commands it is false, at the cost of a comparison.
 */
extern bool statements_adopts(const Node *statement);

/*
 * Makes the extension's functions call tacho, as far as tacho has them. Runs
 * in the transaction of the command, so that both become visible or neither
 * does. May raise an error, like the command itself.
 */
extern void statements_adopt_members(void);

#endif							/* TACHO_STATEMENTS_MEMBERS_H */
