/*
 * message_tags.c
 *	  Finds the messages of a client among all texts, for their tags.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"

#include "core/hot.h"
#include "statements/message_tags.h"
#include "statements/running_tags.h"

HOT_DATA TimestampTz message_tags_execute = 0;

/* True for EXECUTE, EXPLAIN EXECUTE and CREATE TABLE AS EXECUTE. */
static bool
has_execute(const Node *statement)
{
	const Node *query = statement;

	if (IsA(statement, ExplainStmt))
		query = ((const ExplainStmt *) statement)->query;
	else if (IsA(statement, CreateTableAsStmt))
		query = ((const CreateTableAsStmt *) statement)->query;
	if (query != NULL && IsA(query, Query))
		query = ((const Query *) query)->utilityStmt;
	return query != NULL && IsA(query, ExecuteStmt);
}

bool
message_tags_command(const PlannedStmt *command, const char *text,
					 ProcessUtilityContext context, bool toplevel)
{
	TimestampTz start;
	bool		is_execute;

	if (context != PROCESS_UTILITY_TOPLEVEL)
		return false;
	start = GetCurrentStatementStartTimestamp();
	is_execute = has_execute(command->utilityStmt);
	if (toplevel && running_tags_may_be(text, start))
		running_tags_message(text);
	if (is_execute)
		message_tags_execute = start;
	return is_execute;
}
