/*
 * activity.c
 *	  Texts for processes without a query id: their activity without secrets.
 *
 * A client that waits for a lock in parse analysis reports the whole string
 * it has sent. A parallel worker reports the string of its leader's client, a
 * walsender the SQL that its client sent, a background worker any text. The
 * setting standard_conforming_strings of these processes is unknown here. So
 * a literal whose end depends on it ends the text.
 *
 * Called by the sampler. Locking: none.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/settings.h"
#include "history/activity.h"
#include "statements/normalize.h"
#include "statements/query_text.h"

/*
 * the walsender reports one of these only after its own grammar has accepted
 * it
 */
static const char *const replication_commands[] = {
	"ALTER_REPLICATION_SLOT", "BASE_BACKUP", "CREATE_REPLICATION_SLOT",
	"DROP_REPLICATION_SLOT", "IDENTIFY_SYSTEM", "READ_REPLICATION_SLOT",
	"START_REPLICATION", "TIMELINE_HISTORY", "UPLOAD_MANIFEST",
};

static bool
starts_with_word(const char *text, const char *word)
{
	size_t		length = strlen(word);

	return pg_strncasecmp(text, word, length) == 0 &&
		!isalnum((unsigned char) text[length]) && text[length] != '_';
}

/*
 * True if the server made the text, or parsed it as one of its own commands.
 */
static bool
is_of_server(BackendType type, const char *activity)
{
	if (type == B_AUTOVAC_WORKER)
		return strncmp(activity, "autovacuum: ", strlen("autovacuum: ")) == 0;
	if (type != B_WAL_SENDER)
		return false;
	for (int i = 0; i < lengthof(replication_commands); i++)
		if (starts_with_word(activity, replication_commands[i]))
			return true;
	return false;
}

bool
activity_text(StringInfo out, BackendType type, const char *activity,
			  int length, int *whole_length)
{
	int			done = Min(length, QUERY_TEXT_LIMIT);

	if (tacho_query_text == QUERY_TEXT_RAW || is_of_server(type, activity))
		appendBinaryStringInfo(out, activity, done);
	else
		done = normalize_text(out, activity, length, NULL, 0,
							  QUERY_TEXT_LIMIT, true);
	*whole_length = done < length ? length : 0;
	return out->len > 0;
}
