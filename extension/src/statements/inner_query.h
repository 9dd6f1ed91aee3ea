/*
 * inner_query.h
 *	  Position in the client's message of the query inside a utility command.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_INNER_QUERY_H
#define TACHO_INNER_QUERY_H

#include "nodes/parsenodes.h"

/*
 * If the query inside of EXPLAIN, CREATE TABLE AS or DECLARE CURSOR has no
 * position in `source`, gives it the position of its command. Up to 17 such a
 * query never has one, and from 18 on not always. Its text would then be the
 * whole message, with the literals of all other statements. Call it when the
 * command has been analysed.
 */
extern void inner_query_place(Query *command, const char *source);

#endif							/* TACHO_INNER_QUERY_H */
