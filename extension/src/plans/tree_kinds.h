/*
 * tree_kinds.h
 *	  Version, flags and kinds of nodes in the bytes of a plan (docs/format.md,
 *	  "Trees of plans").
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TREE_KINDS_H
#define TACHO_TREE_KINDS_H

#include "nodes/plannodes.h"

#define TREE_VERSION	1
#define TREE_CUT	1			/* flag: nodes are missing */
#define TREE_INPUTS	2			/* flag: with settings and sizes of tables */
#define TREE_GENERIC	4			/* flag: planned for any values of its parameters */
#define TREE_CUSTOM	8			/* flag: planned for given values */
#define TREE_ADVISABLE	16			/* flag: subplans have the names of pg_plan_advice */
#define TREE_ADVICE_NAMES	32		/* flag: relations too have them */

/* Kinds of nodes. No number is used again for another kind. */
typedef enum TreeKind
{
	TREE_OTHER = 0, TREE_RESULT, TREE_PROJECT_SET, TREE_MODIFY_TABLE, TREE_APPEND,
	TREE_MERGE_APPEND, TREE_RECURSIVE_UNION, TREE_BITMAP_AND, TREE_BITMAP_OR,
	TREE_SEQ_SCAN, TREE_SAMPLE_SCAN, TREE_INDEX_SCAN, TREE_INDEX_ONLY_SCAN,
	TREE_BITMAP_INDEX_SCAN, TREE_BITMAP_HEAP_SCAN, TREE_TID_SCAN, TREE_TID_RANGE_SCAN,
	TREE_SUBQUERY_SCAN, TREE_FUNCTION_SCAN, TREE_VALUES_SCAN, TREE_TABLE_FUNCTION_SCAN,
	TREE_CTE_SCAN, TREE_NAMED_TUPLESTORE_SCAN, TREE_WORK_TABLE_SCAN, TREE_FOREIGN_SCAN,
	TREE_CUSTOM_SCAN, TREE_NESTED_LOOP, TREE_MERGE_JOIN, TREE_HASH_JOIN, TREE_MATERIALIZE,
	TREE_MEMOIZE, TREE_SORT, TREE_INCREMENTAL_SORT, TREE_GROUP, TREE_AGGREGATE,
	TREE_WINDOW_AGG, TREE_UNIQUE, TREE_GATHER, TREE_GATHER_MERGE, TREE_HASH, TREE_SET_OP,
	TREE_LOCK_ROWS, TREE_LIMIT
} TreeKind;

typedef struct TreeNode
{
	TreeKind	kind;
	/* property within the kind, such as the join type */
	int			detail;
} TreeNode;

extern TreeNode tree_node_of(const Plan *plan);

/* True for the nodes that read rows from a relation or another source. */
static inline bool
tree_node_is_scan(TreeNode node)
{
	return node.kind >= TREE_SEQ_SCAN && node.kind <= TREE_CUSTOM_SCAN;
}

#endif							/* TACHO_TREE_KINDS_H */
