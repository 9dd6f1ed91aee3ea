/*
 * secrets.h
 *	  Passwords and their like in the texts of utility statements.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SECRETS_H
#define TACHO_SECRETS_H

#include "nodes/plannodes.h"

#include "core/settings.h"
#include "statements/statements.h"

/*
 * Whether the text of a utility statement may hold a secret: by what the
 * statement is, or by a word in it such as "password". `location` and `length`
 * say where it stands in `string`, as in PlannedStmt.
 */
extern bool secrets_in(const Node *statement, const char *string,
					   int location, int length);

/* Whether utility statements are kept without any literal, see secrets.c. */
static inline bool
secrets_mask_all(void)
{
	return tacho_query_text != QUERY_TEXT_RAW && !tacho_pg_stat_statements;
}

/*
 * The text to count a command with: what the client sent, or that without any
 * literal; NULL when it is `known`, or there is no memory. Made before the command
 * is executed: where errors are handled nothing may fail. Never raises an error.
 * To be given back by secrets_command_free(); no transaction ends its life.
 */
typedef struct CommandText
{
	StatementSource source;		/* its string NULL = none */
	char	   *masked;			/* NULL = the string is what the client sent */
} CommandText;

extern CommandText secrets_command_text(const PlannedStmt *pstmt,
										const char *string, bool known);
extern void secrets_command_free(const CommandText *text);

#endif							/* TACHO_SECRETS_H */
