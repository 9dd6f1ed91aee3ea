/*
 * plan_shape.c
 *	  The id of a plan: a hash of its shape.
 *
 * The number of a node is a hash of three things: its kind, the properties
 * that differ within the kind (relation, index, join type, strategy), and the
 * numbers of its inputs in order. ShapeKind numbers the kinds, because the
 * values of NodeTag differ between major versions.
 *
 * A partition counts as its root table. An index counts as its method,
 * columns and operator families (relation_shape.h), because each partition's
 * index has its own OID and name. So partitions that are scanned in the same
 * way have the same number, and an Append counts each number once. The
 * planner replaces an Append that has one input by this input. Therefore an
 * Append whose inputs all have the same number gets that number.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"

#include "core/compat.h"
#include "plans/plan_shape.h"
#include "plans/relation_shape.h"

#define MOST_NODES		2000	/* most nodes in an id */
#define MOST_SHAPES		64		/* most different inputs of an Append */

/* Kinds of nodes. No number is used again for another kind. */
typedef enum ShapeKind
{
	SHAPE_RESULT = 1, SHAPE_PROJECT_SET, SHAPE_MODIFY_TABLE, SHAPE_APPEND,
	SHAPE_MERGE_APPEND, SHAPE_RECURSIVE_UNION, SHAPE_BITMAP_AND, SHAPE_BITMAP_OR,
	SHAPE_SEQ_SCAN, SHAPE_SAMPLE_SCAN, SHAPE_INDEX_SCAN, SHAPE_INDEX_ONLY_SCAN,
	SHAPE_BITMAP_INDEX_SCAN, SHAPE_BITMAP_HEAP_SCAN, SHAPE_TID_SCAN,
	SHAPE_TID_RANGE_SCAN, SHAPE_SUBQUERY_SCAN, SHAPE_FUNCTION_SCAN,
	SHAPE_VALUES_SCAN, SHAPE_TABLE_FUNC_SCAN, SHAPE_CTE_SCAN,
	SHAPE_NAMED_TUPLESTORE_SCAN, SHAPE_WORK_TABLE_SCAN, SHAPE_FOREIGN_SCAN,
	SHAPE_CUSTOM_SCAN, SHAPE_NEST_LOOP, SHAPE_MERGE_JOIN, SHAPE_HASH_JOIN,
	SHAPE_MATERIAL, SHAPE_MEMOIZE, SHAPE_SORT, SHAPE_INCREMENTAL_SORT,
	SHAPE_GROUP, SHAPE_AGG, SHAPE_WINDOW_AGG, SHAPE_UNIQUE, SHAPE_GATHER,
	SHAPE_GATHER_MERGE, SHAPE_HASH, SHAPE_SET_OP, SHAPE_LOCK_ROWS, SHAPE_LIMIT,
	SHAPE_OTHER, SHAPE_CUT
} ShapeKind;

typedef struct Shape
{
	const PlannedStmt *stmt;
	int			nodes;			/* so far; partitions of one shape count once */
	Index	   *parents;		/* by range table entry, 0 = none; NULL = all
								 * 0 */
} Shape;

static uint64 shape_of_plan(Shape *shape, const Plan *plan);

/* --- relations */

/*
 * Makes an array with the parent of each partition or child table, both as
 * indexes of the range table. NULL if the statement has no such table.
 */
static Index *
make_parents(const PlannedStmt *stmt)
{
	Index	   *parents;
	ListCell   *cell;

	if (stmt->appendRelations == NIL)
		return NULL;
	parents = palloc0(sizeof(Index) * (list_length(stmt->rtable) + 1));
	foreach(cell, stmt->appendRelations)
	{
		const AppendRelInfo *info = lfirst_node(AppendRelInfo, cell);

		/* an arm of UNION ALL has no parent table */
		if (OidIsValid(info->parent_reloid))
			parents[info->child_relid] = info->parent_relid;
	}
	return parents;
}

static Index
root_of(const Shape *shape, Index relation)
{
	if (shape->parents != NULL)
		while (shape->parents[relation] != 0)
			relation = shape->parents[relation];
	return relation;
}

/* A partition counts as its root table. */
static uint64
mix_relation(const Shape *shape, uint64 sum, Index relation)
{
	const RangeTblEntry *entry;

	if (relation == 0)
		return shape_mix(sum, 0);
	entry = rt_fetch(root_of(shape, relation), shape->stmt->rtable);
	if (entry->rtekind != RTE_RELATION)
		return shape_mix(sum, entry->rtekind);
	return shape_mix(sum, relation_shape(entry->relid));
}

static uint64
mix_relations(const Shape *shape, uint64 sum, const Bitmapset *relations)
{
	int			relation = -1;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		sum = mix_relation(shape, sum, relation);
	return sum;
}

