/*
 * message_tags.h
 *	  Finds the messages of a client among all texts, for their tags.
 *
 * The hooks of hooks.c call this for each statement, before hooks of other
 * extensions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_MESSAGE_TAGS_H
#define TACHO_MESSAGE_TAGS_H

#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "core/hot.h"
#include "statements/running_tags.h"

/* start of the message whose EXECUTE runs now; it is stale after an error */
extern HOT_DATA TimestampTz message_tags_execute;

/*
 * A statement of this text is analyzed. The text of a function that is analyzed
 * while a plan is made is not the message.
 */
static inline void
message_tags_analyzed(const char *text, bool toplevel)
{
	TimestampTz start;

	if (text != debug_query_string || text == NULL || !toplevel)
		return;
	start = GetCurrentStatementStartTimestamp();
	if (unlikely(running_tags_may_be(text, start)))
		running_tags_message(text);
	else
		running_tags_none(text, start);
}

/*
 * False if a text that is planned surely has no tags of a client's message.
 * Bind plans the text of an earlier message, and EXECUTE the text of PREPARE.
 * The query of DECLARE has the message's text, but not its level. Any other
 * text belongs to a function, also at the top level: a deferred trigger runs
 * there.
 */
static inline bool
message_tags_may_be(const char *text, bool toplevel)
{
	TimestampTz start = GetCurrentStatementStartTimestamp();
	bool		of_client = running_tags_is_message(text, start) ||
		(toplevel && (text == debug_query_string || message_tags_execute == start));

	return text != NULL && of_client && running_tags_may_be(text, start);
}

/*
 * A command begins. Returns true if it executes a prepared statement; then
 * call message_tags_executed() when it has ended.
 */
extern bool message_tags_command(const PlannedStmt *command, const char *text,
								 ProcessUtilityContext context, bool toplevel);

static inline void
message_tags_executed(void)
{
	message_tags_execute = 0;
}

#endif							/* TACHO_MESSAGE_TAGS_H */
