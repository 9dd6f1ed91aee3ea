/*
 * normalize.c
 *	  Query texts without their constants.
 *
 * The jumble state knows where constants begin. The server's own scanner
 * finds where they end: after each token it leaves a zero byte behind the
 * token in its copy of the text.
 *
 * The scanner raises an error if the text was cut within a literal, or if a
 * setting has changed since the text was parsed. The result then ends before
 * the part that could not be scanned.
 *
 * Memory: the current context; garbage stays in it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "parser/parser.h"

#include "core/held.h"
#include "statements/normalize.h"

/*
 * Codes of tokens. The header with all codes is not installed. But
 * parser/scanner.h promises that every grammar begins with these tokens, in
 * this order, from 258 on.
 */
typedef enum Token
{
	TOKEN_IDENT = 258,
	TOKEN_UIDENT,
	TOKEN_FCONST,
	TOKEN_SCONST,
	TOKEN_USCONST,
	TOKEN_BCONST,
	TOKEN_XCONST,
	TOKEN_OP,
	TOKEN_ICONST,
	TOKEN_PARAM
} Token;

HOT_DATA int strings_seen = 0;

typedef struct Normalizer
{
	StringInfo	out;
	const char *text;
	int			length;
	int			limit;
	int			copied;			/* bytes of text copied or replaced */
	int			safe;			/* up to here no constant is left */
	int			next_number;	/* number n of the next $n */
	bool		doubt;			/* see normalize_text() */
	bool		lost;			/* nothing after `safe` may be copied */

	core_yyscan_t scanner;
	core_yy_extra_type extra;
	core_YYSTYPE value;
	YYLTYPE		location;		/* of the current token */
} Normalizer;

/*
 * The last short text and its result. The statistics and the history request
 * the same text right after each other, and scanning is most of the cost of a
 * new statement.
 */
#define LAST_BYTES 1024

static struct
{
	int			length;
	int			offset;
	int			constants;
	int			result_length;
	char		text[LAST_BYTES];
	char		result[LAST_BYTES];
} last;

static bool
is_last(const char *text, int length, const CompatJumble *jumble, int offset)
{
	return jumble != NULL && length == last.length && offset == last.offset &&
		jumble->clocations_count == last.constants &&
		memcmp(text, last.text, length) == 0;
}

static void
keep_last(const char *text, int length, const CompatJumble *jumble,
		  int offset, const char *result, int result_length)
{
	if (jumble == NULL || length > LAST_BYTES || result_length > LAST_BYTES)
		return;
	last.length = length;
	last.offset = offset;
	last.constants = jumble->clocations_count;
	last.result_length = result_length;
	memcpy(last.text, text, length);
	memcpy(last.result, result, result_length);
}

static int
next_token(Normalizer *n)
{
	return core_yylex(&n->value, &n->location, n->scanner);
}

static int
token_length(const Normalizer *n)
{
	return strlen(n->extra.scanbuf + n->location);
}

/* Copies the text up to `end`, unless it has been copied. */
static void
copy_to(Normalizer *n, int end)
{
	if (end <= n->copied)
		return;
	appendBinaryStringInfo(n->out, n->text + n->copied, end - n->copied);
	n->copied = end;
}

/* Copies the text up to a constant and puts a number in its place. */
static void
replace(Normalizer *n, int location, int length, const char *suffix)
{
	copy_to(n, location);
	appendStringInfo(n->out, "$%d%s", n->next_number++, suffix);
	n->copied = n->safe = location + length;
}

/*
 * True if the end of a token depends on standard_conforming_strings: true for
 * a plain string with a backslash before a quote.
 */
static bool
is_ambiguous(const Normalizer *n, int location, int length)
{
	const char *token = n->text + location;

	if (length == 0 || token[0] != '\'')
		return false;
	for (int i = 1; i + 1 < length; i++)
		if (token[i] == '\\' && token[i + 1] == '\'')
			return true;
	return false;
}

static bool
is_literal(int token)
{
	return (token >= TOKEN_FCONST && token <= TOKEN_XCONST) ||
		token == TOKEN_ICONST;
}

/* Replaces every literal token. */
static void
replace_literals(Normalizer *n)
{
	int			token;

	while (n->out->len < n->limit && (token = next_token(n)) != 0)
	{
		int			length = token_length(n);

		if (token == TOKEN_PARAM)
			n->next_number = Max(n->next_number, n->value.ival + 1);
		if (!is_literal(token))
			n->safe = n->location + length;
		else
		{
			replace(n, n->location, length, "");
			n->lost = n->doubt && is_ambiguous(n, n->location, length);
			if (n->lost)
				break;
		}
	}
}

