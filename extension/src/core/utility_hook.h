/*
 * utility_hook.h
 *	  The parameters of ProcessUtility_hook, and the same as arguments.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_UTILITY_HOOK_H
#define TACHO_UTILITY_HOOK_H

#include "tcop/utility.h"

#define UTILITY_PARAMS \
	PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, \
	ProcessUtilityContext context, ParamListInfo params, \
	QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc
#define UTILITY_ARGS \
	pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc

#endif							/* TACHO_UTILITY_HOOK_H */
