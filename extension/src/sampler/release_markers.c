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
#define FORGOTTEN			4096

typedef struct Release
{
	uint64		application;	/* hash with its database */
	uint64		value;			/* hash */
	UnixMs		seen;			/* last sample, 0 = unused place */
} Release;

static Release releases[RELEASES];

/*
 * A ring of the releases that have lost their places to newer ones: hashes of
 * application and value.
 */
static uint64 forgotten[FORGOTTEN];
static uint32 forgotten_at = 0; /* the next place */

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

static bool
is_forgotten(uint64 hash)
{
	for (int i = 0; i < FORGOTTEN; i++)
		if (forgotten[i] == hash)
			return true;
	return false;
}

/* Puts a release that loses its place into the ring, unless it is there. */
static void
forget(const Release *release)
{
	uint64		hash = hash_combine64(release->application, release->value);

	if (is_forgotten(hash))
		return;
	forgotten[forgotten_at] = hash;
	forgotten_at = (forgotten_at + 1) % FORGOTTEN;
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
		forget(oldest);
	*oldest = (Release) {application, value, now};
	return had_other && !is_forgotten(hash_combine64(application, value));
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
