/*
 * secrets.c
 *	  Passwords and other secrets in the texts of utility statements.
 *
 * Any literal of a utility statement may be a secret: CALL make_user('bob',
 * 'hunter2'). So the statistics keep these statements as the history does,
 * without literals. If the statistics replace pg_stat_statements, or raw texts
 * are wanted, texts are the same as in pg_stat_statements. Even then, literals
 * are removed from statements that are likely to hold a secret.
 *
 * Called by hooks. Locking: none.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "core/held.h"
#include "statements/normalize.h"
#include "statements/secrets.h"
#include "statements/statements_shared.h"

/*
 * Words that suggest a secret in names of settings, options and columns, and
 * in function bodies. "conninfo" is one, because an address may have a
 * password before the host.
 */
static const char *const words[] = {
	"conninfo", "credential", "passphrase", "passwd", "password", "secret",
	"token",
};

#define LEAST 5					/* letters of the shortest word */

/*
 * Returns the steps of the search for words, after Horspool. The search
 * compares a window of LEAST bytes. The table is indexed by the window's last
 * byte. Its value is the number of bytes that the window can move to the right
 * without missing a word. 0 = the window may be the beginning of a word.
 */
static const uint8 *
word_steps(void)
{
	static uint8 steps[UCHAR_MAX + 1];
	static bool made = false;

	if (made)
		return steps;
	memset(steps, LEAST, sizeof(steps));
	for (int i = 0; i < lengthof(words); i++)
		for (int at = 0; at < LEAST; at++)
		{
			unsigned char letter = words[i][at];
			uint8		step = LEAST - 1 - at;

			steps[letter] = Min(steps[letter], step);
			steps[pg_toupper(letter)] = steps[letter];
		}
	made = true;
	return steps;
}

static bool
begins_with_word(const char *text, int length)
{
	char		first = text[0] | 0x20;	/* a letter in lower case */

	for (int i = 0; i < lengthof(words); i++)
		if (first == words[i][0] && (int) strlen(words[i]) <= length &&
			pg_strncasecmp(text, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static bool
has_word(const char *text, int length)
{
	const uint8 *steps = word_steps();

	for (int at = 0; at + LEAST <= length;)
	{
		int			step = steps[(unsigned char) text[at + LEAST - 1]];

		if (step == 0 && begins_with_word(text + at, length - at))
			return true;
		at += Max(step, 1);
	}
	return false;
}

static bool
has_address(const char *text, int length)
{
	const char *end = text + length;

	while ((text = memchr(text, ':', end - text)) != NULL)
	{
		if (end - text >= 3 && text[1] == '/' && text[2] == '/')
			return true;
		text++;
	}
	return false;
}

/* Statements whose literals are mostly addresses and credentials. */
static bool
is_about_access(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateFdwStmt:
			return ((const CreateFdwStmt *) statement)->options != NIL;
		case T_AlterFdwStmt:
			return ((const AlterFdwStmt *) statement)->options != NIL;
		case T_CreateForeignServerStmt:
			return ((const CreateForeignServerStmt *) statement)->options != NIL;
		case T_AlterForeignServerStmt:
			return ((const AlterForeignServerStmt *) statement)->options != NIL;
		case T_CreateUserMappingStmt:
			return ((const CreateUserMappingStmt *) statement)->options != NIL;
		case T_AlterUserMappingStmt:
			return ((const AlterUserMappingStmt *) statement)->options != NIL;
		case T_CreateForeignTableStmt:
			return ((const CreateForeignTableStmt *) statement)->options != NIL;
		case T_CreateSubscriptionStmt:
			return true;
		case T_AlterSubscriptionStmt:
			return ((const AlterSubscriptionStmt *) statement)->conninfo != NULL;
		default:
			return false;
	}
}

bool
secrets_in(const Node *statement, const char *string, int location, int length)
{
	if (is_about_access(statement))
		return true;
	if (string == NULL)
		return false;
	string += Max(location, 0);
	length = length > 0 ? length : (int) strlen(string);
	return has_word(string, length) || has_address(string, length);
}

/*
 * Returns the text without literals, in the current memory context; may raise
 * errors. A text that is too long to keep is cut before it is scanned.
 */
static char *
mask(const char *string, int location, int length)
{
	const char *text = CleanQuerytext(string, &location, &length);
	int			most = text_most();
	int			scanned = Min(length, most);
	StringInfoData out;

	initStringInfo(&out);
	normalize_text(&out, pnstrdup(text, scanned), scanned, NULL, 0, most,
				   strings_in_doubt());
	if (scanned < length)
	{
		out.len = pg_mbcliplen(out.data, out.len, most - strlen(TEXT_CUT));
		out.data[out.len] = '\0';
		appendStringInfoString(&out, TEXT_CUT);
	}
	return MemoryContextStrdup(TopMemoryContext, out.data);
}

/* Like mask(), but returns NULL if there is no memory. */
static char *
mask_or_nothing(const char *string, int location, int length)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext volatile scratch = NULL;
	char	   *volatile result = NULL;
	const Held	held = held_now();

	PG_TRY();
	{
		scratch = AllocSetContextCreate(caller, "tacho secrets",
										ALLOCSET_SMALL_SIZES);
		MemoryContextSwitchTo(scratch);
		result = mask(string, location, length);
	}
	PG_CATCH();
	{
		held_restore(held);
		FlushErrorState();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(caller);
	if (scratch)
		MemoryContextDelete(scratch);
	return result;
}

CommandText
secrets_command_text(const PlannedStmt *pstmt, const char *string, bool known)
{
	int			location = pstmt->stmt_location;
	int			length = pstmt->stmt_len;
	CommandText text = {{string, location, length}};

	/*
	 * after SET ROLE the command counts for another user, whose entry may
	 * lack the text
	 */
	known = known && secrets_mask_all() && !IsA(pstmt->utilityStmt, VariableSetStmt);
	if (known || string == NULL)
		text.source.string = NULL;
	else if (secrets_mask_all() ||
			 secrets_in(pstmt->utilityStmt, string, location, length))
	{
		text.masked = mask_or_nothing(string, location, length);
		text.source = (StatementSource) {.string = text.masked, .masked = true};
	}
	return text;
}

void
secrets_command_free(const CommandText *text)
{
	if (text->masked)
		pfree(text->masked);
}
