/*
 * day_set.c
 *	  A set of numbers that is emptied every day.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "history/day_set.h"

void
day_set_init(DaySet *set)
{
	set->context = AllocSetContextCreate(CurrentMemoryContext, "tacho day set",
										 ALLOCSET_DEFAULT_SIZES);
	day_set_clear(set);
}

void
day_set_clear(DaySet *set)
{
	HASHCTL		info = {0};

	MemoryContextReset(set->context);
	info.keysize = info.entrysize = sizeof(uint64);
	info.hcxt = set->context;
	set->numbers = hash_create("tacho day set", 256, &info,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

bool
day_set_has(const DaySet *set, uint64 number)
{
	return hash_search(set->numbers, &number, HASH_FIND, NULL) != NULL;
}

bool
day_set_add(DaySet *set, uint64 number)
{
	bool		found;

	(void) hash_search(set->numbers, &number, HASH_ENTER, &found);
	return !found;
}