/* Mixes in the index columns that the conditions use, in their order. */
static uint64
mix_conditions(uint64 sum, const List *conditions)
{
	ListCell   *cell;

	foreach(cell, conditions)
	{
		const Node *column = lfirst(cell);

		if (IsA(column, OpExpr))
			column = linitial(((const OpExpr *) column)->args);
		else if (IsA(column, ScalarArrayOpExpr))
			column = linitial(((const ScalarArrayOpExpr *) column)->args);
		else if (IsA(column, RowCompareExpr))
			column = linitial(((const RowCompareExpr *) column)->largs);
		else if (IsA(column, NullTest))
			column = (const Node *) ((const NullTest *) column)->arg;
		if (IsA(column, RelabelType))
			column = (const Node *) ((const RelabelType *) column)->arg;
		sum = shape_mix(sum, IsA(column, Var) ? ((const Var *) column)->varattno : 0);
	}
	return sum;
}

/* --- subplans in expressions */

/*
 * Mixes in each use of a subplan: its number and whether its rows are hashed.
 * The subplan's own nodes are counted once, for the whole statement.
 */
static bool
mix_subplans(Node *node, void *sum)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		const SubPlan *use = (const SubPlan *) node;

		*(uint64 *) sum = shape_mix(*(uint64 *) sum, use->plan_id);
		*(uint64 *) sum = shape_mix(*(uint64 *) sum, use->subLinkType);
		*(uint64 *) sum = shape_mix(*(uint64 *) sum, use->useHashTable);
	}
	return expression_tree_walker(node, mix_subplans, sum);
}

/* --- nodes with several inputs */

static int
compare_shapes(const void *a, const void *b)
{
	uint64		left = *(const uint64 *) a;
	uint64		right = *(const uint64 *) b;

	return left < right ? -1 : left > right;
}

static bool
is_among(const uint64 *shapes, int count, uint64 wanted)
{
	for (int i = 0; i < count; i++)
		if (shapes[i] == wanted)
			return true;
	return false;
}

/*
 * Mixes in inputs whose order has no meaning, for example the inputs of an
 * Append. Each shape counts once.
 */
static uint64
shape_of_set(Shape *shape, uint64 sum, const List *plans)
{
	uint64		shapes[MOST_SHAPES];
	int			count = 0;
	ListCell   *cell;

	foreach(cell, plans)
	{
		int			nodes = shape->nodes;
		uint64		each = shape_of_plan(shape, lfirst(cell));

		if (is_among(shapes, count, each))
			shape->nodes = nodes;
		else if (count < MOST_SHAPES)
			shapes[count++] = each;
	}
	if (count == 1)
		return shapes[0];
	qsort(shapes, count, sizeof(uint64), compare_shapes);
	for (int i = 0; i < count; i++)
		sum = shape_mix(sum, shapes[i]);
	return sum;
}

/* Mixes in inputs whose order is part of the plan. */
static uint64
mix_plans(Shape *shape, uint64 sum, const List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
		sum = shape_mix(sum, lfirst(cell) ? shape_of_plan(shape, lfirst(cell)) : 0);
	return sum;
}

/* --- properties of a node */

static uint64
mix_keys(uint64 sum, int count, const AttrNumber *columns, const Oid *operators)
{
	sum = shape_mix(sum, count);
	for (int i = 0; i < count; i++)
		sum = shape_mix(shape_mix(sum, columns[i]), operators[i]);
	return sum;
}

static uint64
shape_of_modify(const Shape *shape, uint64 sum, const ModifyTable *node)
{
	Index		target = node->rootRelation ? node->rootRelation : linitial_int(node->resultRelations);
	ListCell   *cell;

	sum = shape_mix(shape_mix(sum, node->operation), node->onConflictAction);
	sum = mix_relation(shape, sum, target);
	if (node->mergeActionLists != NIL)
		foreach(cell, linitial(node->mergeActionLists))
			sum = shape_mix(sum, ((const MergeAction *) lfirst(cell))->commandType);
	return sum;
}

static uint64
shape_of_functions(uint64 sum, const List *functions)
{
	ListCell   *cell;

	foreach(cell, functions)
	{
		const Node *call = ((const RangeTblFunction *) lfirst(cell))->funcexpr;

		sum = shape_mix(sum, IsA(call, FuncExpr) ? ((const FuncExpr *) call)->funcid : nodeTag(call));
	}
	return sum;
}

static uint64
shape_of_agg(Shape *shape, uint64 sum, const Agg *node)
{
	sum = shape_mix(shape_mix(sum, node->aggstrategy), node->aggsplit);
	sum = mix_keys(sum, node->numCols, node->grpColIdx, node->grpOperators);
	sum = shape_mix(sum, list_length(node->groupingSets));
	return mix_plans(shape, sum, node->chain);
}

