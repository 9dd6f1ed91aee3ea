/*
 * day_set.h
 *	  Numbers that were seen today, such as the roles that a marker has named.
 *
 * The sampler only. Memory: a context of each set, emptied by day_set_clear().
 * The numbers must have a bound of their own: the limit of a day, or the roles.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_DAY_SET_H
#define TACHO_DAY_SET_H

#include "utils/hsearch.h"

typedef struct DaySet
{
	MemoryContext context;
	HTAB	   *numbers;
} DaySet;

/* Makes an empty set below the current memory context. */
extern void day_set_init(DaySet *set);

/* A new day: the set is empty. */
extern void day_set_clear(DaySet *set);

extern bool day_set_has(const DaySet *set, uint64 number);

/* Adds a number; true when it is new. */
extern bool day_set_add(DaySet *set, uint64 number);

#endif							/* TACHO_DAY_SET_H */
