/*
 * text_ring.c
 *	  The ring that takes texts and trees of plans from backends to the
 *	  sampler. Also the set of keys of the texts and trees that were taken.
 *
 * Locking: backends write the ring under the lock "tacho", which they only
 * acquire conditionally: none of them waits. The sampler reads it without the
 * lock. The set consists of atomics.
 *
 * Nothing here raises errors in a backend.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "core/shmem.h"
#include "statements/text_ring.h"

#define TEXT_WAYS		8		/* places of a key: half a cache line */

/* values of `share_used` beside the hash of a role in a database */
#define NO_ROLE			0
#define SEVERAL			UINT32_MAX

/* An entry of the ring, followed by its bytes. It never wraps around. */
typedef struct RingEntry
{
	uint32		size;			/* whole entry; 0 = continue at the begin */
	Oid			database;
	Oid			user;
	int32		encoding;
	int32		length;
	int32		whole_length;
	int64		query_id;
	int64		plan_id;
	bool		has_actuals;
} RingEntry;

static uint32
role_hash(Oid database, Oid user)
{
	return hash_combine(murmurhash32(database), murmurhash32(user));
}

int
query_text_account(Oid database, Oid user)
{
	return role_hash(database, user) % TEXT_ACCOUNTS;
}

/* A role in a database, as in `share_used`. */
static uint32
sharer(Oid database, Oid user)
{
	uint32		hash = role_hash(database, user);

	return hash == NO_ROLE || hash == SEVERAL ? SEVERAL - 1 : hash;
}

/* True if the sampler has reported that this role's share is used up. */
bool
query_text_share_is_used(TextKind kind)
{
	int			account = query_text_account(MyDatabaseId, GetUserId());
	uint32		used = pg_atomic_read_u32(&tacho_shared->share_used[kind][account]);

	return used == SEVERAL || (used != NO_ROLE && used == sharer(MyDatabaseId, GetUserId()));
}

/* Bytes of the ring for an entry with `length` bytes of text. */
static uint32
entry_size(int length)
{
	return MAXALIGN(sizeof(RingEntry) + length);
}

/*
 * Puts an entry into the ring; false if the ring is full. The caller holds
 * the lock. After the last entry before the end of the ring there is always
 * room for a `size` of 0, which sends readers to the begin.
 */
static bool
ring_put(const RingEntry *entry, const char *bytes)
{
	uint64		head = pg_atomic_read_u64(&tacho_shared->ring_head);
	uint64		tail = pg_atomic_read_u64(&tacho_shared->ring_tail);
	uint32		offset = head & (RING_BYTES - 1);
	uint32		skip = 0;

	if (offset + entry->size > RING_BYTES)
		skip = RING_BYTES - offset;
	if (head + skip + entry->size - tail > RING_BYTES)
		return false;
	if (skip > 0)
	{
		memset(tacho_shared->ring + offset, 0, sizeof(uint32));
		offset = 0;
	}
	memcpy(tacho_shared->ring + offset, entry, sizeof(*entry));
	memcpy(tacho_shared->ring + offset + sizeof(*entry), bytes, entry->length);
	pg_write_barrier();			/* the bytes must be visible before the head */
	pg_atomic_write_u64(&tacho_shared->ring_head, head + skip + entry->size);
	return true;
}

/*
 * True if a text of this length has room. An account may take as much of the ring
 * as it leaves free. Without the lock this is only a guess.
 */
bool
query_text_has_room(int account, int length)
{
	uint64		used = pg_atomic_read_u64(&tacho_shared->ring_head) -
		pg_atomic_read_u64(&tacho_shared->ring_tail);
	uint32		own = pg_atomic_read_u32(&tacho_shared->ring_used[account]);

	return used + own + 2 * entry_size(length) <= RING_BYTES;
}

static bool
ring_offer(const RingEntry *entry, const char *bytes)
{
	bool		done;

	if (!LWLockConditionalAcquire(tacho_ring_lock, LW_EXCLUSIVE))
		return false;
	done = ring_put(entry, bytes);
	LWLockRelease(tacho_ring_lock);
	if (done)
		pg_atomic_fetch_add_u32(&tacho_shared->ring_used[query_text_account(entry->database,
																			entry->user)],
								entry->size);
	return done;
}

bool
query_text_put(const QueryText *text)
{
	const RingEntry entry = {
		.size = entry_size(text->length),
		.database = text->database,
		.user = text->user,
		.encoding = text->encoding,
		.length = text->length,
		.whole_length = text->whole_length,
		.query_id = text->query_id,
		.plan_id = text->plan_id,
		.has_actuals = text->has_actuals,
	};

	return ring_offer(&entry, text->bytes);
}

