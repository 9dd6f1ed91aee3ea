/*
 * plan_tree.h
 *	  The nodes of a plan as bytes (docs/format.md, "Trees of plans").
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_TREE_H
#define TACHO_PLAN_TREE_H

#include "plans/plan_actuals.h"

#define PLAN_TREE_MOST	(32 * 1024)		/* bytes of a tree */
#define PLAN_TREE_LEAST	2				/* bytes before the first node */

/* Texts of a node in files (docs/format.md); 0 ends them. */
typedef enum TreeText
{
	TEXT_RELATION = 1, TEXT_SCHEMA, TEXT_ALIAS, TEXT_INDEX, TEXT_SUBPLAN, TEXT_NAME,
	TEXT_WORKERS, TEXT_SORT_KEY, TEXT_PRESORTED_KEY, TEXT_GROUP_KEY, TEXT_CACHE_KEY,
	TEXT_HASH_COND, TEXT_MERGE_COND, TEXT_INDEX_COND, TEXT_RECHECK_COND, TEXT_TID_COND,
	TEXT_ORDER_BY, TEXT_JOIN_FILTER, TEXT_ONE_TIME_FILTER, TEXT_RUN_CONDITION,
	TEXT_FILTER, TEXT_REMOVED, TEXT_RELATION_OID, TEXT_SETTING, TEXT_TABLE_ROWS,
	TEXT_TABLE_PAGES, TEXT_QUERY_ALIAS, TEXT_PARTITION,
	TEXT_ACTUAL_ROWS = 30, TEXT_ACTUAL_LOOPS, TEXT_STOPPED, TEXT_NOT_LISTED,
	TEXT_OCCURRENCE, TEXT_QUERY_LEVEL, TEXT_ELIDED, TEXT_APPENDED, TEXT_ANALYZED
} TreeText;

/* Decimal digits of TEXT_ANALYZED, us since 1970: enough until 2286. */
#define ANALYZED_DIGITS	16

/*
 * Writes the nodes of an execution that has been started, and not yet ended.
 * `end`: with the rows that its nodes have counted, unless PLAN_NOT_COUNTED.
 * Nodes that do not fit are left out, and the tree says so. Returns the number
 * of bytes, 0 if memory is short or the execution has no nodes. `bytes` must
 * have room for PLAN_TREE_MOST.
 *
 * Raises no error, and waits for nothing. The tree has no value of the
 * query (plan_expression.h).
 */
extern int	plan_tree_write(const QueryDesc *query, PlanEnd end, char *bytes);

#endif							/* TACHO_PLAN_TREE_H */
