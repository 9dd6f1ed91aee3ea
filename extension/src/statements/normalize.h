/*
 * normalize.h
 *	  Query texts without their constants.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_NORMALIZE_H
#define TACHO_NORMALIZE_H

#include "core/compat.h"
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
 * under another standard_conforming_strings; a literal whose end depends on
 * that ends the result, too. Returns the number of bytes of `text` that the
 * result stands for.
 *
 * Swallows errors of the scanner, so it must not be called while an error is
 * being handled. Raises one when there is no memory for the result.
 */
extern int	normalize_text(StringInfo out, const char *text, int length,
						   CompatJumble *jumble, int offset, int limit,
						   bool doubt);

/*
 * Whether statements of `source` may have been parsed under other settings
 * than those of now: it names the setting that matters.
 */
extern bool text_in_doubt(const char *source);

#endif							/* TACHO_NORMALIZE_H */
