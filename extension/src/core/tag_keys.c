/*
 * tag_keys.c
 *	  The keys that tacho.comment_tags lists.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/tag_keys.h"

#define MOST_KEYS		16
#define LONGEST_KEY		32

const char *
tag_keys_next(const char *at, int *length)
{
	while (tag_keys_blank(*at) || *at == ',')
		at++;
	*length = 0;
	while (tag_keys_char(at[*length]))
		(*length)++;
	return at;
}

const char *
tag_keys_problem(const char *list)
{
	int			keys = 0;
	int			length;
	const char *key = list;

	for (;;)
	{
		key = tag_keys_next(key, &length);
		if (key[length] != '\0' && key[length] != ',' && !tag_keys_blank(key[length]))
			return "A key has only letters, digits, \"_\", \"-\" and \".\".";
		if (length == 0)
			return NULL;
		if (length > LONGEST_KEY)
			return "A key has at most 32 bytes.";
		if (++keys > MOST_KEYS)
			return "It has at most 16 keys.";
		key += length;
	}
}
