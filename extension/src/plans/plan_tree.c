/*
 * plan_tree.c
 *	  The nodes of a plan as bytes (docs/format.md, "Trees of plans").
 *
 * The tree has what EXPLAIN prints: nodes in its order, relations, indexes,
 * conditions, keys, estimates, settings; and the sizes of tables that the
 * planner knew. It is made at the end of ExecutorStart: the
 * executor has then opened relations and indexes, so their names need no
 * lookup. A relation that is not open is known by its alias only.
 *
 * Memory: the caller's buffer, and a block for the numbers of aliases, which
 * is freed before the return.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "core/compat.h"
#include "core/tacho.h"
#include "plans/advice_names.h"
#include "plans/alias_numbers.h"
#include "plans/plan_expression.h"
#include "plans/plan_ids.h"
#include "plans/plan_names.h"
#include "plans/plan_states.h"
#include "plans/plan_tree.h"
#include "plans/planner_settings.h"
#include "plans/tree_kinds.h"
#include "plans/tree_members.h"

#define DEEPEST		250			/* levels; deeper nodes are left out */
#define MOST_STEPS	20000		/* see PlanNames */

typedef struct Tree
{
	PlanNames	names;
	char	   *bytes;
	int			length;
	bool		cut;
	bool		several;		/* the plan has several relations */
	int			level;
	int			partition;		/* place in appendRelations of the last one */
	AdviceNames advice;
	uint8		printed[256];	/* a bit for each subplan that is written */
	PlanNode   *above;			/* the node above the visited one */
	TreeMembers *members;		/* of that node */
	PlanActuals actuals;
	uint64		now;			/* us since 1970, 0 = not asked yet */
} Tree;

/* A node that is being written. */
typedef struct Writing
{
	Tree	   *tree;
	PlanNode	node;
	const PlanState *state;
	PlanActuals actuals;
	TreeMembers members;		/* zeros: all are listed */
	PlanText	text;
} Writing;

/* --- bytes */

static inline void
put_byte(Tree *tree, int byte)
{
	if (tree->length < PLAN_TREE_MOST)
		tree->bytes[tree->length++] = (char) byte;
	else
		tree->cut = true;
}

/* Appends a number: seven bits in each byte, the lowest bits first. */
static void
put_number(Tree *tree, uint64 number)
{
	for (; number >= 0x80; number >>= 7)
		put_byte(tree, (number & 0x7F) | 0x80);
	put_byte(tree, number);
}

static void
put_estimate(Tree *tree, long double estimate)
{
	put_number(tree, !(estimate > 0) ? 0 : estimate >= 1e18 ? UINT64CONST(1000000000000000000)
			   : (uint64) rintl(estimate));
}

static void
put_bytes(Tree *tree, TreeText kind, const char *bytes, int length)
{
	if (length == 0)
		return;
	put_byte(tree, kind);
	put_byte(tree, length);
	if (tree->length + length > PLAN_TREE_MOST)
	{
		tree->cut = true;
		return;
	}
	memcpy(tree->bytes + tree->length, bytes, length);
	tree->length += length;
}

/* --- texts of a node */

static void
end_text(Writing *to, TreeText kind)
{
	plan_text_end(&to->text);
	put_bytes(to->tree, kind, to->text.bytes, to->text.length);
}

static void
put_text(Writing *to, TreeText kind, const char *string)
{
	if (string == NULL)
		return;
	plan_text_begin(&to->text);
	plan_text_add(&to->text, string);
	end_text(to, kind);
}

static void
put_number_text(Writing *to, TreeText kind, uint64 number)
{
	plan_text_begin(&to->text);
	plan_text_number(&to->text, number);
	end_text(to, kind);
}

static void
put_count(Writing *to, TreeText kind, int64 count)
{
	if (count > 0)
		put_number_text(to, kind, count);
}

static void
put_conditions(Writing *to, TreeText kind, const List *conditions, const char *word)
{
	if (conditions == NIL)
		return;
	plan_text_begin(&to->text);
	plan_text_conditions(&to->text, &to->tree->names, &to->node, conditions, word);
	end_text(to, kind);
}

static inline void
put_all(Writing *to, TreeText kind, const List *conditions)
{
	put_conditions(to, kind, conditions, " AND ");
}

static void
put_filter(Writing *to)
{
	put_all(to, TEXT_FILTER, to->node.plan->qual);
}

static void
put_keys(Writing *to, TreeText kind, const PlanNode *of, int count,
		 const AttrNumber *columns, const Oid *operators, const bool *nulls_first)
{
	if (count <= 0)
		return;
	plan_text_begin(&to->text);
	plan_text_columns(&to->text, &to->tree->names, of, count, columns, operators, nulls_first);
	end_text(to, kind);
}

