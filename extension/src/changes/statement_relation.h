/*
 * statement_relation.h
 *	  The OID of the relation that a utility statement names.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_RELATION_H
#define TACHO_STATEMENT_RELATION_H

#include "nodes/nodes.h"

/*
 * True if the statement makes a relation, which has no OID before the
 * statement ends.
 */
extern bool statement_creates(const Node *statement);

/*
 * The OID of the table, index, view or sequence that the statement names. 0
 * if it names none, several, or one that does not exist. Searches the caches
 * of the catalogs, checks no privilege and takes no lock.
 */
extern Oid	statement_relation(const Node *statement);

/*
 * True if all relations that the statement changes are temporary ones, which
 * exist. Searches as statement_relation() does.
 */
extern bool statement_changes_temporary(const Node *statement);

/*
 * Sets schema and name of the table whose index `index` a DROP INDEX or REINDEX
 * INDEX names. False for other statements.
 */
extern bool statement_index_table(const Node *statement, Oid index,
								  const char **schema, const char **table);

#endif							/* TACHO_STATEMENT_RELATION_H */
