/*
 * inner_query.c
 *	  Position in the client's message of the query inside a utility command.
 *
 * Called by hooks. Locking: none. Memory: none.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "parser/scansup.h"

#include "statements/inner_query.h"

/* The query inside of a command, or NULL. */
static Query *
inner_query(const Node *command)
{
	Node	   *inner;

	if (command == NULL)
		return NULL;
	switch (nodeTag(command))
	{
		case T_ExplainStmt:
			inner = ((const ExplainStmt *) command)->query;
			break;
		case T_CreateTableAsStmt:
			inner = ((const CreateTableAsStmt *) command)->query;
			break;
		case T_DeclareCursorStmt:
			inner = ((const DeclareCursorStmt *) command)->query;
			break;
		default:
			return NULL;
	}
	return inner != NULL && IsA(inner, Query) ? (Query *) inner : NULL;
}

/*
 * True if `source` contains only the command. Then its text is the whole
 * message, as in pg_stat_statements.
 */
static bool
is_alone(const Query *command, const char *source)
{
	const char *rest = source + command->stmt_len;

	if (command->stmt_location > 0)
		return false;
	if (command->stmt_location < 0 || command->stmt_len <= 0)
		return true;
	while (*rest == ';' || scanner_isspace(*rest))
		rest++;
	return *rest == '\0';
}

/* True if a query has a position, and this lies inside of the command. */
static bool
is_placed(const Query *inner, const Query *command)
{
	if (inner->stmt_len <= 0 || inner->stmt_location < command->stmt_location)
		return false;
	return command->stmt_len <= 0 ||
		inner->stmt_location + inner->stmt_len <=
		command->stmt_location + command->stmt_len;
}

void
inner_query_place(Query *command, const char *source)
{
	Query	   *inner = command;

	if (command->utilityStmt == NULL || source == NULL ||
		is_alone(command, source))
		return;
	while ((inner = inner_query(inner->utilityStmt)) != NULL)
	{
		if (is_placed(inner, command))
			continue;
		inner->stmt_location = command->stmt_location;
		inner->stmt_len = command->stmt_len;
	}
}
