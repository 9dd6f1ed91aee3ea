/*
 * comment_tags.c
 *	  Tags from the comments at both ends of a statement's text.
 *
 * A text without a comment costs a look at its first and last bytes. To find
 * the last ones, at most TEXT_BYTES are passed. So a longer text has only the
 * tags of its first comments.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "core/settings.h"
#include "statements/comment_tags.h"

/* comments at one end are read up to this length */
#define COMMENT_BYTES	2048
#define COMMENTS		4		/* at one end */
#define PAIRS			32		/* of one text */
#define VALUE_BYTES		64

/* A pair as it stands in the text. */
typedef struct Pair
{
	const char *key;
	const char *value;
	int			key_length;
	int			value_length;
	bool		quoted;			/* sqlcommenter: has URL encoding */
} Pair;

typedef struct Pairs
{
	Pair		pairs[PAIRS];
	int			count;
} Pairs;

static const char *
skip_blanks(const char *at, const char *end)
{
	while (at < end && tag_keys_blank(*at))
		at++;
	return at;
}

/*
 * Reads a value in quotes: `at` is behind the first quote. Returns the place
 * behind the last one, NULL if there is none.
 */
static const char *
read_quoted(Pair *pair, const char *at, const char *end)
{
	pair->quoted = true;
	pair->value = at;
	while (at < end && *at != '\'')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	pair->value_length = at - pair->value;
	return at < end ? at + 1 : NULL;
}

static const char *
read_plain(Pair *pair, const char *at, const char *end)
{
	pair->quoted = false;
	pair->value = at;
	while (at < end && *at != ',')
		at++;
	pair->value_length = at - pair->value;
	while (pair->value_length > 0 && tag_keys_blank(pair->value[pair->value_length - 1]))
		pair->value_length--;
	return at;
}

/* Reads a pair. Returns the place behind it, NULL if it is not one. */
static const char *
read_pair(Pair *pair, const char *at, const char *end)
{
	char		sign;

	at = skip_blanks(at, end);
	pair->key = at;
	while (at < end && tag_keys_char(*at))
		at++;
	pair->key_length = at - pair->key;
	at = skip_blanks(at, end);
	if (pair->key_length == 0 || at == end || (*at != '=' && *at != ':'))
		return NULL;
	sign = *at;
	at = skip_blanks(at + 1, end);
	if (at < end && *at == '\'')
		at = read_quoted(pair, at + 1, end);
	else
		at = sign == ':' ? read_plain(pair, at, end) : NULL;
	return at ? skip_blanks(at, end) : NULL;
}

/*
 * Adds the pairs of a comment. If the whole of it has not the form of tags,
 * none is added: "see: the manual, page 3" is no tag.
 */
static void
read_comment(Pairs *pairs, const char *at, const char *end)
{
	int			count = pairs->count;

	while (count < PAIRS)
	{
		at = read_pair(&pairs->pairs[count], at, end);
		if (at == NULL)
			return;
		count++;
		if (at == end)
		{
			pairs->count = count;
			return;
		}
		if (*at++ != ',')
			return;
	}
}

/* True if a mark that begins or ends a comment is here. */
static inline bool
is_mark(const char *at, char first, char second)
{
	return at[0] == first && at[1] == second;
}

/*
 * The mark that ends the comment whose text begins at `at`, NULL if none is
 * before `end`, or if another comment begins inside.
 */
static const char *
end_of_comment(const char *at, const char *end)
{
	for (; at + 1 < end; at++)
	{
		if (is_mark(at, '*', '/'))
			return at;
		if (is_mark(at, '/', '*'))
			return NULL;
	}
	return NULL;
}

/* The mark that begins the comment whose text ends at `at`, likewise. */
static const char *
begin_of_comment(const char *begin, const char *at)
{
	for (at -= 2; at >= begin; at--)
	{
		if (is_mark(at, '/', '*'))
			return at;
		if (is_mark(at, '*', '/'))
			return NULL;
	}
	return NULL;
}

static void
read_first_comments(Pairs *pairs, const char *text)
{
	const char *end = text + strnlen(text, COMMENT_BYTES);

	for (int i = 0; i < COMMENTS; i++)
	{
		const char *at = skip_blanks(text, Min(end, text + BLANKS));
		const char *closed;

		if (at + 2 >= end || !is_mark(at, '/', '*'))
			return;
		closed = end_of_comment(at + 2, end);
		if (closed == NULL)
			return;
		read_comment(pairs, at + 2, closed);
		text = closed + 2;
	}
}

