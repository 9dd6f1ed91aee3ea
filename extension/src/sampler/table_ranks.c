/*
 * table_ranks.c
 *	  The tables and indexes that did most in an interval, and the sum of the
 *	  others.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "sampler/table_ranks.h"

/* Rows read and written, and blocks read: the order of the ranks. */
static int64
work_of(const RelationCounts counts)
{
	return counts[RELATION_COUNTER(tuples_returned)] +
		counts[RELATION_COUNTER(tuples_fetched)] +
		counts[RELATION_COUNTER(tuples_inserted)] +
		counts[RELATION_COUNTER(tuples_updated)] +
		counts[RELATION_COUNTER(tuples_deleted)] +
		counts[RELATION_COUNTER(blks_read)];
}

static void
find_least(TableRanks *ranks)
{
	ranks->least = 0;
	for (int i = 1; i < ranks->count; i++)
		if (ranks->ranks[i].work < ranks->ranks[ranks->least].work)
			ranks->least = i;
}

static void
add_to_others(TableRanks *ranks, const RelationCounts increases)
{
	ranks->others++;
	for (int i = 0; i < RELATION_COUNTERS; i++)
		ranks->sums[i] += increases[i];
}

void
table_ranks_add(TableRanks *ranks, RelationKey key,
				const RelationCounts increases, const RelationState *state)
{
	int64		work = work_of(increases);
	TableRank  *rank;

	if (ranks->count < TABLE_RANKS)
		rank = &ranks->ranks[ranks->count++];
	else
	{
		rank = &ranks->ranks[ranks->least];
		if (work <= rank->work)
		{
			add_to_others(ranks, increases);
			return;
		}
		add_to_others(ranks, rank->increases);
	}
	rank->key = key;
	rank->work = work;
	memcpy(rank->increases, increases, sizeof(RelationCounts));
	rank->state = *state;
	if (ranks->count == TABLE_RANKS)
		find_least(ranks);
}
