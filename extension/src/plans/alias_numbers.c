/*
 * alias_numbers.c
 *	  Numbers that make the aliases of a plan unique, as EXPLAIN prints them.
 *
 * Only relations that the plan uses get a number, in the order of the range
 * table. A hash table of fixed size finds the first relation with an alias.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "parser/parsetree.h"

#include "plans/alias_numbers.h"
#include "plans/plan_states.h"

#define DEEPEST 250				/* levels; as in plan_tree.c */

typedef struct Search
{
	AliasNumbers *numbers;
	int			count;			/* of the range table */
	int			level;
} Search;

static void
use(Search *search, Index relation)
{
	if (relation >= 1 && relation <= search->count)
		search->numbers->used[relation / 8] |= 1 << relation % 8;
}

static void
use_all(Search *search, const Bitmapset *relations)
{
	int			relation = -1;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		use(search, relation);
}

/* Marks the relations that a node prints. */
static void
use_relations_of(Search *search, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_TableFuncScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_ForeignScan:
		case T_CustomScan:
			use(search, ((const Scan *) plan)->scanrelid);
			break;
		case T_ModifyTable:
			use(search, ((const ModifyTable *) plan)->nominalRelation);
			use(search, ((const ModifyTable *) plan)->exclRelRTI);
			break;
		case T_Append:
			use_all(search, ((const Append *) plan)->apprelids);
			break;
		case T_MergeAppend:
			use_all(search, ((const MergeAppend *) plan)->apprelids);
			break;
		default:
			break;
	}
}

static void
visit(const PlanState *state, StateRole role, const SubPlan *subplan, void *argument)
{
	Search	   *search = argument;

	if (search->level >= DEEPEST || stack_is_too_deep())
		return;
	search->level++;
	use_relations_of(search, state->plan);
	plan_states_below(state, visit, argument);
	search->level--;
}

static const char *
alias_of(const RangeTblEntry *entry)
{
	const Alias *alias = entry->alias ? entry->alias : entry->eref;

	return alias && alias->aliasname ? alias->aliasname : "?";
}

/* Numbers a relation if an earlier one has the same alias. */
static void
number(AliasNumbers *numbers, const List *table, int relation, uint32 places)
{
	const char *alias = alias_of(rt_fetch(relation, table));
	uint32		at = hash_bytes((const unsigned char *) alias, strlen(alias));

	for (;; at++)
	{
		uint16	   *first = &numbers->first[at & (places - 1)];

		if (*first == 0)
		{
			*first = relation;
			return;
		}
		if (strcmp(alias_of(rt_fetch(*first, table)), alias) == 0)
		{
			numbers->number[relation] = ++numbers->repeats[*first];
			return;
		}
	}
}

int
alias_numbers_fill(AliasNumbers *numbers, const PlannedStmt *stmt, const PlanState *root)
{
	int			count = list_length(stmt->rtable);
	Search		search = {.numbers = numbers, .count = count};
	uint32		places = 16;

	if (count > ALIASES_MOST)
		return 0;
	while (places < 2 * count)
		places *= 2;
	memset(numbers->number, 0, sizeof(uint16) * (count + 1));
	memset(numbers->repeats, 0, sizeof(uint16) * (count + 1));
	memset(numbers->used, 0, count / 8 + 1);
	memset(numbers->first, 0, sizeof(uint16) * places);
	visit(root, STATE_ROOT, NULL, &search);
	for (int relation = 1; relation <= count; relation++)
		if (numbers->used[relation / 8] & 1 << relation % 8)
			number(numbers, stmt->rtable, relation, places);
	return count;
}
