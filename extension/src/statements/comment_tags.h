/*
 * comment_tags.h
 *	  Tags from the comments at both ends of a statement's text.
 *
 * Two forms are read. sqlcommenter: key='value' with URL encoding. Marginalia,
 * which Rails writes by default: key:value. Pairs have commas between them.
 *
 *		SELECT * FROM orders / *controller='orders',route='%2Forders%2F'* /
 *		/ *application:shop,controller:orders* / SELECT * FROM orders
 *
 * (without the blanks inside the marks of the comments). The result has the
 * pairs whose keys tacho.comment_tags names, in its order, and nothing else of
 * the comment: "controller=orders,route=/orders/". A comma in a value becomes
 * %2C, a percent sign %25.
 *
 * No lock, no allocation, no error. The bytes looked at are bounded: see
 * COMMENT_BYTES and TEXT_BYTES in comment_tags.c.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_COMMENT_TAGS_H
#define TACHO_COMMENT_TAGS_H

#include "core/settings.h"
#include "core/tag_keys.h"

/* a longer text is read at its begin only */
#define TEXT_BYTES		(64 * 1024)
/* blanks and semicolons that are passed to find a comment */
#define BLANKS			64

/* room for the tags of one statement, in bytes */
#define TAGS_BYTES		512

/* Tags are part of a text, so they are not read where texts are not. */
static inline bool
comment_tags_on(void)
{
	return tacho_comment_tags != NULL && tacho_comment_tags[0] != '\0' &&
		tacho_query_text != QUERY_TEXT_OFF;
}

/* True if a comment may be at an end of a text. Most texts end otherwise. */
static inline bool
comment_tags_may_be(const char *text)
{
	const char *farthest;
	const char *end;
	Size		length;

	if (!comment_tags_on())
		return false;
	if (text[0] == '/' || tag_keys_blank(text[0]))
		return true;
	length = strnlen(text, TEXT_BYTES);
	if (length == TEXT_BYTES)
		return false;
	end = text + length;
	farthest = length > BLANKS ? end - BLANKS : text;
	while (end > farthest && (tag_keys_blank(end[-1]) || end[-1] == ';'))
		end--;
	return end > text && end[-1] == '/';
}

/*
 * Writes the tags of a text into `out`, which has TAGS_BYTES, and returns
 * their length; 0 = none. A comment that has another form gives none. Values
 * are cut at 64 bytes, at the border of a character. Pairs that find no room
 * are left out. `encoding` is the server encoding of the text.
 */
extern int	comment_tags(const char *text, int encoding, char *out);

#endif							/* TACHO_COMMENT_TAGS_H */
