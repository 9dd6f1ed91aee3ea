/*
 * query_text.c
 *	  Texts of queries on their way from backends to the sampler.
 *
 * A hook after parse analysis sees each statement. If the statement's entry
 * says that its text is known, the hook costs one comparison. Otherwise the
 * hook searches a set of keys in shared memory. Only a text whose key is not
 * there is normalised and put into the ring. The set has a fixed size: a new
 * key may replace another one, and then a text comes twice. Once a day the
 * sampler makes all backends forget the texts, so that each day's history has
 * its own.
 *
 * A role in a database never takes more of the ring than is left for all
 * others. It makes no more texts once its share of the day is used up
 * (text_share.h).
 *
 * Locking: backends write the ring under the lock "tacho", which they only
 * acquire conditionally: none of them waits. The sampler reads it without the
 * lock. The set consists of atomics.
 *
 * The hook runs in the user's session and must not fail. Everything that may
 * raise an error runs inside PG_TRY. These errors come from the scanner and
 * from lack of memory. So only the error itself and the counters of held
 * interrupts (held.h) must be cleaned up.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "core/compat.h"
#include "core/held.h"
#include "core/hot.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "statements/hooks.h"
#include "statements/inner_query.h"
#include "statements/normalize.h"
#include "statements/query_text.h"
#include "statements/statements.h"

#define TEXT_WAYS		8		/* places of a key: half a cache line */

/* values of `share_used` beside the hash of a role in a database */
#define NO_ROLE			0
#define SEVERAL			UINT32_MAX

/* a longer statement is cut before it is scanned */
#define SCAN_LIMIT		(64 * 1024)

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
} RingEntry;

static HOT_DATA post_parse_analyze_hook_type previous_hook = NULL;

uint64
query_text_key(const char *bytes, int length)
{
	uint64		key = hash_bytes_extended((const unsigned char *) bytes,
										  length, 0);

	return key != 0 ? key : 1;
}

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
static bool
share_is_used(int account)
{
	uint32		used = pg_atomic_read_u32(&tacho_shared->share_used[account]);

	return used == SEVERAL || (used != NO_ROLE && used == sharer(MyDatabaseId, GetUserId()));
}

/*
 * Includes database and user: the same query id may have other texts in
 * another database, and a role may be allowed to read only its own texts.
 */
