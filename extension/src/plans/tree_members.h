/*
 * tree_members.h
 *	  Which members of an Append or MergeAppend the tree of a plan lists.
 *
 * A scan of a table with 1,000 partitions has 1,000 members, and most of them
 * are alike. If all were written, the tree would be cut, and the time to write
 * it would grow with their number. So the first MEMBERS_LISTED members are
 * listed. A later member is listed too if none before it has its structure.
 * Example: 999 index scans and, in place 700, one sequential scan give 65
 * members, and 935 are not listed.
 *
 * Two members have the same structure if they read partitions of one table by
 * the same kinds of nodes with the same numbers of conditions. All members are listed if one behind the
 * first ones reads something else than a partition, as in a UNION ALL.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TREE_MEMBERS_H
#define TACHO_TREE_MEMBERS_H

#include "nodes/execnodes.h"

#include "plans/plan_column.h"

#define MEMBERS_LISTED	64

/* The choice for one node. */
typedef struct TreeMembers
{
	int			not_listed;
	int			next;			/* place of the next member */
	/* places of the listed members behind the first ones, ascending */
	int			others;
	int			other[MEMBERS_LISTED];
	int			next_other;
} TreeMembers;

/* Chooses among the members of a node. `partition`: see plan_is_partition(). */
extern void tree_members_choose(TreeMembers *members, const PlanNames *names,
								int *partition, PlanState *const *states, int count);

/* Goes to the next member. True if the tree lists it. */
static inline bool
tree_members_next(TreeMembers *members)
{
	int			place = members->next++;

	if (place < MEMBERS_LISTED || members->not_listed == 0)
		return true;
	if (members->next_other == members->others || members->other[members->next_other] != place)
		return false;
	members->next_other++;
	return true;
}

#endif							/* TACHO_TREE_MEMBERS_H */
