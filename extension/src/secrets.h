/*
 * secrets.h
 *	  Passwords and their like in the texts of utility statements.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SECRETS_H
#define TACHO_SECRETS_H

#include "nodes/nodes.h"

/*
 * Whether the text of a utility statement may hold a secret: by what the
 * statement is, or by a word in it such as "password". `location` and `length`
 * say where it stands in `string`, as in PlannedStmt.
 */
extern bool secrets_in(const Node *statement, const char *string,
					   int location, int length);

/*
 * The text of such a statement without any literal, or NULL when there is no
 * memory. To be freed with pfree(); no transaction ends its life. Never raises
 * an error; must not be called while one is being handled.
 */
extern char *secrets_mask(const char *string, int location, int length);

#endif							/* TACHO_SECRETS_H */