static uint64
known_key(int64 query_id, Oid user)
{
	uint64		key = (uint64) query_id ^
		((uint64) MyDatabaseId * UINT64CONST(0x9E3779B97F4A7C15)) ^
		((uint64) user * UINT64CONST(0xC2B2AE3D27D4EB4F));

	return key != 0 ? key : 1;
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
 * True if the longest text has room. An account may take as much of the ring
 * as it leaves free. Without the lock this is only a guess.
 */
static bool
ring_has_room(int account)
{
	uint64		used = pg_atomic_read_u64(&tacho_shared->ring_head) -
		pg_atomic_read_u64(&tacho_shared->ring_tail);
	uint32		own = pg_atomic_read_u32(&tacho_shared->ring_used[account]);

	return used + own + 2 * entry_size(QUERY_TEXT_LIMIT) <= RING_BYTES;
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

/*
 * Appends the text of a statement in the form of tacho.query_text. All
 * literals are replaced if the constants are unknown (utility statements,
 * query ids of another module). Returns the number of bytes of the text that
 * the result replaces.
 */
static int
make_text(StringInfo out, const char *text, int length, const Query *query,
		  CompatJumble *jumble, int offset, bool doubt)
{
	int			scanned = Min(length, SCAN_LIMIT);
	int			done;

	if (tacho_query_text == QUERY_TEXT_RAW)
	{
		done = Min(length, QUERY_TEXT_LIMIT);
		appendBinaryStringInfo(out, text, done);
		return done;
	}
	if (query->utilityStmt != NULL)
		jumble = NULL;
	else if (jumble != NULL && jumble->clocations_count == 0)
	{
		done = Min(length, QUERY_TEXT_LIMIT);
		appendBinaryStringInfo(out, text, done);
		return done;
	}
	text = pnstrdup(text, scanned);
	return normalize_text(out, text, scanned, jumble, offset,
						  QUERY_TEXT_LIMIT, doubt);
}

/* Makes the text of a statement and puts it into the ring. */
static bool
offer_text(const char *source, const Query *query, CompatJumble *jumble)
{
	int			offset = query->stmt_location;
	int			length = query->stmt_len;
	const char *text = CleanQuerytext(source, &offset, &length);
	StringInfoData out;
	RingEntry	entry = {0};
	int			done;

	if (offset < 0)
		offset = 0;
	initStringInfo(&out);
	done = make_text(&out, text, length, query, jumble, offset,
					 strings_in_doubt());
	entry.length = out.len;
	if (out.len > QUERY_TEXT_LIMIT)
		entry.length = pg_mbcliplen(out.data, out.len, QUERY_TEXT_LIMIT);
	else if (done < length)
		entry.length = pg_mbcliplen(out.data, out.len, out.len);
	if (done < length || entry.length < out.len)
		entry.whole_length = length;
	entry.size = entry_size(entry.length);
	entry.database = MyDatabaseId;
	entry.user = GetUserId();
	entry.encoding = GetDatabaseEncoding();
	entry.query_id = (int64) query->queryId;
	return ring_offer(&entry, out.data);
}

/*
 * Like offer_text(), with a memory context of its own, and raises no error. A
 * text that failed for lack of memory counts as known: trying it at every
 * execution would not help.
 */
static bool
try_offer_text(const char *source, const Query *query, CompatJumble *jumble)
{
	MemoryContext previous = CurrentMemoryContext;
	MemoryContext volatile work = NULL;
	volatile bool done = true;
	const Held	held = held_now();

	PG_TRY();
	{
		work = AllocSetContextCreate(previous, "tacho query text",
									 ALLOCSET_SMALL_SIZES);
		MemoryContextSwitchTo(work);
		done = offer_text(source, query, jumble);
	}
	PG_CATCH();
	{
		held_restore(held);
		MemoryContextSwitchTo(previous);
		FlushErrorState();
		pg_atomic_fetch_add_u64(&tacho_shared->texts_dropped, 1);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(previous);
	if (work)
		MemoryContextDelete(work);
	return done;
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

static bool
is_known(uint64 key)
{
	pg_atomic_uint64 *group = group_of(key);

	for (int i = 0; i < TEXT_WAYS; i++)
		if (pg_atomic_read_u64(&group[i]) == key)
			return true;
	return false;
}

/* Puts a key into a free place, or replaces another key. */
static void
remember(uint64 key)
{
	pg_atomic_uint64 *group = group_of(key);
	int			i = 0;

	while (i < TEXT_WAYS && pg_atomic_read_u64(&group[i]) != 0)
		i++;
	if (i == TEXT_WAYS)
		i = (key >> 32) % TEXT_WAYS;
	pg_atomic_write_u64(&group[i], key);
}

/*
 * Offers the text of a statement unless it is known. True if it is known now.
 */
static bool
make_known(const char *source, const Query *query, CompatJumble *jumble)
{
	uint64		key = known_key((int64) query->queryId, GetUserId());
	int			account;

	if (is_known(key))
		return true;
	account = query_text_account(MyDatabaseId, GetUserId());
	if (share_is_used(account))
		return false;
	if (!ring_has_room(account) || !try_offer_text(source, query, jumble))
	{
		pg_atomic_fetch_add_u64(&tacho_shared->texts_dropped, 1);
		return false;
	}
	remember(key);
	return true;
}

static pg_attribute_hot void
collect_text(ParseState *pstate, const Query *query, CompatJumble *jumble)
{
	bool		toplevel = hooks_at_toplevel();
	uint32		texts;

	if (query->queryId == 0 || tacho_query_text == QUERY_TEXT_OFF ||
		tacho_shared == NULL || pstate->p_sourcetext == NULL ||
		IsParallelWorker() ||
		pg_atomic_read_u32(&tacho_shared->texts_wanted) == 0)
		return;
	/*
	 * read before the set: query_text_want() clears the set, then changes
	 * this
	 */
	texts = pg_atomic_read_u32(&tacho_shared->texts_generation);
	pg_read_barrier();
	if (!statements_text_known(query->queryId, toplevel, texts) &&
		make_known(pstate->p_sourcetext, query, jumble))
		statements_note_text(query->queryId, toplevel, texts);
}

static pg_attribute_hot void
query_text_hook(ParseState *pstate, Query *query, CompatJumble *jumble)
{
	strings_observe();
	/* a raw text is the whole message, as in pg_stat_statements */
	if (tacho_query_text != QUERY_TEXT_RAW)
		inner_query_place(query, pstate->p_sourcetext);
	if (previous_hook)
		previous_hook(pstate, query, jumble);
	collect_text(pstate, query, jumble);
}

void
query_text_init(void)
{
	previous_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = query_text_hook;
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
		for (int i = 0; i < TEXT_ACCOUNTS; i++)
			pg_atomic_write_u32(&tacho_shared->share_used[i], NO_ROLE);
		pg_atomic_fetch_add_u32(&tacho_shared->texts_generation, 1);
	}
	pg_atomic_write_u32(&tacho_shared->texts_wanted, wanted);
}

void
query_text_share_used(Oid database, Oid user)
{
	pg_atomic_uint32 *used = &tacho_shared->share_used[query_text_account(database, user)];
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
