/*
 * inner_query.h
 *	  Where the query inside of a utility command stands in its message.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_INNER_QUERY_H
#define TACHO_INNER_QUERY_H

#include "nodes/parsenodes.h"

/*
 * Up to 17 the query inside of EXPLAIN, CREATE TABLE AS and DECLARE CURSOR does
 * not say where it stands in `source`, so its text would be the whole message,
 * with the literals of all other statements. Here it gets the place of its
 * command, as in 18. Called when the command has been analysed.
 */
extern void inner_query_place(Query *command, const char *source);

#endif							/* TACHO_INNER_QUERY_H */
