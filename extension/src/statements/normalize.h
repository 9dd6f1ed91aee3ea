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
 * `limit` bytes. With a jumble state those constants are replaced that the
 * query identifier leaves out; offsets in it count from `offset` bytes before
 * `text`. Without (utility statements) all literals are replaced, passwords
 * included.
 *
 * `text` ends with a zero byte at `length`. What cannot be scanned ends the
 * result, so that nothing slips through. `doubt`: the text may have been parsed
 * under another standard_conforming_strings (strings_in_doubt()); a literal
 * whose end depends on that ends the result, too. Returns the number of bytes of
 * `text` that the result stands for.
 *
 * Swallows errors of the scanner, so it must not be called while an error is
 * being handled. Raises one when there is no memory for the result.
 */
extern int	normalize_text(StringInfo out, const char *text, int length,
						   CompatJumble *jumble, int offset, int limit,
						   bool doubt);

/*
 * The values of standard_conforming_strings under which this process has
 * analysed statements: a bit for each. The server analyses the first statement
 * of a string as soon as it has parsed that string, so a string that was parsed
 * under another value than that of now leaves both bits here.
 */
extern HOT_DATA int strings_seen;

/* To be called at each parse analysis, before a text is made. */
static inline void
strings_observe(void)
{
	strings_seen |= compat_standard_strings() ? 1 : 2;
}

/*
 * Whether a text may have been parsed under another standard_conforming_strings
 * than that of now. Later statements of a message, bodies of functions and
 * prepared statements are analysed long after they were parsed.
 */
static inline bool
strings_in_doubt(void)
{
	return strings_seen == 3;
}

#endif							/* TACHO_NORMALIZE_H */