/* Writes keys that are output columns of the node below. */
static void
put_keys_below(Writing *to, TreeText kind, int count, const AttrNumber *columns)
{
	PlanNode	below = {.plan = to->node.plan->lefttree, .above = &to->node};

	if (below.plan != NULL)
		put_keys(to, kind, &below, count, columns, NULL, NULL);
}

static void
put_sort(Writing *to, const Sort *node, int presorted)
{
	put_keys(to, TEXT_SORT_KEY, &to->node, node->numCols, node->sortColIdx,
			 node->sortOperators, node->nullsFirst);
	put_keys(to, TEXT_PRESORTED_KEY, &to->node, presorted, node->sortColIdx,
			 NULL, NULL);
}

/* --- relations */

static inline bool
is_temporary(Relation relation)
{
	return relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
}

static const char *
schema_of(Relation relation)
{
	if (is_temporary(relation))
		return "pg_temp";
	return schema_name(RelationGetNamespace(relation));
}

/* Writes what tells the relation from others with its alias in pg_plan_advice. */
static void
put_advice_name(Writing *to, Index relation)
{
	int			occurrence = advice_occurrence(&to->tree->advice, relation);

	if (occurrence > 1)
		put_number_text(to, TEXT_OCCURRENCE, occurrence);
	put_text(to, TEXT_QUERY_LEVEL, advice_query_level(&to->tree->advice, relation));
}

/* Writes the relations of an Append, or of a node that the planner left out. */
static void
put_advised(Writing *to, TreeText kind, const Bitmapset *relations)
{
	int			relation = -1;

	while ((relation = advice_next(&to->tree->advice, relations, relation)) >= 0)
	{
		plan_text_begin(&to->text);
		advice_name(&to->text, &to->tree->advice, relation);
		end_text(to, kind);
	}
}

/* Writes subqueries whose scan the planner left out above this node, the lowest first. */
static void
put_elided(Writing *to)
{
	const Bitmapset *relations;
	int			place = 0;

	while ((relations = advice_elided(&to->tree->advice, to->node.plan, &place)) != NULL)
		put_advised(to, TEXT_ELIDED, relations);
}

static void
put_alias(Writing *to, Index relation)
{
	const char *alias;
	bool		numbered;
	bool		partition = plan_is_partition(&to->tree->names, relation, &to->tree->partition);

	plan_text_begin(&to->text);
	plan_text_alias(&to->text, &to->tree->names, relation);
	end_text(to, TEXT_ALIAS);
	alias = plan_query_alias(&to->tree->names, relation, &numbered);
	if (numbered)
		put_text(to, TEXT_QUERY_ALIAS, alias);
	put_count(to, TEXT_PARTITION, partition);
	put_advice_name(to, relation);
}

/* Writes the size of a table as its last VACUUM or ANALYZE has found it. */
static void
put_size(Writing *to, Relation relation)
{
	float4		rows = relation->rd_rel->reltuples;

	if (rows < 0)
		return;					/* not known */
	put_number_text(to, TEXT_TABLE_ROWS, (uint64) Min(rows, 1e18));
	put_number_text(to, TEXT_TABLE_PAGES, Max(relation->rd_rel->relpages, 0));
}

/*
 * Writes the present time. The sampler replaces it by the time of the last
 * ANALYZE before it (tree_analyzed.c): to read that here, this process would
 * wait for locks of the server's statistics.
 */
static void
put_analyzed(Writing *to)
{
	if (to->tree->now == 0)
		to->tree->now = (uint64) (GetCurrentTimestamp() + TACHO_EPOCH_OFFSET_US);
	put_number_text(to, TEXT_ANALYZED, to->tree->now);
}

static void
put_relation(Writing *to, Index relation)
{
	Relation	open = plan_relation(&to->tree->names, relation);

	if (open != NULL)
	{
		put_text(to, TEXT_RELATION, RelationGetRelationName(open));
		put_text(to, TEXT_SCHEMA, schema_of(open));
		if (!is_temporary(open))
		{
			put_count(to, TEXT_RELATION_OID, RelationGetRelid(open));
			put_analyzed(to);
		}
		put_size(to, open);
	}
	put_alias(to, relation);
}