/*
 * The set of keys is an array of small groups. A key can be at any place of
 * its group; 0 is a free place.
 */
static inline pg_atomic_uint64 *
group_of(uint64 key)
{
	return tacho_shared->known + (key % (KNOWN_TEXTS / TEXT_WAYS)) * TEXT_WAYS;
}

bool
query_text_is_known(uint64 key)
{
	pg_atomic_uint64 *group = group_of(key);

	for (int i = 0; i < TEXT_WAYS; i++)
		if (pg_atomic_read_u64(&group[i]) == key)
			return true;
	return false;
}

/* Puts a key into a free place, or replaces another key. */
void
query_text_remember(uint64 key)
{
	pg_atomic_uint64 *group = group_of(key);
	int			i = 0;

	while (i < TEXT_WAYS && pg_atomic_read_u64(&group[i]) != 0)
		i++;
	if (i == TEXT_WAYS)
		i = (key >> 32) % TEXT_WAYS;
	pg_atomic_write_u64(&group[i], key);
}

/* Copies the contents of the ring; NULL if it is empty. */
static char *
ring_copy(uint64 *first, uint64 *end)
{
	char	   *copy = NULL;
	uint32		begin;
	uint32		part;

	*first = pg_atomic_read_u64(&tacho_shared->ring_tail);
	*end = pg_atomic_read_u64(&tacho_shared->ring_head);
	if (*first == *end)
		return NULL;
	copy = palloc(*end - *first);
	begin = *first & (RING_BYTES - 1);
	part = Min(*end - *first, RING_BYTES - begin);

	/* needs no lock: no entry is overwritten before the tail moves */
	pg_read_barrier();
	memcpy(copy, tacho_shared->ring + begin, part);
	memcpy(copy + part, tacho_shared->ring, *end - *first - part);
	return copy;
}

void
query_text_drain(void (*take) (const QueryText *text))
{
	uint64		first;
	uint64		end;
	char	   *copy = ring_copy(&first, &end);
	uint64		at = first;

	if (copy == NULL)
		return;
	while (at < end)
	{
		RingEntry  *entry = (RingEntry *) (copy + (at - first));
		QueryText	text;

		if (entry->size == 0)
		{
			at += RING_BYTES - (at & (RING_BYTES - 1));
			continue;
		}
		text.query_id = entry->query_id;
		text.plan_id = entry->plan_id;
		text.has_actuals = entry->has_actuals;
		text.database = entry->database;
		text.user = entry->user;
		text.encoding = entry->encoding;
		text.length = entry->length;
		text.whole_length = entry->whole_length;
		text.bytes = (const char *) entry + sizeof(RingEntry);
		take(&text);
		at += entry->size;
	}
	pg_memory_barrier();
	pg_atomic_write_u64(&tacho_shared->ring_tail, end);
	for (int i = 0; i < TEXT_ACCOUNTS; i++)
		pg_atomic_write_u32(&tacho_shared->ring_used[i], 0);
	pfree(copy);
}

void
query_text_want(bool wanted, bool again)
{
	if (again)
	{
		for (int i = 0; i < KNOWN_TEXTS; i++)
			pg_atomic_write_u64(&tacho_shared->known[i], 0);
		for (int kind = 0; kind < TEXT_KINDS; kind++)
			for (int i = 0; i < TEXT_ACCOUNTS; i++)
				pg_atomic_write_u32(&tacho_shared->share_used[kind][i], NO_ROLE);
		pg_atomic_fetch_add_u32(&tacho_shared->texts_generation, 1);
	}
	pg_atomic_write_u32(&tacho_shared->texts_wanted, wanted);
}

void
query_text_share_used(TextKind kind, Oid database, Oid user)
{
	pg_atomic_uint32 *used = &tacho_shared->share_used[kind][query_text_account(database, user)];
	uint32		before = pg_atomic_read_u32(used);
	uint32		now = sharer(database, user);

	pg_atomic_write_u32(used, before == NO_ROLE || before == now ? now : SEVERAL);
}

void
query_text_drop(void)
{
	pg_atomic_fetch_add_u64(&tacho_shared->texts_dropped, 1);
}

int64
query_text_dropped(void)
{
	return (int64) pg_atomic_read_u64(&tacho_shared->texts_dropped);
}
