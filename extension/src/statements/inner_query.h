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
 * The query inside of EXPLAIN, CREATE TABLE AS and DECLARE CURSOR does not say
 * where it stands in `source` up to 17, nor always from 18 on. So its text would
 * be the whole message, with the literals of all other statements. Here such a
 * query gets the place of its command. Called when the command has been analysed.
 */
extern void inner_query_place(Query *command, const char *source);

#endif							/* TACHO_INNER_QUERY_H */