/* The index that the executor has opened for the scan, or NULL. */
static Relation
index_of(const PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_IndexScanState:
			return ((const IndexScanState *) state)->iss_RelationDesc;
		case T_IndexOnlyScanState:
			return ((const IndexOnlyScanState *) state)->ioss_RelationDesc;
		case T_BitmapIndexScanState:
			return ((const BitmapIndexScanState *) state)->biss_RelationDesc;
		default:
			return NULL;
	}
}

static void
put_index(Writing *to)
{
	Relation	index = index_of(to->state);

	if (index != NULL)
		put_text(to, TEXT_INDEX, RelationGetRelationName(index));
}

/*
 * Writes the name of the function in FROM that a function scan calls, if it
 * calls only one.
 */
static void
put_function(Writing *to, const FunctionScan *node)
{
	const Node *call;
	const char *name;

	if (list_length(node->functions) != 1)
		return;
	call = ((const RangeTblFunction *) linitial(node->functions))->funcexpr;
	if (call == NULL || !IsA(call, FuncExpr))
		return;
	name = builtin_function(((const FuncExpr *) call)->funcid);
	if (name != NULL)
		put_text(to, TEXT_NAME, name);
}

static void
put_cte(Writing *to, Index relation)
{
	const List *table = to->tree->names.stmt->rtable;

	if (relation >= 1 && relation <= list_length(table))
		put_text(to, TEXT_NAME, rt_fetch(relation, table)->ctename);
	put_alias(to, relation);
}

/* --- nodes */

/* Writes the relation, index or function that a scan reads. */
static void
put_scan_target(Writing *to)
{
	const Plan *plan = to->node.plan;
	Index		relation = ((const Scan *) plan)->scanrelid;

	switch (nodeTag(plan))
	{
		case T_BitmapIndexScan:
			break;				/* the node above has the relation */
		case T_FunctionScan:
			put_function(to, (const FunctionScan *) plan);
			put_alias(to, relation);
			break;
		case T_CteScan:
		case T_WorkTableScan:
			put_cte(to, relation);
			break;
		case T_NamedTuplestoreScan:
			put_text(to, TEXT_NAME, ((const NamedTuplestoreScan *) plan)->enrname);
			put_alias(to, relation);
			break;
		default:
			put_relation(to, relation);
	}
}

/* Writes the conditions and keys of a scan. */
static void
put_scan(Writing *to)
{
	const Plan *plan = to->node.plan;

	put_scan_target(to);
	put_index(to);
	to->tree->names.prefix = IsA(plan, SubqueryScan);
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			put_all(to, TEXT_INDEX_COND, ((const IndexScan *) plan)->indexqualorig);
			put_all(to, TEXT_ORDER_BY, ((const IndexScan *) plan)->indexorderbyorig);
			break;
		case T_IndexOnlyScan:
			put_all(to, TEXT_INDEX_COND, ((const IndexOnlyScan *) plan)->indexqual);
			put_all(to, TEXT_ORDER_BY, ((const IndexOnlyScan *) plan)->indexorderby);
			break;
		case T_BitmapIndexScan:
			put_all(to, TEXT_INDEX_COND, ((const BitmapIndexScan *) plan)->indexqualorig);
			break;
		case T_BitmapHeapScan:
			put_all(to, TEXT_RECHECK_COND, ((const BitmapHeapScan *) plan)->bitmapqualorig);
			break;
		case T_TidScan:
			put_conditions(to, TEXT_TID_COND, ((const TidScan *) plan)->tidquals, " OR ");
			break;
		case T_TidRangeScan:
			put_all(to, TEXT_TID_COND, ((const TidRangeScan *) plan)->tidrangequals);
			break;
		case T_CustomScan:
			put_text(to, TEXT_NAME, ((const CustomScan *) plan)->methods->CustomName);
			break;
		default:
			break;
	}
	put_filter(to);
}

static void
put_join(Writing *to)
{
	const Plan *plan = to->node.plan;

	if (IsA(plan, HashJoin))
		put_all(to, TEXT_HASH_COND, ((const HashJoin *) plan)->hashclauses);
	if (IsA(plan, MergeJoin))
		put_all(to, TEXT_MERGE_COND, ((const MergeJoin *) plan)->mergeclauses);
	put_all(to, TEXT_JOIN_FILTER, ((const Join *) plan)->joinqual);
	put_filter(to);
}

/*
 * Writes how many of the planned members the executor has removed, and how many
 * of the others the tree does not list.
 */
static void
put_members(Writing *to, int planned, PlanState *const *members, int count)
{
	put_count(to, TEXT_REMOVED, planned - count);
	tree_members_choose(&to->members, &to->tree->names, &to->tree->partition, members, count);
	put_count(to, TEXT_NOT_LISTED, to->members.not_listed);
}

