/*
 * plan_column.c
 *	  Finds the columns that Vars of a plan stand for, and their names.
 *
 * Names come from relations that the executor has open, and from the range
 * table.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "nodes/pathnodes.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "plans/plan_column.h"

static const RangeTblEntry *
entry_of(const PlanNames *names, Index relation)
{
	const List *table = names->stmt->rtable;

	if (relation < 1 || relation > list_length(table))
		return NULL;
	return rt_fetch(relation, table);
}

Relation
plan_relation(const PlanNames *names, Index relation)
{
	const EState *estate = names->estate;

	if (estate->es_relations == NULL || relation < 1 ||
		relation > estate->es_range_table_size)
		return NULL;
	return estate->es_relations[relation - 1];
}

static const char *
alias_of(const RangeTblEntry *entry)
{
	const Alias *alias = entry->alias ? entry->alias : entry->eref;

	return alias && alias->aliasname ? alias->aliasname : "?";
}

static void
add_number_of_alias(PlanText *text, const PlanNames *names, Index relation)
{
	if (relation > names->numbered || names->numbers[relation] == 0)
		return;
	plan_text_char(text, '_');
	plan_text_number(text, names->numbers[relation]);
}

void
plan_text_alias(PlanText *text, const PlanNames *names, Index relation)
{
	const RangeTblEntry *entry = entry_of(names, relation);

	if (entry == NULL)
		return;
	plan_text_add(text, alias_of(entry));
	add_number_of_alias(text, names, relation);
}

const char *
plan_query_alias(const PlanNames *names, Index relation, bool *numbered)
{
	const RangeTblEntry *entry = entry_of(names, relation);

	*numbered = relation <= names->numbered && names->numbers[relation] != 0;
	return entry == NULL ? NULL : alias_of(entry);
}

bool
plan_is_partition(const PlanNames *names, Index relation, int *place)
{
	const List *list = names->stmt->appendRelations;
	int			length = list_length(list);

	for (int i = 0; i < length; i++)
	{
		int			at = (*place + i) % length;
		const AppendRelInfo *info = list_nth(list, at);

		if (info->child_relid != relation)
			continue;
		*place = at;
		return OidIsValid(info->parent_reloid);
	}
	return false;
}

static const char *
system_column(AttrNumber column)
{
	switch (column)
	{
		case SelfItemPointerAttributeNumber:
			return "ctid";
		case MinTransactionIdAttributeNumber:
			return "xmin";
		case MinCommandIdAttributeNumber:
			return "cmin";
		case MaxTransactionIdAttributeNumber:
			return "xmax";
		case MaxCommandIdAttributeNumber:
			return "cmax";
		case TableOidAttributeNumber:
			return "tableoid";
		default:
			return NULL;
	}
}

/* The name of a column; NULL if it is not known. */
static const char *
column_of(const PlanNames *names, const RangeTblEntry *entry, Index relation,
		  AttrNumber column)
{
	Relation	open = plan_relation(names, relation);

	if (column <= 0)
		return system_column(column);
	if (open != NULL)
		return column > RelationGetDescr(open)->natts ? NULL
			: NameStr(TupleDescAttr(RelationGetDescr(open), column - 1)->attname);
	if (entry->eref == NULL || column > list_length(entry->eref->colnames))
		return NULL;
	return strVal(list_nth(entry->eref->colnames, column - 1));
}

void
plan_text_column(PlanText *text, const PlanNames *names, const Var *var)
{
	const RangeTblEntry *entry = entry_of(names, var->varno);
	const char *column;

	if (entry == NULL)
	{
		plan_text_add(text, "(column)");
		return;
	}
	if (names->prefix || var->varattno == 0)
	{
		plan_text_name(text, alias_of(entry));
		add_number_of_alias(text, names, var->varno);
		plan_text_char(text, '.');
	}
	column = column_of(names, entry, var->varno, var->varattno);
	if (var->varattno == 0)
		plan_text_char(text, '*');
	else if (column != NULL)
		plan_text_name(text, column);
	else
		plan_text_add(text, "(column)");
}

const TargetEntry *
plan_output_column(PlanNames *names, const List *columns, AttrNumber number)
{
	const TargetEntry *entry;
	ListCell   *cell;

	if (number >= 1 && number <= list_length(columns))
	{
		entry = list_nth(columns, number - 1);
		if (entry->resno == number)
			return entry;
	}
	foreach(cell, columns)
	{
		entry = lfirst(cell);
		if (entry->resno == number)
			return entry;
		if (--names->steps <= 0)
			return NULL;
	}
	return NULL;
}

/* The node whose output columns OUTER_VAR numbers. */
static const Plan *
outer_of(const Plan *plan)
{
	const List *inputs = NIL;

	if (IsA(plan, Append))
		inputs = ((const Append *) plan)->appendplans;
	else if (IsA(plan, MergeAppend))
		inputs = ((const MergeAppend *) plan)->mergeplans;
	else
		return plan->lefttree;
	return inputs == NIL ? NULL : linitial(inputs);
}

/* The columns that INDEX_VAR numbers. */
static const List *
index_columns(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexOnlyScan:
			return ((const IndexOnlyScan *) plan)->indextlist;
		case T_ForeignScan:
			return ((const ForeignScan *) plan)->fdw_scan_tlist;
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_scan_tlist;
		default:
			return NIL;
	}
}

const Node *
plan_behind(PlanNames *names, const Plan *plan, const Var *var, const Plan **below)
{
	const List *columns = NIL;
	const TargetEntry *entry;

	*below = NULL;
	if (var->varno == INDEX_VAR)
	{
		*below = plan;
		columns = index_columns(plan);
	}
	else if (var->varno == OUTER_VAR || var->varno == INNER_VAR)
	{
		*below = var->varno == OUTER_VAR ? outer_of(plan) : plan->righttree;
		columns = *below ? (*below)->targetlist : NIL;
	}
	else
		return NULL;
	entry = plan_output_column(names, columns, var->varattno);
	return entry == NULL || *below == NULL ? NULL : (const Node *) entry->expr;
}

bool
plan_is_special(const Var *var)
{
	return var->varno == INDEX_VAR || var->varno == OUTER_VAR || var->varno == INNER_VAR;
}
