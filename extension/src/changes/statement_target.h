/*
 * statement_target.h
 *	  The object that a utility statement creates, changes or drops, in words.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENT_TARGET_H
#define TACHO_STATEMENT_TARGET_H

#include "nodes/nodes.h"

/*
 * Writes the name as the statement has it: "public.orders", "orders_customer on
 * public.orders", "a, b and 3 more". Empty for a kind of statement without a name.
 * Reads the parse tree alone: no catalog, no memory, no error.
 */
extern void statement_target(const Node *statement, char *target, Size size);

/* Whether it is about temporary objects alone, as far as the statement says. */
extern bool statement_is_temporary(const Node *statement);

#endif							/* TACHO_STATEMENT_TARGET_H */
