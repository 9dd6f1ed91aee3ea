/*
 * schema_markers.c
 *	  Markers for changes of the schema.
 *
 * Memory: the caller's context, for the text of a marker.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/timestamp.h"

#include "changes/schema_change.h"
#include "history/names.h"
#include "history/share.h"
#include "sampler/recorder.h"
#include "sampler/schema_markers.h"

#define MARKERS_A_MINUTE	240
#define MINUTE_US			INT64CONST(60000000)

/* Markers of a role in this minute. */
typedef struct RoleCount
{
	Oid			user;
	int			count;
} RoleCount;

static int64 minute = 0;
static RoleCount roles[MARKERS_A_MINUTE];
static int	role_count = 0;
static int	put_count = 0;		/* of all roles in this minute */
static int64 unlisted = 0;		/* changes of this minute without a marker */
static uint64 dropped = 0;		/* as of the last turn */

static UnixMs
unix_ms(TimestampTz time)
{
	return (time + TACHO_EPOCH_OFFSET_US) / 1000;
}

/* The count of a role, NULL if no role has room for its first marker. */
static RoleCount *
count_of(Oid user)
{
	for (int i = 0; i < role_count; i++)
		if (roles[i].user == user)
			return &roles[i];
	if (role_count == MARKERS_A_MINUTE)
		return NULL;
	roles[role_count] = (RoleCount) {user, 0};
	return &roles[role_count++];
}

static bool
has_room(Oid user)
{
	RoleCount  *mine = count_of(user);

	if (mine == NULL || share_left(MARKERS_A_MINUTE, put_count, mine->count) <= 0)
		return false;
	mine->count++;
	put_count++;
	return true;
}

static void
append_named(StringInfo text, const char *what, const char *name)
{
	if (name != NULL && name[0] != '\0')
		appendStringInfo(text, ", %s %s", what, name);
}

/* In words. The names of role and database may be unknown yet. */
static char *
described(const SchemaChange *change)
{
	StringInfoData text;
	int			encoding;

	initStringInfo(&text);
	appendStringInfoString(&text, change->tag);
	if (change->target[0] != '\0')
		appendStringInfo(&text, " %s", change->target);
	append_named(&text, "role", names_get_role(change->user, &encoding));
	append_named(&text, "database", names_get_database(change->database, &encoding));
	append_named(&text, "application", change->application);
	if (change->outcome == SCHEMA_PREPARED)
		appendStringInfoString(&text, " (prepared, not committed)");
	if (change->outcome == SCHEMA_ROLLED_BACK)
		appendStringInfo(&text, " (rolled back after %.1f s)",
						 (change->end - change->begin) / 1000000.0);
	if (change->left_out > 0)
		appendStringInfo(&text, ", and %d more in this transaction", change->left_out);
	return text.data;
}

static void
put(const SchemaChange *change)
{
	UnixMs		end = unix_ms(change->end);
	char	   *detail;

	if (!has_room(change->user))
	{
		unlisted += 1 + change->left_out;
		return;
	}
	names_want_database(change->database);
	names_want_role(change->user);
	names_resolve();
	detail = described(change);
	recorder_marker(MARKER_SCHEMA_CHANGED, end, unix_ms(change->begin), end, detail);
	pfree(detail);
}

/* The minute is over: says how many changes it had beyond those that are marked. */
static void
next_minute(int64 wall_us)
{
	if (unlisted > 0)
		recorder_marker(MARKER_SCHEMA_CHANGED, wall_us / 1000, minute * MINUTE_US / 1000,
						wall_us / 1000,
						psprintf(INT64_FORMAT " more changes of the schema are not listed", unlisted));
	minute = wall_us / MINUTE_US;
	role_count = put_count = 0;
	unlisted = 0;
}

void
schema_markers_turn(int64 wall_us)
{
	uint64		before = dropped;

	if (wall_us / MINUTE_US != minute)
		next_minute(wall_us);
	dropped = schema_change_drain(put);
	unlisted += dropped - before;
}
