/*
 * day_set.h
 *	  A set of numbers that is emptied every day, such as the roles that
 *	  today's markers have named.
 *
 * The sampler only. Memory: a context of each set, freed by day_set_clear().
 * The caller must bound the count: by a daily limit, or by the number of
 * roles.
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

/* Empties the set, when a new day begins. */
extern void day_set_clear(DaySet *set);

extern bool day_set_has(const DaySet *set, uint64 number);

/* Adds a number; returns true if it is new. */
extern bool day_set_add(DaySet *set, uint64 number);

#endif							/* TACHO_DAY_SET_H */
