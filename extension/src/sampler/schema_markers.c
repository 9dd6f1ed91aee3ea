/*
 * schema_markers.c
 *	  Markers for changes of the schema.
 *
 * Memory: none of its own.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <netdb.h>

#include "utils/timestamp.h"

#include "changes/schema_change.h"
#include "history/dictionary.h"
#include "history/names.h"
#include "history/share.h"
#include "sampler/given_names.h"
#include "sampler/processes.h"
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
static int64 unlisted = 0;		/* changes of this minute beyond the limits */

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

/*
 * Puts the marker of a change. Names that a client chose take bytes of its
 * role's share of the day. The names of role and database may be unknown yet.
 */
static void
put(const SchemaChange *change)
{
	const StatementTarget *target = &change->target;
	MarkerRow	marker = {
		.kind = MARKER_SCHEMA_CHANGED,
		.time = unix_ms(change->end),
		.since = unix_ms(change->begin),
		.until = unix_ms(change->end),
		.object_oid = change->object,
		.outcome = change->outcome,
		.left_out = change->left_out,
	};
	char		client[NI_MAXHOST];

	if (!has_room(change->user))
	{
		unlisted += 1 + change->left_out;
		return;
	}
	names_want_database(change->database);
	names_want_role(change->user);
	names_resolve();
	names_client_addr(&change->client, client, sizeof(client));
	(void) recorder_frame(marker.time);
	marker.command = dictionary_text(target->command);
	marker.object_class = dictionary_text(target->object_class);
	marker.object_name = given_text_id(change->user, target->object, change->encoding);
	marker.detail = given_text_id(change->user, target->rest, change->encoding);
	marker.database = dictionary_use_name(processes_database_name(change->database));
	marker.username = dictionary_use_name(processes_role_name(change->user));
	marker.application = given_name_id(change->user, change->application);
	marker.client_addr = dictionary_text(client);
	recorder_marker_row(&marker);
}

/* Ends the minute: marks the number of changes beyond its limit. */
static void
next_minute(int64 wall_us)
{
	unlisted += schema_change_take_dropped();
	if (unlisted > 0)
	{
		MarkerRow	marker = {
			.kind = MARKER_SCHEMA_CHANGED,
			.time = wall_us / 1000,
			.since = minute * MINUTE_US / 1000,
			.until = wall_us / 1000,
			.left_out = unlisted,
		};

		(void) recorder_frame(marker.time);
		recorder_marker_row(&marker);
	}
	minute = wall_us / MINUTE_US;
	role_count = put_count = 0;
	unlisted = 0;
}

void
schema_markers_turn(int64 wall_us)
{
	if (wall_us / MINUTE_US != minute)
		next_minute(wall_us);
	schema_change_drain(put);
}
