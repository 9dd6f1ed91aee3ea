/*
 * tree_analyzed.c
 *	  When the relations in the tree of a plan were analyzed last.
 *
 * The time is in the server's shared statistics. A backend would have to wait
 * there for a lock in the middle of a user's statement. So the backend writes
 * the time of its tree, and the sampler replaces that by the time of the last
 * ANALYZE before it. Both have 16 digits, so the tree keeps its length.
 *
 * Locking: relation_stats.h. Memory: static. The sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/catalog.h"

#include "core/guarded.h"
#include "core/tacho.h"
#include "plans/plan_tree.h"
#include "plans/tree_relations.h"
#include "sampler/relation_stats.h"
#include "sampler/tree_analyzed.h"

#define TRIES			100		/* to lock the statistics of a relation */

static char copy[PLAN_TREE_MOST];
static const QueryText *copied;

/* Time of the last ANALYZE in us since 1970, 0 = not known. May raise an error. */
static int64
last_analyze(Oid relation)
{
	Oid			database = IsSharedRelation(relation) ? InvalidOid : copied->database;
	RelationRead result = RELATION_BUSY;
	RelationCounts counts;
	RelationState state;
	TimestampTz last;

	for (int i = 0; i < TRIES && result == RELATION_BUSY; i++)
		result = relation_stats_read(RELATION_KEY(database, relation), counts, &state);
	if (result != RELATION_READ)
		return 0;
	last = Max(state.last_analyze, state.last_autoanalyze);
	return last == 0 ? 0 : last + TACHO_EPOCH_OFFSET_US;
}

static int64
number_of(TreeString digits)
{
	int64		number = 0;

	for (int i = 0; i < digits.length; i++)
		number = number * 10 + (digits.bytes[i] - '0');
	return number;
}

/* Replaces the digits of a text in the copy. */
static void
put_number(TreeString text, int64 number)
{
	char	   *digits = copy + (text.bytes - copy);

	for (int i = text.length - 1; i >= 0; i--)
	{
		digits[i] = '0' + number % 10;
		number /= 10;
	}
}

static bool
next_time(TreeRelations *relations, TreeRelation *relation)
{
	while (tree_relations_next(relations, relation))
		if (relation->analyzed.length == ANALYZED_DIGITS)
			return true;
	return false;
}

/* Replaces the times; may raise an error. */
static void
look_up(void)
{
	TreeRelations relations = tree_relations(copy, copied->length);
	TreeRelation relation;

	while (next_time(&relations, &relation))
	{
		int64		last = last_analyze(relation.oid);

		put_number(relation.analyzed, last <= number_of(relation.analyzed) ? last : 0);
	}
}

/* Replaces all times by zeros. */
static void
forget(void)
{
	TreeRelations relations = tree_relations(copy, copied->length);
	TreeRelation relation;

	while (next_time(&relations, &relation))
		put_number(relation.analyzed, 0);
}

const char *
tree_analyzed(const QueryText *tree)
{
	Assert(tree->length <= PLAN_TREE_MOST);
	memcpy(copy, tree->bytes, tree->length);
	copied = tree;
	if (!guarded_run(look_up))
		forget();
	return copy;
}
