/*
 * advice_names.c
 *	  The names of relations in pg_plan_advice.
 *
 * The numbers follow contrib/pg_plan_advice: it counts the entries of the range
 * table that one query level has added, also subqueries that were pulled up.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "nodes/pathnodes.h"
#include "parser/parsetree.h"

#include "core/compat.h"
#include "plans/advice_names.h"

#if COMPAT_PLANS_TAKE_ADVICE

#define MOST_STEPS	20000

static bool
step(AdviceNames *names)
{
	if (++names->steps > MOST_STEPS)
		names->unknown = true;
	return !names->unknown;
}

bool
advice_names_are_known(const AdviceNames *names)
{
	return !names->unknown;
}

static const RangeTblEntry *
entry_of(const AdviceNames *names, Index relation)
{
	const List *table = names->stmt->rtable;

	if (relation < 1 || relation > list_length(table))
		return NULL;
	return rt_fetch(relation, table);
}

static const char *
alias_of(const RangeTblEntry *entry)
{
	return entry != NULL && entry->eref != NULL && entry->eref->aliasname != NULL ?
		entry->eref->aliasname : "";
}

/* The query level that has added a relation; NULL for the query itself. */
static const SubPlanRTInfo *
level_of(const AdviceNames *names, Index relation)
{
	const SubPlanRTInfo *level = NULL;
	ListCell   *cell;

	foreach(cell, names->stmt->subrtinfos)
	{
		const SubPlanRTInfo *next = lfirst(cell);

		if (relation <= next->rtoffset)
			break;
		level = next;
	}
	return level;
}

/*
 * The parent of a relation that is a partition or inherits; 0 if it is none.
 * Children are visited in the order of the list.
 */
static Index
parent_of(AdviceNames *names, Index relation)
{
	const List *list = names->stmt->appendRelations;
	int			length = list_length(list);

	for (int i = 0; i < length && step(names); i++)
	{
		int			at = (names->place + i) % length;
		const AppendRelInfo *info = list_nth(list, at);
		const RangeTblEntry *parent = entry_of(names, info->parent_relid);

		if (info->child_relid != relation)
			continue;
		names->place = at;
		return parent != NULL && parent->rtekind == RTE_RELATION ? info->parent_relid : 0;
	}
	return 0;
}

/*
 * Children of tables come after all other relations of their level, so they
 * are not counted.
 */
static int
count_before(AdviceNames *names, Index relation)
{
	const SubPlanRTInfo *level = level_of(names, relation);
	const char *alias = alias_of(entry_of(names, relation));
	int			count = 0;

	for (Index before = level ? level->rtoffset + 1 : 1; before < relation && step(names); before++)
	{
		const RangeTblEntry *entry = entry_of(names, before);

		if (entry->rtekind != RTE_JOIN && strcmp(alias_of(entry), alias) == 0)
			count++;
	}
	return count;
}

int
advice_occurrence(AdviceNames *names, Index relation)
{
	Index		parent = parent_of(names, relation);
	Index		top = relation;

	if (parent != 0 && parent == names->parent)
		return names->occurrence;
	names->parent = parent;
	for (; parent != 0 && step(names); parent = parent_of(names, top))
		top = parent;
	names->occurrence = 1 + count_before(names, top);
	return names->occurrence;
}

const char *
advice_query_level(const AdviceNames *names, Index relation)
{
	const SubPlanRTInfo *level = level_of(names, relation);

	return level ? level->plan_name : NULL;
}

void
advice_name(PlanText *text, AdviceNames *names, Index relation)
{
	int			occurrence = advice_occurrence(names, relation);
	const char *level = advice_query_level(names, relation);

	plan_text_name(text, alias_of(entry_of(names, relation)));
	if (occurrence > 1)
	{
		plan_text_char(text, '#');
		plan_text_number(text, occurrence);
	}
	if (level != NULL)
	{
		plan_text_char(text, '@');
		plan_text_name(text, level);
	}
	if (text->cut)
		names->unknown = true;
}

int
advice_next(const AdviceNames *names, const Bitmapset *relations, int relation)
{
	const RangeTblEntry *entry;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		if ((entry = entry_of(names, relation)) != NULL && entry->rtekind != RTE_JOIN)
			return relation;
	return -1;
}

/*
 * True for the left out Append of a single partition: the scan below has the
 * name of the table.
 */
static bool
is_of_partitions(AdviceNames *names, const ElidedNode *node)
{
	int			first = advice_next(names, node->relids, -1);

	if (node->elided_type == T_SubqueryScan)
		return false;
	if (first < 0)
		return true;
	/* the partitions of several tables, joined */
	if (advice_next(names, node->relids, first) >= 0)
		names->unknown = true;
	return entry_of(names, first)->rtekind == RTE_RELATION;
}

const Bitmapset *
advice_elided(AdviceNames *names, const Plan *plan, int *place)
{
	const List *list = names->stmt->elidedNodes;

	while (*place < list_length(list) && step(names))
	{
		const ElidedNode *node = list_nth(list, (*place)++);

		if (node->plan_node_id == plan->plan_node_id && !is_of_partitions(names, node))
			return node->relids;
	}
	return NULL;
}

#else

bool
advice_names_are_known(const AdviceNames *names)
{
	return false;
}

int
advice_occurrence(AdviceNames *names, Index relation)
{
	return 1;
}

const char *
advice_query_level(const AdviceNames *names, Index relation)
{
	return NULL;
}

void
advice_name(PlanText *text, AdviceNames *names, Index relation)
{
}

int
advice_next(const AdviceNames *names, const Bitmapset *relations, int relation)
{
	return -1;
}

const Bitmapset *
advice_elided(AdviceNames *names, const Plan *plan, int *place)
{
	return NULL;
}

#endif
