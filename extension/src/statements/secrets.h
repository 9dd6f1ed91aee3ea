/*
 * secrets.h
 *	  Passwords and other secrets in the texts of utility statements.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SECRETS_H
#define TACHO_SECRETS_H

#include "nodes/plannodes.h"

#include "core/settings.h"
#include "statements/statements.h"

/*
 * True if the text of a utility statement may hold a secret: by the kind of
 * statement, or by a word in it such as "password". `location` and `length`
 * are its place in `string`, as in PlannedStmt.
 */
extern bool secrets_in(const Node *statement, const char *string,
					   int location, int length);

/* True if all literals of utility statements are removed; see secrets.c. */
static inline bool
secrets_mask_all(void)
{
	return tacho_query_text != QUERY_TEXT_RAW && !tacho_pg_stat_statements;
}

/*
 * The text for counting a command: the client's string, or the same without
 * literals. NULL if the text is `known`, or if there is no memory. Make it
 * before the command is executed, because nothing may fail while an error is
 * handled. Never raises an error. Free it with secrets_command_free(); the
 * end of a transaction does not.
 */
typedef struct CommandText
{
	StatementSource source;		/* .string NULL = no text */
	char	   *masked;			/* NULL = the client's string */
} CommandText;

extern CommandText secrets_command_text(const PlannedStmt *pstmt,
										const char *string, bool known);
extern void secrets_command_free(const CommandText *text);

#endif							/* TACHO_SECRETS_H */