static uint64
shape_of_foreign(const Shape *shape, uint64 sum, const ForeignScan *node)
{
	sum = shape_mix(shape_mix(sum, node->operation), node->fs_server);
	sum = mix_relation(shape, sum, node->resultRelation);
	return mix_relations(shape, mix_relation(shape, sum, node->scan.scanrelid), node->fs_relids);
}

static uint64
shape_of_custom(Shape *shape, uint64 sum, const CustomScan *node)
{
	sum = shape_mix_name(sum, node->methods->CustomName);
	sum = mix_relation(shape, sum, node->scan.scanrelid);
	sum = mix_relations(shape, sum, node->custom_relids);
	return mix_plans(shape, sum, node->custom_plans);
}

/* Mixes in an index, its direction, and the columns of its conditions. */
static uint64
shape_of_index(uint64 sum, Oid index, ScanDirection direction,
			   const List *conditions, const List *order)
{
	sum = shape_mix(shape_mix(sum, direction), index_shape(index));
	return mix_conditions(mix_conditions(sum, conditions), order);
}

#define KIND(kind) shape_mix(0, SHAPE_##kind)
#define SCANNED(kind, node) mix_relation(shape, KIND(kind), ((const Scan *) (node))->scanrelid)

/*
 * Shape of a node that reads rows from a table, an index or another source.
 */
static uint64
shape_of_scan(Shape *shape, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
			return SCANNED(SEQ_SCAN, plan);
		case T_SampleScan:
			return shape_mix(SCANNED(SAMPLE_SCAN, plan), ((const SampleScan *) plan)->tablesample->tsmhandler);
		case T_IndexScan:
			{
				const IndexScan *node = (const IndexScan *) plan;

				return shape_of_index(SCANNED(INDEX_SCAN, plan), node->indexid, node->indexorderdir,
									  node->indexqual, node->indexorderby);
			}
		case T_IndexOnlyScan:
			{
				const IndexOnlyScan *node = (const IndexOnlyScan *) plan;

				return shape_of_index(SCANNED(INDEX_ONLY_SCAN, plan), node->indexid, node->indexorderdir,
									  node->indexqual, node->indexorderby);
			}
		case T_BitmapIndexScan:
			{
				const BitmapIndexScan *node = (const BitmapIndexScan *) plan;

				return mix_conditions(shape_mix(SCANNED(BITMAP_INDEX_SCAN, plan), index_shape(node->indexid)), node->indexqual);
			}
		case T_BitmapHeapScan:
			return SCANNED(BITMAP_HEAP_SCAN, plan);
		case T_TidScan:
			return SCANNED(TID_SCAN, plan);
		case T_TidRangeScan:
			return SCANNED(TID_RANGE_SCAN, plan);
		case T_SubqueryScan:
			return shape_mix(KIND(SUBQUERY_SCAN), shape_of_plan(shape, ((const SubqueryScan *) plan)->subplan));
		case T_FunctionScan:
			return shape_of_functions(KIND(FUNCTION_SCAN), ((const FunctionScan *) plan)->functions);
		case T_ValuesScan:
			return KIND(VALUES_SCAN);
		case T_TableFuncScan:
			return KIND(TABLE_FUNC_SCAN);
		case T_CteScan:
			return shape_mix(KIND(CTE_SCAN), ((const CteScan *) plan)->ctePlanId);
		case T_NamedTuplestoreScan:
			return shape_mix_name(KIND(NAMED_TUPLESTORE_SCAN), ((const NamedTuplestoreScan *) plan)->enrname);
		case T_WorkTableScan:
			return KIND(WORK_TABLE_SCAN);
		case T_ForeignScan:
			return shape_of_foreign(shape, KIND(FOREIGN_SCAN), (const ForeignScan *) plan);
		case T_CustomScan:
			return shape_of_custom(shape, KIND(CUSTOM_SCAN), (const CustomScan *) plan);
		default:
			return KIND(OTHER);
	}
}

