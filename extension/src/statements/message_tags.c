/*
 * message_tags.c
 *	  Hooks that see the messages of a client, for their tags.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "core/compat.h"
#include "core/hot.h"
#include "statements/hooks.h"
#include "statements/message_tags.h"
#include "statements/running_tags.h"

static HOT_DATA post_parse_analyze_hook_type previous_analyze = NULL;
static HOT_DATA planner_hook_type previous_planner = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

static pg_attribute_hot void
on_analyze(ParseState *pstate, Query *query, CompatJumble *jumble)
{
	const char *text = pstate->p_sourcetext;

	/* not the text of a function that is analysed while a plan is made */
	if (text == debug_query_string && text != NULL && hooks_at_toplevel())
	{
		if (unlikely(comment_tags_may_be(text)))
			running_tags_message(text);
		else
		{
			tags_message = text;
			tags_message_hash = 0;
		}
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

static pg_attribute_hot PlannedStmt *
on_plan(COMPAT_PLANNER_PARAMS)
{
	/* the query of DECLARE has the message's text, but not its level */
	if (query_string != NULL && unlikely(running_tags_may_be(query_string)) &&
		(query_string == tags_message || hooks_at_toplevel()))
		return plan_with_tags(COMPAT_PLANNER_ARGS);
	return previous_planner ?
		previous_planner(COMPAT_PLANNER_ARGS) : standard_planner(COMPAT_PLANNER_ARGS);
}

static void
on_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
		   ProcessUtilityContext context, ParamListInfo params,
		   QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	ProcessUtility_hook_type next = previous_utility ? previous_utility : standard_ProcessUtility;

	if (context == PROCESS_UTILITY_TOPLEVEL && hooks_at_toplevel() &&
		running_tags_may_be(queryString))
		running_tags_message(queryString);
	next(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
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
