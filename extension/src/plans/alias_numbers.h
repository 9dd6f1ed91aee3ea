/*
 * alias_numbers.h
 *	  Numbers that make the aliases of a plan unique, as EXPLAIN prints them.
 *
 * Example: the partitions of orders have the alias orders, too. They are
 * printed as orders_1, orders_2.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ALIAS_NUMBERS_H
#define TACHO_ALIAS_NUMBERS_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#define ALIASES_MOST	2048	/* longer range tables get no numbers */
#define ALIAS_PLACES	4096	/* power of two, twice ALIASES_MOST */

typedef struct AliasNumbers
{
	/* by place in the range table; 0 = the alias is unique */
	uint16		number[ALIASES_MOST + 1];

	/* work space: relations in the plan, and the first relation by alias */
	uint8		used[ALIASES_MOST / 8 + 1];
	uint16		first[ALIAS_PLACES];
	uint16		repeats[ALIASES_MOST + 1];
} AliasNumbers;

/*
 * Fills `numbers`, and returns the number of relations that have one. Raises
 * no error.
 */
extern int	alias_numbers_fill(AliasNumbers *numbers, const PlannedStmt *stmt,
							   const PlanState *root);

#endif							/* TACHO_ALIAS_NUMBERS_H */
