/*
 * tree_kinds.c
 *	  The kinds of nodes in the bytes of a plan (docs/format.md, "Trees of
 *	  plans").
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/compat.h"
#include "plans/tree_kinds.h"

/*
 * Number of a join type in files. The server's numbers differ between
 * versions.
 */
static int
join_type(int type)
{
	if (type == COMPAT_JOIN_RIGHT_SEMI)
		return 6;
	if (type == COMPAT_JOIN_RIGHT_ANTI)
		return 7;
	return type <= JOIN_ANTI ? type : 15;
}

/* Number of a command in files. */
static int
operation(CmdType command)
{
	switch (command)
	{
		case CMD_INSERT:
			return 1;
		case CMD_UPDATE:
			return 2;
		case CMD_DELETE:
			return 3;
		case CMD_MERGE:
			return 4;
		default:
			return 0;
	}
}

/*
 * Detail of an aggregation in files: the strategy, with 0x10 if it gives
 * partial results and 0x20 if it combines them.
 */
static int
aggregation(const Agg *node)
{
	return node->aggstrategy |
		(DO_AGGSPLIT_SKIPFINAL(node->aggsplit) ? 0x10 : 0) |
		(DO_AGGSPLIT_COMBINE(node->aggsplit) ? 0x20 : 0);
}

static inline int
backward(ScanDirection direction)
{
	return direction == BackwardScanDirection;
}

static TreeNode
scan_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
			return (TreeNode) {TREE_SEQ_SCAN};
		case T_SampleScan:
			return (TreeNode) {TREE_SAMPLE_SCAN};
		case T_IndexScan:
			return (TreeNode) {TREE_INDEX_SCAN, backward(((const IndexScan *) plan)->indexorderdir)};
		case T_IndexOnlyScan:
			return (TreeNode) {TREE_INDEX_ONLY_SCAN, backward(((const IndexOnlyScan *) plan)->indexorderdir)};
		case T_BitmapIndexScan:
			return (TreeNode) {TREE_BITMAP_INDEX_SCAN};
		case T_BitmapHeapScan:
			return (TreeNode) {TREE_BITMAP_HEAP_SCAN};
		case T_TidScan:
			return (TreeNode) {TREE_TID_SCAN};
		case T_TidRangeScan:
			return (TreeNode) {TREE_TID_RANGE_SCAN};
		case T_SubqueryScan:
			return (TreeNode) {TREE_SUBQUERY_SCAN};
		case T_FunctionScan:
			return (TreeNode) {TREE_FUNCTION_SCAN};
		case T_ValuesScan:
			return (TreeNode) {TREE_VALUES_SCAN};
		case T_TableFuncScan:
			return (TreeNode) {TREE_TABLE_FUNCTION_SCAN};
		case T_CteScan:
			return (TreeNode) {TREE_CTE_SCAN};
		case T_NamedTuplestoreScan:
			return (TreeNode) {TREE_NAMED_TUPLESTORE_SCAN};
		case T_WorkTableScan:
			return (TreeNode) {TREE_WORK_TABLE_SCAN};
		case T_ForeignScan:
			return (TreeNode) {TREE_FOREIGN_SCAN, operation(((const ForeignScan *) plan)->operation)};
		case T_CustomScan:
			return (TreeNode) {TREE_CUSTOM_SCAN};
		default:
			return (TreeNode) {TREE_OTHER};
	}
}

TreeNode
tree_node_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return (TreeNode) {TREE_RESULT};
		case T_ProjectSet:
			return (TreeNode) {TREE_PROJECT_SET};
		case T_ModifyTable:
			return (TreeNode) {TREE_MODIFY_TABLE, operation(((const ModifyTable *) plan)->operation)};
		case T_Append:
			return (TreeNode) {TREE_APPEND};
		case T_MergeAppend:
			return (TreeNode) {TREE_MERGE_APPEND};
		case T_RecursiveUnion:
			return (TreeNode) {TREE_RECURSIVE_UNION};
		case T_BitmapAnd:
			return (TreeNode) {TREE_BITMAP_AND};
		case T_BitmapOr:
			return (TreeNode) {TREE_BITMAP_OR};
		case T_NestLoop:
			return (TreeNode) {TREE_NESTED_LOOP, join_type(((const Join *) plan)->jointype)};
		case T_MergeJoin:
			return (TreeNode) {TREE_MERGE_JOIN, join_type(((const Join *) plan)->jointype)};
		case T_HashJoin:
			return (TreeNode) {TREE_HASH_JOIN, join_type(((const Join *) plan)->jointype)};
		case T_Material:
			return (TreeNode) {TREE_MATERIALIZE};
		case T_Memoize:
			return (TreeNode) {TREE_MEMOIZE};
		case T_Sort:
			return (TreeNode) {TREE_SORT};
		case T_IncrementalSort:
			return (TreeNode) {TREE_INCREMENTAL_SORT};
		case T_Group:
			return (TreeNode) {TREE_GROUP};
		case T_Agg:
			return (TreeNode) {TREE_AGGREGATE, aggregation((const Agg *) plan)};
		case T_WindowAgg:
			return (TreeNode) {TREE_WINDOW_AGG};
		case T_Unique:
			return (TreeNode) {TREE_UNIQUE};
		case T_Gather:
			return (TreeNode) {TREE_GATHER};
		case T_GatherMerge:
			return (TreeNode) {TREE_GATHER_MERGE};
		case T_Hash:
			return (TreeNode) {TREE_HASH};
		case T_SetOp:
			return (TreeNode) {TREE_SET_OP, ((const SetOp *) plan)->cmd |
				(((const SetOp *) plan)->strategy == SETOP_HASHED ? 0x10 : 0)};
		case T_LockRows:
			return (TreeNode) {TREE_LOCK_ROWS};
		case T_Limit:
			return (TreeNode) {TREE_LIMIT};
		default:
			return scan_of(plan);
	}
}
