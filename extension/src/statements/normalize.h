/*
 * normalize.h
 *	  Query texts without their constants.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_NORMALIZE_H
#define TACHO_NORMALIZE_H

#include "core/compat.h"
#include "core/hot.h"
#include "lib/stringinfo.h"

/*
 * Appends `text` to `out` with constants replaced by $n, and stops soon after
 * `limit` bytes. With a jumble state it replaces the constants that the query
 * identifier ignores; offsets in the jumble state count from `offset` bytes
 * before `text`. Without one (utility statements) it replaces all literals,
 * passwords included.
 *
 * `text` has a zero byte at `length`. The result ends before the first part
 * that cannot be scanned, so that no constant slips through. `doubt`: the
 * text may have been parsed with another standard_conforming_strings
 * (strings_in_doubt()). Then the result also ends before a literal whose end
 * depends on this setting. Returns the number of bytes of `text` that the
 * result replaces.
 *
 * Swallows errors of the scanner, so it must not be called while an error is
 * being handled. Raises an error if there is no memory for the result.
 */
extern int	normalize_text(StringInfo out, const char *text, int length,
						   CompatJumble *jumble, int offset, int limit,
						   bool doubt);

/*
 * The values of standard_conforming_strings with which this process has
 * analysed statements: bit 0 for on, bit 1 for off. The server analyses the
 * first statement of a string right after it has parsed the string. So if the
 * setting has changed since, both bits are set here.
 */
extern HOT_DATA int strings_seen;

/* To be called at each parse analysis, before a text is made. */
static inline void
strings_observe(void)
{
	strings_seen |= compat_standard_strings() ? 1 : 2;
}

/*
 * True if a text may have been parsed with another value of
 * standard_conforming_strings. Later statements of a message, function bodies
 * and prepared statements are analysed long after they were parsed.
 */
static inline bool
strings_in_doubt(void)
{
	return strings_seen == 3;
}

#endif							/* TACHO_NORMALIZE_H */
