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
 * Members of the extension, as a list of function OIDs, that call its own
 * library; NIL where the extension is not installed. Inside a transaction.
 */
extern List *statements_contrib_members(void);

/*
 * Whether a utility command, which is about to run, may give this database
 * functions of the extension that tacho is to answer for. If so,
 * statements_adopt_members() is called when the command has run. False for any
 * other command at the cost of a comparison.
 */
extern bool statements_adopts(const Node *statement);

/*
 * Makes the extension's functions call tacho, those that it has. In the
 * transaction of the command: both are seen, or none. May raise an error, as
 * the command itself.
 */
extern void statements_adopt_members(void);

#endif							/* TACHO_STATEMENTS_MEMBERS_H */
