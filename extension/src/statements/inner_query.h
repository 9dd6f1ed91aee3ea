/*
 * inner_query.h
 *	  The place of the query inside of a utility command in its message.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_INNER_QUERY_H
#define TACHO_INNER_QUERY_H

#include "nodes/parsenodes.h"

/*
 * Gives the query inside of EXPLAIN, CREATE TABLE AS or DECLARE CURSOR the
 * place of its command in `source`. Up to 17 such a query has no place, and
 * from 18 on not always. Its text would then be the whole message, with the
 * literals of all other statements. Call it when the command has been
 * analysed.
 */
extern void inner_query_place(Query *command, const char *source);

#endif							/* TACHO_INNER_QUERY_H */
