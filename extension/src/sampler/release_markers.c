/*
 * release_markers.c
 *	  Markers of new values of the tag "release".
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "history/share.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"
#include "sampler/release_markers.h"

#define RELEASES			256
#define MARKERS_A_MINUTE	16
#define MINUTE_MS			(60 * 1000)
#define LONGEST				200		/* bytes of a value in a marker */
#define FORGOTTEN			65536	/* bits */

typedef struct Release
{
	uint64		application;	/* hash with its database */
	uint64		value;			/* hash */
	UnixMs		seen;			/* last sample, 0 = unused place */
} Release;

static Release releases[RELEASES];

/* A bit for each release that has lost its place to a newer one, by its hash. */
static uint8 forgotten[FORGOTTEN / 8];

/* the roles of this minute's markers, one element a marker */
static Oid	marked[MARKERS_A_MINUTE];
static int	marked_count = 0;
static int64 minute = -1;

/* The value of a key in tags, NULL if there is none. */
static const char *
value_of(const char *tags, int length, const char *key, int *value_length)
{
	const char *end = tags + length;
	int			key_length = strlen(key);

	while (tags < end)
	{
		const char *comma = memchr(tags, ',', end - tags);
		const char *behind = comma ? comma : end;

		if (behind - tags > key_length && tags[key_length] == '=' &&
			memcmp(tags, key, key_length) == 0)
		{
			*value_length = behind - tags - key_length - 1;
			return tags + key_length + 1;
		}
		tags = comma ? comma + 1 : end;
	}
	return NULL;
}

static uint64
hash_of(const char *bytes, int length, uint64 seed)
{
	return hash_bytes_extended((const unsigned char *) bytes, length, seed);
}

/* The bit of a release in `forgotten`. */
static uint32
bit_of(uint64 application, uint64 value)
{
	return (application * 31 + value) % FORGOTTEN;
}

/*
 * Notes that a release was sampled. Returns true if it is new, and its
 * application has had another one.
 */
static bool
is_new(uint64 application, uint64 value, UnixMs now)
{
	Release    *oldest = &releases[0];
	bool		had_other = false;
	uint32		bit = bit_of(application, value);

	for (int i = 0; i < RELEASES; i++)
	{
		Release    *release = &releases[i];

		if (release->seen != 0 && release->application == application)
		{
			if (release->value == value)
			{
				release->seen = now;
				return false;
			}
			had_other = true;
		}
		if (release->seen < oldest->seen)
			oldest = release;
	}
	if (oldest->seen != 0)
	{
		uint32		old = bit_of(oldest->application, oldest->value);

		forgotten[old / 8] |= 1 << old % 8;
	}
	*oldest = (Release) {application, value, now};
	return had_other && !(forgotten[bit / 8] & 1 << bit % 8);
}

/* Takes room for a marker of this role in this minute; false if none is left. */
static bool
has_room(Oid role, UnixMs now)
{
	int			own = 0;

	if (now / MINUTE_MS != minute)
		marked_count = 0;
	minute = now / MINUTE_MS;
	for (int i = 0; i < marked_count; i++)
		own += marked[i] == role;
	if (share_left(MARKERS_A_MINUTE, marked_count, own) <= 0)
		return false;
	marked[marked_count++] = role;
	return true;
}

void
release_markers_see(const SessionRow *row, const char *tags, int length, UnixMs now)
{
	int			value_length;
	int			application_length = 0;
	int			database_length;
	const char *value = value_of(tags, length, "release", &value_length);
	const char *application;
	const char *database;
	char		detail[2 * LONGEST + NAMEDATALEN + 50];

	if (value == NULL)
		return;
	application = value_of(tags, length, "application", &application_length);
	if (!is_new(hash_of(application ? application : "", application_length, row->database),
				hash_of(value, value_length, 0), now) || !has_room(row->user, now))
		return;
	database = dictionary_bytes(processes_database_name(row->database), &database_length);
	snprintf(detail, sizeof(detail), "%.*s%s%.*s, database %.*s",
			 Min(value_length, LONGEST), value, application ? ", application " : "",
			 Min(application_length, LONGEST), application ? application : "",
			 database_length, database);
	recorder_marker(MARKER_RELEASE, now, 0, 0, detail);
}
