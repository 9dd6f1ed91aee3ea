/*
 * table_ranks.h
 *	  The tables and indexes that did most in an interval, and the sum of the
 *	  others.
 *
 * Used by the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TABLE_RANKS_H
#define TACHO_TABLE_RANKS_H

#include "sampler/relation_stats.h"

#define TABLE_RANKS		100

/* A table or index with its increases in the interval. */
typedef struct TableRank
{
	RelationKey key;
	int64		work;			/* rows read and written, and blocks read */
	RelationCounts increases;
	RelationState state;
} TableRank;

typedef struct TableRanks
{
	int			count;			/* in ranks[] */
	int			least;			/* index of the one with the least work */
	TableRank	ranks[TABLE_RANKS];
	int			others;
	RelationCounts sums;		/* of the others */
} TableRanks;

/* Adds a table or index; keeps it among the ranks if it did enough. */
extern void table_ranks_add(TableRanks *ranks, RelationKey key,
							const RelationCounts increases,
							const RelationState *state);

#endif							/* TACHO_TABLE_RANKS_H */
