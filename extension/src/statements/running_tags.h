/*
 * running_tags.h
 *	  The tags of the statement that each session executes, for the sampler.
 *
 * comment_tags.h says what tags are. Nothing is known with
 * tacho.statements = off, as with plans.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RUNNING_TAGS_H
#define TACHO_RUNNING_TAGS_H

#include "access/xact.h"
#include "executor/execdesc.h"
#include "nodes/plannodes.h"
#include "utils/timestamp.h"

#include "core/hot.h"
#include "plans/running_plan.h"
#include "statements/comment_tags.h"

/* Called by the hooks for shared memory. */
extern void running_tags_shmem_request(void);
extern void running_tags_shmem_startup(void);

/*
 * A top-level statement of the client's message `text` is analysed, or a
 * command in it begins. Publishes the tags of the text, if it has any.
 */
extern void running_tags_message(const char *text);

/*
 * The text of the newest message that was read, its start, and the hash of its
 * tags, 0 = none.
 */
extern HOT_DATA const char *tags_message;
extern HOT_DATA TimestampTz tags_message_start;
extern HOT_DATA uint32 tags_message_hash;

/*
 * True if a text is that message; `start` is the start of the current one. The
 * address alone does not say so: a later message often has the address of an
 * earlier one.
 */
static inline bool
running_tags_is_message(const char *text, TimestampTz start)
{
	return text == tags_message && tags_message_start == start;
}

/* False if a text surely has no tags. */
static inline bool
running_tags_may_be(const char *text, TimestampTz start)
{
	return running_tags_is_message(text, start) ? tags_message_hash != 0 :
		comment_tags_may_be(text);
}

/* Notes that the newest message has no tags. */
static inline void
running_tags_none(const char *text, TimestampTz start)
{
	tags_message = text;
	tags_message_start = start;
	tags_message_hash = 0;
}

/*
 * Notes in a plan the tags of the text that it was planned from. A cached plan
 * keeps the note.
 */
extern void running_tags_note(PlannedStmt *stmt, const char *text);

/* Publishes the tags of a plan, unless its message has tags of its own. */
extern void running_tags_publish_plan(const QueryDesc *query);

/* The number in invalidation items that note tags; no system cache has it. */
#define TAGS_CACHE_ID	0x54414753

/* Call it before each piece of an execution, before running_plan_enter(). */
static inline void
running_tags_enter(const QueryDesc *query)
{
	List	   *items = query->plannedstmt->invalItems;

	if (unlikely(items != NIL) && running_plan_depth == 0 &&
		linitial_node(PlanInvalItem, items)->cacheId == TAGS_CACHE_ID)
		running_tags_publish_plan(query);
}

/*
 * Copies the tags of the statement that the process in `slot` (compat.h)
 * reports into `out`, which has TAGS_BYTES; returns their length, 0 = none.
 * The start identifies the statement. Any process may call it.
 */
extern int	running_tags_in(int slot, TimestampTz start, char *out);

#endif							/* TACHO_RUNNING_TAGS_H */
