/*
 * tag_keys.h
 *	  The keys that tacho.comment_tags lists.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TAG_KEYS_H
#define TACHO_TAG_KEYS_H

static inline bool
tag_keys_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* True if a key may have this character. */
static inline bool
tag_keys_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/*
 * Begin of the next key of a list, where `at` is its begin or the end of the
 * key before. Sets *length; 0 = no more.
 */
extern const char *tag_keys_next(const char *at, int *length);

/* Why a list cannot be the setting; NULL if it can. */
extern const char *tag_keys_problem(const char *list);

#endif							/* TACHO_TAG_KEYS_H */