/* Writes the keys and conditions of a node that is neither scan nor join. */
static void
put_step(Writing *to)
{
	const Plan *plan = to->node.plan;

	switch (nodeTag(plan))
	{
		case T_Sort:
			put_sort(to, (const Sort *) plan, 0);
			break;
		case T_IncrementalSort:
			put_sort(to, (const Sort *) plan, ((const IncrementalSort *) plan)->nPresortedCols);
			break;
		case T_MergeAppend:
			{
				const MergeAppend *node = (const MergeAppend *) plan;

				put_advised(to, TEXT_APPENDED, node->apprelids);
				put_keys(to, TEXT_SORT_KEY, &to->node, node->numCols, node->sortColIdx,
						 node->sortOperators, node->nullsFirst);
				if (IsA(to->state, MergeAppendState))
					put_members(to, list_length(node->mergeplans),
								((const MergeAppendState *) to->state)->mergeplans,
								((const MergeAppendState *) to->state)->ms_nplans);
				break;
			}
		case T_Append:
			put_advised(to, TEXT_APPENDED, ((const Append *) plan)->apprelids);
			if (IsA(to->state, AppendState))
				put_members(to, list_length(((const Append *) plan)->appendplans),
							((const AppendState *) to->state)->appendplans,
							((const AppendState *) to->state)->as_nplans);
			break;
		case T_Agg:
			put_keys_below(to, TEXT_GROUP_KEY, ((const Agg *) plan)->numCols,
						   ((const Agg *) plan)->grpColIdx);
			break;
		case T_Group:
			put_keys_below(to, TEXT_GROUP_KEY, ((const Group *) plan)->numCols,
						   ((const Group *) plan)->grpColIdx);
			break;
		case T_Memoize:
			plan_text_begin(&to->text);
			plan_text_list(&to->text, &to->tree->names, &to->node, ((const Memoize *) plan)->param_exprs);
			end_text(to, TEXT_CACHE_KEY);
			break;
		case T_Gather:
			put_count(to, TEXT_WORKERS, ((const Gather *) plan)->num_workers);
			break;
		case T_GatherMerge:
			put_count(to, TEXT_WORKERS, ((const GatherMerge *) plan)->num_workers);
			break;
		case T_Result:
			put_all(to, TEXT_ONE_TIME_FILTER, (const List *) ((const Result *) plan)->resconstantqual);
			break;
		case T_ModifyTable:
			put_relation(to, ((const ModifyTable *) plan)->nominalRelation);
			break;
		case T_WindowAgg:
			put_all(to, TEXT_RUN_CONDITION, ((const WindowAgg *) plan)->runConditionOrig);
			break;
		default:
			break;
	}
	put_filter(to);
}

/* --- the tree */

static void
put_head(Writing *to, TreeNode kind, StateRole role)
{
	Tree	   *tree = to->tree;
	const Plan *plan = to->node.plan;

	put_byte(tree, tree->level);
	put_byte(tree, kind.kind);
	put_byte(tree, role);
	put_byte(tree, kind.detail);
	put_byte(tree, plan->parallel_aware ? 1 : 0);
	put_estimate(tree, plan->plan_rows);
	put_estimate(tree, plan->plan_width);
	/* hundredths, rounded as printf() does */
	put_estimate(tree, (long double) plan->startup_cost * 100);
	put_estimate(tree, (long double) plan->total_cost * 100);
}

static void
put_subplan_name(Writing *to)
{
	const SubPlan *use = to->node.use;

	if (use == NULL || use->plan_name == NULL)
		return;
	plan_text_begin(&to->text);
	plan_text_add(&to->text, compat_subplan_word(use));
	plan_text_add(&to->text, use->plan_name);
	end_text(to, TEXT_SUBPLAN);
}

static void
put_settings(Writing *to)
{
	for (int i = 0; i < planner_settings_count(); i++)
	{
		plan_text_begin(&to->text);
		if (planner_setting_add(&to->text, i))
			end_text(to, TEXT_SETTING);
	}
}

/* Writes the rows that the node has counted. */
static void
put_actuals(Writing *to)
{
	double		rows;
	double		loops;

	if (to->actuals.end == PLAN_NOT_COUNTED ||
		!plan_actuals_of(to->state, &rows, &loops))
		return;
	if (loops == 0 && to->actuals.end == PLAN_FAILED && to->actuals.started)
		loops = 1;
	put_number_text(to, TEXT_ACTUAL_ROWS, (uint64) Min(rows, 1e18));
	put_number_text(to, TEXT_ACTUAL_LOOPS, (uint64) Min(loops, 1e18));
	if (to->actuals.stopped)
		put_number_text(to, TEXT_STOPPED, 1);
}