static int
compare_locations(const void *left, const void *right)
{
	int			a = ((const LocationLen *) left)->location;
	int			b = ((const LocationLen *) right)->location;

	return (a > b) - (a < b);
}

/* The constants of the jumble state, sorted and without duplicates. */
static int
sort_locations(CompatJumble *jumble, LocationLen **sorted)
{
	int			count = 0;
	Size		size = sizeof(LocationLen) * jumble->clocations_count;

	if (jumble->clocations_count == 0)
		return 0;
	*sorted = palloc(size);
	memcpy(*sorted, jumble->clocations, size);
	qsort(*sorted, jumble->clocations_count, sizeof(LocationLen),
		  compare_locations);
	for (int i = 0; i < jumble->clocations_count; i++)
	{
		LocationLen *location = &(*sorted)[i];

		if (location->location < 0 ||
			(count > 0 && location->location == (*sorted)[count - 1].location))
			continue;
		(*sorted)[count++] = *location;
	}
	return count;
}

/*
 * Moves the scanner to the token at `location` and returns the token's
 * length. A minus sign and the number after it count as one token. Returns -1
 * if no token begins there.
 */
static int
constant_length(Normalizer *n, int location)
{
	int			token;

	while ((token = next_token(n)) != 0)
	{
		if (n->location < location)
			continue;
		if (n->location > location)
			return -1;
		if (token == '-' && next_token(n) == 0)
			return -1;
		return n->location + token_length(n) - location;
	}
	return -1;
}

/* Replaces the constants that the jumble state has. */
static void
replace_locations(Normalizer *n, CompatJumble *jumble, int offset)
{
	bool		lists = compat_has_lists(jumble);
	LocationLen *locations;
	int			count = sort_locations(jumble, &locations);

	n->next_number = lists ? 1 : jumble->highest_extern_param_id + 1;
	for (int i = 0; i < count && n->out->len < n->limit; i++)
	{
		LocationLen *one = &locations[i];
		int			location = one->location - offset;
		int			length;

		if (location < n->copied ||
			(compat_location_is_parameter(one) && !lists))
			continue;
		if (location >= n->length)
			break;
		n->safe = location;
		if (compat_location_is_list(one))
			replace(n, location, one->length, " /*, ... */");
		else if ((length = constant_length(n, location)) > 0)
		{
			replace(n, location, length, "");
			n->lost = n->doubt && is_ambiguous(n, location, length);
		}
		else
			n->lost = true;
		if (n->lost)
			break;
	}
}

/* Replaces constants as far as the text can be scanned. */
static void
scan(Normalizer *n, CompatJumble *jumble, int offset)
{
	MemoryContext context = CurrentMemoryContext;
	const Held	held = held_now();

	PG_TRY();
	{
		n->scanner = scanner_init(n->text, &n->extra, &ScanKeywords,
								  ScanKeywordTokens);
		compat_quiet_scanner(&n->extra);
		/*
		 * the text has been parsed, so it has no backslash that this setting
		 * forbids
		 */
		n->extra.backslash_quote = BACKSLASH_QUOTE_ON;
		if (jumble)
			replace_locations(n, jumble, offset);
		else
			replace_literals(n);
		scanner_finish(n->scanner);
	}
	PG_CATCH();
	{
		/*
		 * lack of memory may pass: then the whole text can be made, not half
		 * of it
		 */
		if (geterrcode() == ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		held_restore(held);
		MemoryContextSwitchTo(context);
		FlushErrorState();
		n->lost = true;
	}
	PG_END_TRY();
}

int
normalize_text(StringInfo out, const char *text, int length,
			   CompatJumble *jumble, int offset, int limit, bool doubt)
{
	Normalizer *n;
	int			begin = out->len;

	if (is_last(text, length, jumble, offset) && last.result_length <= limit)
	{
		appendBinaryStringInfo(out, last.result, last.result_length);
		return length;
	}
	n = palloc0(sizeof(Normalizer));
	n->out = out;
	n->text = text;
	n->length = length;
	n->limit = out->len + limit;
	n->next_number = 1;
	n->doubt = doubt;
	scan(n, jumble, offset);
	copy_to(n, Min(n->lost ? n->safe : length,
				   n->copied + Max(n->limit - out->len, 0)));
	if (n->copied == length && !n->lost)
		keep_last(text, length, jumble, offset, out->data + begin,
				  out->len - begin);
	return n->copied;
}
