/*
 * secrets.c
 *	  Passwords and their like in the texts of utility statements.
 *
 * Constants of utility statements are part of the texts that the statistics
 * show, as in pg_stat_statements. Of statements that may hold a secret only
 * what the history has of them is kept: no literal.
 *
 * Called by hooks. Locking: none.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "utils/memutils.h"

#include "core/held.h"
#include "statements/normalize.h"
#include "statements/secrets.h"

/*
 * In names of settings, options and columns, and in bodies of functions; and
 * addresses, which may have a password in front of the host.
 */
static const char *const words[] = {
	"conninfo", "credential", "passphrase", "passwd", "password", "secret",
	"token", "://",
};

static bool
has_word(const char *text, int length)
{
	for (int at = 0; at < length && text[at] != '\0'; at++)
	{
		char		first = text[at] | 0x20;	/* of a letter: in lower case; ':' stays */

		for (int i = 0; i < lengthof(words); i++)
			if (first == words[i][0] &&
				pg_strncasecmp(text + at, words[i], strlen(words[i])) == 0)
				return at + (int) strlen(words[i]) <= length;
	}
	return false;
}

/* Statements whose literals are mostly addresses and what opens them. */
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
	return string != NULL &&
		has_word(string + Max(location, 0), length > 0 ? length : INT_MAX);
}

/* The text without any literal, in the current context; may raise errors. */
static char *
mask(const char *string, int location, int length)
{
	const char *text = CleanQuerytext(string, &location, &length);
	StringInfoData out;

	initStringInfo(&out);
	normalize_text(&out, pnstrdup(text, length), length, NULL, 0,
				   MaxAllocSize / 2, text_in_doubt(string));
	return MemoryContextStrdup(TopMemoryContext, out.data);
}

/* As mask(); NULL when there is no memory. */
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
secrets_command_text(const PlannedStmt *pstmt, const char *string)
{
	CommandText text = {string, pstmt->stmt_location, pstmt->stmt_len, NULL};

	if (secrets_in(pstmt->utilityStmt, string, text.location, text.length))
	{
		text.masked = mask_or_nothing(string, text.location, text.length);
		text.string = text.masked;
		text.location = text.length = 0;
	}
	return text;
}

void
secrets_command_free(const CommandText *text)
{
	if (text->masked)
		pfree(text->masked);
}