static void
put_node(Writing *to, StateRole role)
{
	TreeNode	kind = tree_node_of(to->node.plan);

	/* as in EXPLAIN: conditions of a scan have no aliases */
	to->tree->names.prefix = to->tree->several;
	put_head(to, kind, role);
	put_subplan_name(to);
	put_elided(to);
	if (tree_node_is_scan(kind))
		put_scan(to);
	else if (kind.kind >= TREE_NESTED_LOOP && kind.kind <= TREE_HASH_JOIN)
		put_join(to);
	else
		put_step(to);
	if (role == STATE_ROOT)
		put_settings(to);
	put_actuals(to);
	put_byte(to->tree, 0);
}

/*
 * True unless the subplan was written before. Several expressions may use one
 * subplan, which is written once.
 */
static bool
is_new_subplan(Tree *tree, const SubPlan *use)
{
	int			number = use->plan_id;
	uint8		bit = 1 << number % 8;

	if (number < 0 || number >= 8 * (int) sizeof(tree->printed))
		return true;
	if (tree->printed[number / 8] & bit)
		return false;
	tree->printed[number / 8] |= bit;
	return true;
}

static void visit(const PlanState *state, StateRole role, const SubPlan *use, void *argument);

/* Writes a node and the nodes below it. */
static void
visit_node(Tree *tree, const PlanState *state, StateRole role, const SubPlan *use)
{
	PlanNode   *above = tree->above;
	TreeMembers *siblings = tree->members;
	PlanActuals actuals = tree->actuals;
	int			begin = tree->length;
	Writing		to = {
		.tree = tree,
		.node = {.plan = state->plan, .above = above, .use = use},
		.state = state,
	};

	to.actuals = plan_actuals_at(&actuals, state, role, use);
	put_node(&to, role);
	if (tree->cut)
	{
		tree->length = begin;
		return;
	}
	tree->level++;
	tree->above = &to.node;
	tree->members = &to.members;
	tree->actuals = to.actuals;
	plan_states_below(state, visit, tree);
	tree->above = above;
	tree->members = siblings;
	tree->actuals = actuals;
	tree->level--;
}

static void
visit(const PlanState *state, StateRole role, const SubPlan *use, void *argument)
{
	Tree	   *tree = argument;

	if (tree->cut || (use != NULL && !is_new_subplan(tree, use)))
		return;
	if (role == STATE_MEMBER && !tree_members_next(tree->members))
		return;
	if (tree->level >= DEEPEST || stack_is_too_deep())
		tree->cut = true;
	else
		visit_node(tree, state, role, use);
}

/*
 * The flags of a tree that was written. A custom plan has values in place of
 * the parameters, so a plan with a parameter is generic. A generic plan whose
 * conditions have no parameter is not recognised.
 */
static int
flags_of(const Tree *tree, const QueryDesc *query)
{
	int			flags = TREE_INPUTS | (tree->cut ? TREE_CUT : 0) |
		(COMPAT_PLANS_TAKE_ADVICE ? TREE_ADVISABLE : 0) |
		(advice_names_are_known(&tree->advice) ? TREE_ADVICE_NAMES : 0);

	if (plan_is_for_values(query->plannedstmt))
		flags |= TREE_CUSTOM;
	else if (query->params != NULL && tree->names.has_parameter)
		flags |= TREE_GENERIC;
	return flags;
}

int
plan_tree_write(const QueryDesc *query, PlanEnd end, char *bytes)
{
	Tree		tree = {.bytes = bytes, .actuals = {.end = end}};
	AliasNumbers *numbers;

	if (query->planstate == NULL || query->estate == NULL)
		return 0;
	numbers = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(AliasNumbers),
										 MCXT_ALLOC_NO_OOM);
	if (numbers == NULL)
		return 0;
	tree.names.stmt = query->plannedstmt;
	tree.advice.stmt = query->plannedstmt;
	tree.names.estate = query->estate;
	tree.names.numbers = numbers->number;
	tree.names.numbered = alias_numbers_fill(numbers, query->plannedstmt, query->planstate);
	tree.names.steps = MOST_STEPS;
	tree.several = compat_relations(query->plannedstmt->rtable) > 1;
	put_byte(&tree, TREE_VERSION);
	put_byte(&tree, 0);
	visit(query->planstate, STATE_ROOT, NULL, &tree);
	bytes[1] = flags_of(&tree, query);
	pfree(numbers);
	return tree.length;
}