static void
read_last_comments(Pairs *pairs, const char *text, const char *end)
{
	const char *begin = Max(text, end - COMMENT_BYTES);

	for (int i = 0; i < COMMENTS; i++)
	{
		const char *farthest = Max(begin, end - BLANKS);
		const char *open;

		while (end > farthest && (tag_keys_blank(end[-1]) || end[-1] == ';'))
			end--;
		if (end - begin < 4 || !is_mark(end - 2, '*', '/'))
			return;
		open = begin_of_comment(begin, end - 2);
		if (open == NULL)
			return;
		read_comment(pairs, open + 2, end - 2);
		end = open;
	}
}

/* ---- values ---- */

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * The byte at `at` of a value with URL encoding, which takes *taken bytes of
 * the text.
 */
static char
decoded_byte(const char *at, const char *end, int *taken)
{
	int			high;
	int			low;

	*taken = 1;
	if (*at == '\\' && end - at >= 2)
	{
		*taken = 2;
		return at[1];
	}
	if (*at != '%' || end - at < 3)
		return *at;
	high = hex_digit(at[1]);
	low = hex_digit(at[2]);
	if (high < 0 || low < 0)
		return *at;
	*taken = 3;
	return (char) (high << 4 | low);
}

/*
 * Decodes a value into `out` and returns its length. Decoding stops behind
 * VALUE_BYTES and the longest character, which may have begun before.
 */
static int
decode(const Pair *pair, char *out)
{
	const char *at = pair->value;
	const char *end = at + pair->value_length;
	int			length = 0;
	int			taken;

	while (at < end && length < VALUE_BYTES + MAX_MULTIBYTE_CHAR_LEN)
	{
		out[length++] = decoded_byte(at, end, &taken);
		at += taken;
	}
	return length;
}

/*
 * The value of a pair in `out`, cut at the border of a character. A value that
 * is not valid when it is decoded stays as it was sent; the server has checked
 * that. Returns its length.
 */
static int
value_of(const Pair *pair, int encoding, char *out)
{
	int			length = pair->quoted ? decode(pair, out) : -1;

	/* the server's functions end at a zero byte */
	if (length >= 0 && memchr(out, 0, length) != NULL)
		length = -1;
	if (length >= 0)
		/* the last character may be cut: its whole length is not there */
		length = Min(length, pg_encoding_mbcliplen(encoding, out, length, VALUE_BYTES));
	if (length < 0 || !pg_verify_mbstr(encoding, out, length, true))
	{
		length = pg_encoding_mbcliplen(encoding, pair->value, pair->value_length,
									   VALUE_BYTES);
		memcpy(out, pair->value, length);
	}
	for (int i = 0; i < length; i++)
		if ((unsigned char) out[i] < ' ' || out[i] == '\x7F')
			out[i] = '?';
	return length;
}

/*
 * Appends key=value to the tags in `out` if there is room. Returns the new
 * length.
 */
static int
append_pair(char *out, int length, const Pair *pair, const char *value, int value_length)
{
	char	   *to = out + length;
	char	   *end = out + TAGS_BYTES;

	if (end - to < 1 + pair->key_length + 1 + value_length)
		return length;
	if (length > 0)
		*to++ = ',';
	memcpy(to, pair->key, pair->key_length);
	to += pair->key_length;
	*to++ = '=';
	for (int i = 0; i < value_length; i++)
	{
		bool		coded = value[i] == ',' || value[i] == '%';

		if (end - to < (coded ? 3 : 1))
			return length;
		if (coded)
		{
			memcpy(to, value[i] == ',' ? "%2C" : "%25", 3);
			to += 3;
		}
		else
			*to++ = value[i];
	}
	return to - out;
}

static const Pair *
find_pair(const Pairs *pairs, const char *key, int length)
{
	for (int i = 0; i < pairs->count; i++)
		if (pairs->pairs[i].key_length == length &&
			memcmp(pairs->pairs[i].key, key, length) == 0 &&
			pairs->pairs[i].value_length > 0)
			return &pairs->pairs[i];
	return NULL;
}

/* The allowed pairs, in the order of the setting. */
static int
allowed_tags(const Pairs *pairs, int encoding, char *out)
{
	int			written = 0;
	int			length;

	for (const char *key = tag_keys_next(tacho_comment_tags, &length); length > 0;
		 key = tag_keys_next(key + length, &length))
	{
		const Pair *pair = find_pair(pairs, key, length);
		char		value[VALUE_BYTES + MAX_MULTIBYTE_CHAR_LEN];

		if (pair != NULL)
			written = append_pair(out, written, pair, value,
								  value_of(pair, encoding, value));
	}
	return written;
}

int
comment_tags(const char *text, int encoding, char *out)
{
	Size		length;
	Pairs		pairs;

	if (!comment_tags_on())
		return 0;
	length = strnlen(text, TEXT_BYTES);
	pairs.count = 0;
	read_first_comments(&pairs, text);
	if (length < TEXT_BYTES)
		read_last_comments(&pairs, text, text + length);
	return pairs.count == 0 ? 0 : allowed_tags(&pairs, encoding, out);
}
