/*
 * encoding.c
 *	  Text of any encoding in a database of any other.
 *
 * Locking: none. Memory: the current context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#include "core/encoding.h"

/* longer texts are converted in pieces of this many bytes */
#define PIECE	65536

/*
 * Converts valid bytes with `conversion` and appends them. Appends `?` for
 * each character that the other encoding lacks.
 */
static void
append_converted(StringInfo result, Oid conversion, int from, int to,
				 const char *bytes, int length)
{
	while (length > 0)
	{
		int			space = length * MAX_CONVERSION_GROWTH + 1;
		int			done;

		enlargeStringInfo(result, space);
		done = pg_do_encoding_conversion_buf(conversion, from, to,
											 (unsigned char *) bytes, length,
											 (unsigned char *) result->data +
											 result->len,
											 space, true);
		result->len += strlen(result->data + result->len);
		if (done >= length)
			return;
		appendStringInfoChar(result, '?');
		done += pg_encoding_mblen(from, bytes + done);
		bytes += done;
		length -= done;
	}
}

/*
 * Converts and appends bytes for which the server has no conversion: keeps
 * ASCII, and appends `?` for every other character.
 */
static void
append_ascii(StringInfo result, int from, const char *bytes, int length)
{
	const char *end = bytes + length;

	while (bytes < end)
	{
		appendStringInfoChar(result, IS_HIGHBIT_SET(*bytes) ? '?' : *bytes);
		bytes += pg_encoding_mblen(from, bytes);
	}
}

/* Appends bytes in encoding `from` as bytes in encoding `to`. */
static void
append(StringInfo result, int from, int to, const char *bytes, int length)
{
	Oid			conversion = from == to ? InvalidOid :
		FindDefaultConversionProc(from, to);

	while (length > 0)
	{
		int			valid = pg_encoding_verifymbstr(from, bytes,
													Min(length, PIECE));

		if (valid == 0)
		{
			/* a byte that is not part of a character */
			appendStringInfoChar(result, '?');
			valid = 1;
		}
		else if (from == to)
			appendBinaryStringInfo(result, bytes, valid);
		else if (OidIsValid(conversion))
			append_converted(result, conversion, from, to, bytes, valid);
		else
			append_ascii(result, from, bytes, valid);
		bytes += valid;
		length -= valid;
	}
}

bool
encoding_is_ascii(const char *bytes, int length)
{
	for (int i = 0; i < length; i++)
	{
		if (IS_HIGHBIT_SET(bytes[i]) || bytes[i] == '\0')
			return false;
	}
	return true;
}

char *
encoding_to_server(const char *bytes, int length, int encoding)
{
	int			to = GetDatabaseEncoding();
	int			from = encoding == PG_SQL_ASCII || to == PG_SQL_ASCII ? to : encoding;
	StringInfoData utf8;
	StringInfoData result;

	if (encoding_is_ascii(bytes, length) ||
		(to == PG_SQL_ASCII && memchr(bytes, 0, length) == NULL))
		return pnstrdup(bytes, length);

	/* the server can convert between any two encodings by way of UTF-8 */
	if (from != to && !OidIsValid(FindDefaultConversionProc(from, to)))
	{
		initStringInfo(&utf8);
		append(&utf8, from, PG_UTF8, bytes, length);
		bytes = utf8.data;
		length = utf8.len;
		from = PG_UTF8;
	}
	initStringInfo(&result);
	append(&result, from, to, bytes, length);
	return result.data;
}
