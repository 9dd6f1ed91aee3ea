/*
 * tree_offer.c
 *	  Offers the tree of an execution to the history.
 *
 * Locking: the ring's lock is only tried. Memory: a block for the tree, freed
 * before the return.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "plans/plan_tree.h"
#include "statements/text_ring.h"
#include "statements/tree_offer.h"

TreeLeftOut
tree_offer(const QueryDesc *query, int64 plan_id, Oid user, PlanEnd end)
{
	char	   *bytes = MemoryContextAllocExtended(CurrentMemoryContext, PLAN_TREE_MOST,
												   MCXT_ALLOC_NO_OOM);
	QueryText	tree = {
		.query_id = (int64) query->plannedstmt->queryId,
		.plan_id = plan_id,
		.has_actuals = end != PLAN_NOT_COUNTED,
		.database = MyDatabaseId,
		.user = user,
		.encoding = GetDatabaseEncoding(),
		.bytes = bytes,
	};
	TreeLeftOut left_out = TREE_KEPT;

	if (bytes == NULL)
		return TREE_NO_MEMORY;
	tree.length = plan_tree_write(query, end, bytes);
	if (tree.length <= PLAN_TREE_LEAST)
		left_out = TREE_NO_MEMORY;
	else if (!query_text_has_room(query_text_account(tree.database, tree.user), tree.length) ||
			 !query_text_put(&tree))
		left_out = TREE_NO_ROOM;
	pfree(bytes);
	return left_out;
}
