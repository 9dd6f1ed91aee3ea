/*
 * message_tags.c
 *	  Hooks that see the messages of a client, for their tags.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"

#include "core/compat.h"
#include "core/hot.h"
#include "core/utility_hook.h"
#include "statements/hooks.h"
#include "statements/message_tags.h"
#include "statements/running_tags.h"

static HOT_DATA post_parse_analyze_hook_type previous_analyze = NULL;
static HOT_DATA planner_hook_type previous_planner = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/* start of the message whose EXECUTE runs now; it is stale after an error */
static HOT_DATA TimestampTz execute_start = 0;

static inline bool
in_execute(void)
{
	return execute_start == GetCurrentStatementStartTimestamp();
}

static pg_attribute_hot void
on_analyze(ParseState *pstate, Query *query, CompatJumble *jumble)
{
	const char *text = pstate->p_sourcetext;

	/* not the text of a function that is analysed while a plan is made */
	if (text == debug_query_string && text != NULL && hooks_at_toplevel())
	{
		if (unlikely(running_tags_may_be(text)))
			running_tags_message(text);
		else
			running_tags_none(text);
	}
	if (previous_analyze)
		previous_analyze(pstate, query, jumble);
}

static PlannedStmt *
plan_with_tags(COMPAT_PLANNER_PARAMS)
{
	PlannedStmt *stmt = previous_planner ?
		previous_planner(COMPAT_PLANNER_ARGS) : standard_planner(COMPAT_PLANNER_ARGS);

	running_tags_note(stmt, query_string);
	return stmt;
}

/*
 * True if a text that is planned came from the client. Bind plans the text of
 * an earlier message, and EXECUTE the text of PREPARE. The query of DECLARE
 * has the message's text, but not its level. Any other text belongs to a
 * function, also at the top level: a deferred trigger runs there.
 */
static inline bool
is_of_client(const char *text)
{
	return running_tags_is_message(text) ||
		(hooks_at_toplevel() && (text == debug_query_string || in_execute()));
}

static pg_attribute_hot PlannedStmt *
on_plan(COMPAT_PLANNER_PARAMS)
{
	if (query_string != NULL && is_of_client(query_string) &&
		unlikely(running_tags_may_be(query_string)))
		return plan_with_tags(COMPAT_PLANNER_ARGS);
	return previous_planner ?
		previous_planner(COMPAT_PLANNER_ARGS) : standard_planner(COMPAT_PLANNER_ARGS);
}

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

static void
on_utility(UTILITY_PARAMS)
{
	ProcessUtility_hook_type next = previous_utility ? previous_utility : standard_ProcessUtility;
	bool		of_client = context == PROCESS_UTILITY_TOPLEVEL;
	bool		is_execute = of_client && has_execute(pstmt->utilityStmt);

	if (of_client && hooks_at_toplevel() &&
		running_tags_may_be(queryString))
		running_tags_message(queryString);
	if (is_execute)
		execute_start = GetCurrentStatementStartTimestamp();
	next(UTILITY_ARGS);
	if (is_execute)
		execute_start = 0;
}

void
message_tags_install(void)
{
	static bool installed = false;

	/* memory is made again after a crash, but the hooks are still installed */
	if (installed)
		return;
	installed = true;
	previous_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = on_analyze;
	previous_planner = planner_hook;
	planner_hook = on_plan;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = on_utility;
}
