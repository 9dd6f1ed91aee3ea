/*
 * secrets.h
 *	  Passwords and their like in the texts of utility statements.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SECRETS_H
#define TACHO_SECRETS_H

#include "nodes/plannodes.h"

/*
 * Whether the text of a utility statement may hold a secret: by what the
 * statement is, or by a word in it such as "password". `location` and `length`
 * say where it stands in `string`, as in PlannedStmt.
 */
extern bool secrets_in(const Node *statement, const char *string,
					   int location, int length);

/*
 * The text to count a command with: what the client sent, or, where that may
 * hold a secret, without any literal; then NULL when there is no memory. Made
 * before the command is executed: where errors are handled nothing may fail.
 * Never raises an error. To be given back by secrets_command_free(); no
 * transaction ends its life.
 */
typedef struct CommandText
{
	const char *string;			/* NULL = none */
	int			location;
	int			length;
	char	   *masked;			/* NULL = string is what the client sent */
} CommandText;

extern CommandText secrets_command_text(const PlannedStmt *pstmt,
										const char *string);
extern void secrets_command_free(const CommandText *text);

#endif							/* TACHO_SECRETS_H */
