/*
 * tree_members.c
 *	  Which members of an Append or MergeAppend the tree of a plan lists.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "nodes/pathnodes.h"

#include "plans/tree_kinds.h"
#include "plans/tree_members.h"

#define LEVELS	8				/* of a member that are compared */

/* The first input of a node that has a list of them, else its outer input. */
static const Plan *
first_input(const Plan *plan)
{
	const List *inputs = IsA(plan, Append) ? ((const Append *) plan)->appendplans :
		IsA(plan, MergeAppend) ? ((const MergeAppend *) plan)->mergeplans : NIL;

	return inputs != NIL ? linitial(inputs) : plan->lefttree;
}

static bool
reads_partition(const PlanNames *names, int *partition, const Plan *plan)
{
	for (; plan != NULL; plan = first_input(plan))
		if (tree_node_is_scan(tree_node_of(plan)))
			return plan_is_partition(names, ((const Scan *) plan)->scanrelid, partition);
	return false;
}

static uint32
structure_of(const Plan *plan, int levels)
{
	uint32		sum;

	if (plan == NULL || levels == 0)
		return 0;
	sum = hash_combine(nodeTag(plan), list_length(plan->qual));
	if (IsA(plan, IndexScan))
		sum = hash_combine(sum, list_length(((const IndexScan *) plan)->indexqual));
	else if (IsA(plan, IndexOnlyScan))
		sum = hash_combine(sum, list_length(((const IndexOnlyScan *) plan)->indexqual));
	sum = hash_combine(sum, structure_of(first_input(plan), levels - 1));
	return hash_combine(sum, structure_of(plan->righttree, levels - 1));
}

/* The table whose partition plan_is_partition() has found at this place. */
static Index
parent_at(const PlanNames *names, int partition)
{
	return ((const AppendRelInfo *) list_nth(names->stmt->appendRelations, partition))->parent_relid;
}

/* Structures of members. */
typedef struct Structures
{
	int			count;
	uint32		known[MEMBERS_LISTED];
} Structures;

/* Notes a structure. False if it was noted before, or if there is no room. */
static bool
note(Structures *structures, uint32 structure)
{
	for (int i = 0; i < structures->count; i++)
		if (structures->known[i] == structure)
			return false;
	if (structures->count == MEMBERS_LISTED)
		return false;
	structures->known[structures->count++] = structure;
	return true;
}

void
tree_members_choose(TreeMembers *members, const PlanNames *names,
					int *partition, PlanState *const *states, int count)
{
	Structures	structures = {0};

	memset(members, 0, sizeof(TreeMembers));
	for (int i = 0; states != NULL && count > MEMBERS_LISTED && i < count; i++)
	{
		const Plan *plan = states[i]->plan;
		bool		of_partition = reads_partition(names, partition, plan);
		uint32		structure = structure_of(plan, LEVELS);
		bool		is_new = note(&structures, of_partition ?
								  hash_combine(structure, parent_at(names, *partition)) : structure);

		if (i < MEMBERS_LISTED)
			continue;
		if (!of_partition)
		{
			members->not_listed = 0;
			return;
		}
		if (is_new && members->others < MEMBERS_LISTED)
			members->other[members->others++] = i;
		else
			members->not_listed++;
	}
}