/* Shape of a node with one or two inputs, without these inputs. */
static uint64
shape_of_step(Shape *shape, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return shape_mix(KIND(RESULT), ((const Result *) plan)->resconstantqual != NULL);
		case T_ProjectSet:
			return KIND(PROJECT_SET);
		case T_ModifyTable:
			return shape_of_modify(shape, KIND(MODIFY_TABLE), (const ModifyTable *) plan);
		case T_RecursiveUnion:
			return shape_mix(KIND(RECURSIVE_UNION), ((const RecursiveUnion *) plan)->numCols);
		case T_NestLoop:
			return shape_mix(KIND(NEST_LOOP), ((const Join *) plan)->jointype);
		case T_MergeJoin:
			return shape_mix(shape_mix(KIND(MERGE_JOIN), ((const Join *) plan)->jointype),
					   list_length(((const MergeJoin *) plan)->mergeclauses));
		case T_HashJoin:
			return shape_mix(shape_mix(KIND(HASH_JOIN), ((const Join *) plan)->jointype),
					   list_length(((const HashJoin *) plan)->hashclauses));
		case T_Material:
			return KIND(MATERIAL);
		case T_Memoize:
			return shape_mix(KIND(MEMOIZE), ((const Memoize *) plan)->numKeys);
		case T_Sort:
		case T_IncrementalSort:
			{
				const Sort *node = (const Sort *) plan;
				uint64		sum = IsA(plan, Sort) ? KIND(SORT) :
					shape_mix(KIND(INCREMENTAL_SORT), ((const IncrementalSort *) plan)->nPresortedCols);

				return mix_keys(sum, node->numCols, node->sortColIdx, node->sortOperators);
			}
		case T_Group:
			return shape_mix(KIND(GROUP), ((const Group *) plan)->numCols);
		case T_Agg:
			return shape_of_agg(shape, KIND(AGG), (const Agg *) plan);
		case T_WindowAgg:
			return shape_mix(shape_mix(KIND(WINDOW_AGG), ((const WindowAgg *) plan)->partNumCols),
					   ((const WindowAgg *) plan)->ordNumCols);
		case T_Unique:
			return shape_mix(KIND(UNIQUE), ((const Unique *) plan)->numCols);
		case T_Gather:
			return KIND(GATHER);
		case T_GatherMerge:
			return KIND(GATHER_MERGE);
		case T_Hash:
			return KIND(HASH);
		case T_SetOp:
			return shape_mix(shape_mix(KIND(SET_OP), ((const SetOp *) plan)->cmd), ((const SetOp *) plan)->strategy);
		case T_LockRows:
			return KIND(LOCK_ROWS);
		case T_Limit:
			return shape_mix(KIND(LIMIT), ((const Limit *) plan)->limitOption);
		default:
			return shape_of_scan(shape, plan);
	}
}

/*
 * Mixes in the subplans that the node evaluates in its output or conditions.
 */
static uint64
mix_node_subplans(const Shape *shape, uint64 sum, const Plan *plan)
{
	if (shape->stmt->subplans == NIL)
		return sum;
	mix_subplans((Node *) plan->initPlan, &sum);
	mix_subplans((Node *) plan->targetlist, &sum);
	mix_subplans((Node *) plan->qual, &sum);
	return sum;
}

static uint64
shape_of_plan(Shape *shape, const Plan *plan)
{
	uint64		sum;

	if (++shape->nodes > MOST_NODES)
		return KIND(CUT);
	switch (nodeTag(plan))
	{
		case T_Append:
			return shape_of_set(shape, KIND(APPEND), ((const Append *) plan)->appendplans);
		case T_MergeAppend:
			return shape_of_set(shape, KIND(MERGE_APPEND), ((const MergeAppend *) plan)->mergeplans);
		case T_BitmapAnd:
			return shape_of_set(shape, KIND(BITMAP_AND), ((const BitmapAnd *) plan)->bitmapplans);
		case T_BitmapOr:
			return shape_of_set(shape, KIND(BITMAP_OR), ((const BitmapOr *) plan)->bitmapplans);
		default:
			break;
	}
	sum = shape_mix(shape_of_step(shape, plan), plan->parallel_aware);
	sum = mix_node_subplans(shape, sum, plan);
	if (plan->lefttree)
		sum = shape_mix(sum, shape_of_plan(shape, plan->lefttree));
	if (plan->righttree)
		sum = shape_mix(sum, shape_of_plan(shape, plan->righttree));
	return sum;
}

/* Spreads the sum over all bits: ids of similar plans look different. */
static int64
finish(uint64 sum)
{
	sum ^= sum >> 31;
	sum *= UINT64CONST(0xbf58476d1ce4e5b9);
	sum ^= sum >> 32;
	sum &= PG_INT64_MAX;
	return sum == 0 ? 1 : (int64) sum;
}

int64
plan_shape_id(const PlannedStmt *stmt)
{
	Shape		shape = {.stmt = stmt, .parents = make_parents(stmt)};
	uint64		sum = shape_of_plan(&shape, stmt->planTree);

	if (stmt->subplans != NIL)
		sum = mix_plans(&shape, sum, stmt->subplans);
	if (shape.parents != NULL)
		pfree(shape.parents);
	return finish(sum);
}
