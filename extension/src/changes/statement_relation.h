/*
 * statement_relation.h
 *	  The OID of the relation that a utility statement is about.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_RELATION_H
#define TACHO_STATEMENT_RELATION_H

#include "nodes/nodes.h"

/* Whether it makes a relation: then the OID is known when it has ended. */
extern bool statement_creates(const Node *statement);

/*
 * The table, index, view or sequence that the statement names, 0 if it names none,
 * several, or one that is not there. Looks names up in the caches of the catalogs,
 * checks no right and takes no lock.
 */
extern Oid	statement_relation(const Node *statement);

#endif							/* TACHO_STATEMENT_RELATION_H */
