/*
 * running_tags.c
 *	  The tags of the statement that each session executes, for the sampler.
 *
 * Tags belong to a message of the client. They are read when a statement of
 * the message is analysed, planned or, for a command, executed. Only the first
 * of these reads them, because the newest message is remembered. A prepared
 * statement is executed by later messages, which are not read. Therefore its
 * plan has a note: an invalidation item (plan_ids.c uses one, too) with the
 * hash of the tags. The hash leads to the tags in a table of this process. If
 * other tags have taken that place, the text is read again.
 *
 * Example: a driver prepares "SELECT 1 / *controller='orders'* /" (without
 * these blanks) and executes it three times. The analysis reads the text. The
 * plan has the hash of "controller=orders", and each execution publishes these
 * tags with its own start.
 *
 * Each process has a place in shared memory that only this process writes,
 * without a lock. `changes` is odd while its bytes change. The start of the
 * statement says which statement the tags belong to. So a place is never
 * cleared, neither after an error nor at the end of a session.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"

#include "core/compat.h"
#include "core/slot_area.h"
#include "statements/running_tags.h"

#define AREA "tacho running tags"
#define KNOWN			128		/* power of two */
#define TRIES			3

typedef struct Place
{
	pg_atomic_uint64 start;		/* begin of the statement */
	pg_atomic_uint32 changes;
	pg_atomic_uint32 length;
	char		bytes[TAGS_BYTES];
} Place;

typedef struct Tags
{
	uint32		hash;			/* 0 = none */
	int			length;
	char		bytes[TAGS_BYTES];
} Tags;

static HOT_DATA Place *places = NULL;	/* by slot; NULL = not set up */

HOT_DATA const char *tags_message = NULL;
HOT_DATA TimestampTz tags_message_start = 0;
HOT_DATA uint32 tags_message_hash = 0;

/* start of the newest message that has tags of its own */
static HOT_DATA TimestampTz tagged_start = 0;

/* hash of the tags in this process's place */
static HOT_DATA uint32 published = 0;

/* tags by hash: a later set with the same low bits replaces an earlier one */
static Tags known[KNOWN];

void
running_tags_shmem_request(void)
{
	slot_area_request(sizeof(Place));
}

static void
init_place(void *memory)
{
	Place	   *place = memory;

	pg_atomic_init_u64(&place->start, 0);
	pg_atomic_init_u32(&place->changes, 0);
	pg_atomic_init_u32(&place->length, 0);
}

void
running_tags_shmem_startup(void)
{
	places = slot_area_startup(AREA, sizeof(Place), init_place);
}

static inline Place *
place_of(int slot)
{
	return places != NULL && slot_area_has(slot) ? &places[slot] : NULL;
}

/* Never 0. */
static inline uint32
hash_of(const char *bytes, int length)
{
	uint32		hash = hash_bytes((const unsigned char *) bytes, length);

	return hash != 0 ? hash : 1;
}

static inline Tags *
known_place(uint32 hash)
{
	return &known[hash & (KNOWN - 1)];
}

/* Reads the tags of a text. Returns their hash, 0 = none. */
static uint32
read_text(const char *text)
{
	char		bytes[TAGS_BYTES];
	int			length = comment_tags(text, GetDatabaseEncoding(), bytes);
	uint32		hash;
	Tags	   *tags;

	if (length == 0)
		return 0;
	hash = hash_of(bytes, length);
	tags = known_place(hash);
	tags->hash = hash;
	tags->length = length;
	memcpy(tags->bytes, bytes, length);
	return hash;
}

/* Reads the tags of a message, unless it is the one that was read last. */
static uint32
read_message(const char *text)
{
	TimestampTz start = GetCurrentStatementStartTimestamp();

	if (!running_tags_is_message(text, start))
	{
		tags_message = text;
		tags_message_start = start;
		tags_message_hash = read_text(text);
	}
	return tags_message_hash;
}

static void
put(Place *place, const char *bytes, int length)
{
	uint32		changes = pg_atomic_read_u32(&place->changes);

	pg_atomic_write_u32(&place->changes, changes | 1);
	pg_write_barrier();
	memcpy(place->bytes, bytes, length);
	pg_atomic_write_u32(&place->length, length);
	pg_atomic_write_u64(&place->start, GetCurrentStatementStartTimestamp());
	pg_write_barrier();
	pg_atomic_write_u32(&place->changes, (changes | 1) + 1);
}

/* Publishes tags of the table. */
static void
publish(uint32 hash)
{
	Place	   *place = place_of(compat_my_slot());
	const Tags *tags = known_place(hash);

	if (place == NULL)
		return;
	/* the same tags as before: only the statement is another one */
	if (hash == published)
		pg_atomic_write_u64(&place->start, GetCurrentStatementStartTimestamp());
	else
		put(place, tags->bytes, tags->length);
	published = hash;
}

void
running_tags_message(const char *text)
{
	if (read_message(text) == 0)
		return;
	publish(tags_message_hash);
	tagged_start = tags_message_start;
}

void
running_tags_note(PlannedStmt *stmt, const char *text)
{
	uint32		hash = read_message(text);
	PlanInvalItem *item;

	if (hash == 0)
		return;
	item = makeNode(PlanInvalItem);
	item->cacheId = TAGS_CACHE_ID;
	item->hashValue = hash;
	/* the last item may be the plan's id */
	stmt->invalItems = lcons(item, stmt->invalItems);
}

void
running_tags_publish_plan(const QueryDesc *query)
{
	Place	   *place = place_of(compat_my_slot());
	uint32		hash = linitial_node(PlanInvalItem, query->plannedstmt->invalItems)->hashValue;

	if (place == NULL || tagged_start == GetCurrentStatementStartTimestamp())
		return;
	if (known_place(hash)->hash != hash && query->sourceText != NULL)
		hash = read_text(query->sourceText);
	if (hash != 0 && known_place(hash)->hash == hash)
		publish(hash);
}

int
running_tags_in(int slot, TimestampTz start, char *out)
{
	Place	   *place = place_of(slot);

	if (place == NULL || pg_atomic_read_u64(&place->start) != (uint64) start)
		return 0;
	for (int try = 0; try < TRIES; try++)
	{
		uint32		before = pg_atomic_read_u32(&place->changes);
		uint32		length;

		pg_read_barrier();
		length = pg_atomic_read_u32(&place->length);
		if (length > TAGS_BYTES)
			return 0;
		memcpy(out, place->bytes, length);
		if (pg_atomic_read_u64(&place->start) != (uint64) start)
			return 0;
		pg_read_barrier();
		if ((before & 1) == 0 && pg_atomic_read_u32(&place->changes) == before)
			return length;
	}
	return 0;
}
