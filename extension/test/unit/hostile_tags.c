/*
 * hostile_tags.c
 *	  Reads tags of texts that end at the border of a page which cannot be
 *	  read. For 127_hostile_tags.pl, which builds it; not part of the
 *	  extension.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sys/mman.h>

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "core/tag_keys.c"
#include "statements/comment_tags.c"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(tags_of);
PG_FUNCTION_INFO_V1(broken_rules);

#define ROOM	(4 * 1024 * 1024)
#define PAGE	(64 * 1024)

char	   *tacho_comment_tags = NULL;
int			tacho_query_text = QUERY_TEXT_NORMALIZED;

/* Copies a text to the end of the memory that can be read. */
static char *
at_border(const char *bytes, int length)
{
	static char *border = NULL;

	if (border == NULL)
	{
		char	   *begin = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE,
								 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		border = begin + ROOM;
		mprotect(border, PAGE, PROT_NONE);
	}
	memcpy(border - length - 1, bytes, length);
	border[-1] = '\0';
	return border - length - 1;
}

static int
read_at_border(const char *bytes, int length, char *out)
{
	return comment_tags(at_border(bytes, length), GetDatabaseEncoding(), out);
}

/* The tags of a text, NULL for none. */
Datum
tags_of(PG_FUNCTION_ARGS)
{
	char	   *source = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char		out[TAGS_BYTES];
	int			length;

	tacho_comment_tags = text_to_cstring(PG_GETARG_TEXT_PP(1));
	length = read_at_border(source, strlen(source), out);
	if (length == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out, length));
}

static uint32
next_number(uint64 *state)
{
	*state = *state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
	return (uint32) (*state >> 33);
}

/* Comments are made of these pieces, and some pieces break them. */
static const char *const pieces[] = {
	"\x2F*", "*\x2F", "'", "\\", "\\'", ",", "=", ":", "%", "%2", "%00", "%ff", "%C3%A9",
	"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x90\x98", " ", "\n", ";", "a", "job", "route", "route='x'",
	"\x2F*job:mail*\x2F", "\x2F*route='%2Fa'*\x2F", "SELECT 1", "\x01", "\x7F", "--", "$$", "+",
	"0123456789012345678901234567890123456789012345678901234567890123456789"
};

static int
make_text(uint64 *state, char *to)
{
	int			count = next_number(state) % 40;
	char	   *at = to;

	for (int i = 0; i < count; i++)
	{
		const char *piece = pieces[next_number(state) % lengthof(pieces)];
		int			times = next_number(state) % 50 == 0 ? 60 : 1;

		while (times-- > 0)
		{
			memcpy(at, piece, strlen(piece));
			at += strlen(piece);
		}
	}
	return at - to;
}

/* The rule that the tags in `out` break, NULL if they break none. */
static const char *
broken_rule(const char *out, int length)
{
	bool		in_key = true;

	if (length < 0 || length > TAGS_BYTES)
		return "length";
	if (!pg_verify_mbstr(GetDatabaseEncoding(), out, length, true))
		return "encoding";
	for (int i = 0; i < length; i++)
	{
		unsigned char c = out[i];

		if (c < ' ' || c == 0x7F)
			return "control character";
		if (in_key && c == '=')
			in_key = false;
		else if (c == ',')
			in_key = true;
		else if (c == '%' && (in_key || length - i < 3 ||
							  (memcmp(out + i, "%2C", 3) != 0 && memcmp(out + i, "%25", 3) != 0)))
			return "percent sign";
		else if (in_key && !tag_keys_char(c))
			return "key";
	}
	return length > 0 && in_key ? "key without value" : NULL;
}

/* Reads made-up texts; returns the rules that tags of them broke. */
Datum
broken_rules(PG_FUNCTION_ARGS)
{
	uint64		state = PG_GETARG_INT64(0);
	int			count = PG_GETARG_INT32(1);
	char	   *text = palloc(256 * 1024);
	StringInfoData broken;
	int			tagged = 0;

	initStringInfo(&broken);
	tacho_comment_tags = "job, route,a";
	for (int i = 0; i < count; i++)
	{
		char		out[TAGS_BYTES];
		int			length = make_text(&state, text);
		int			got = read_at_border(text, length, out);
		const char *rule = broken_rule(out, got);

		tagged += got > 0;
		if (rule != NULL)
			appendStringInfo(&broken, "%s: %.*s\n", rule, Min(got, 100), out);
	}
	appendStringInfo(&broken, tagged > count / 100 ? "many have tags" : "%d have tags", tagged);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(broken.data, broken.len));
}
