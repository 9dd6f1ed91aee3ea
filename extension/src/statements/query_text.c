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
 * The ring and the set are in text_ring.c, which the trees of plans use, too.
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

/* a longer statement is cut before it is scanned */
#define SCAN_LIMIT		(64 * 1024)

static HOT_DATA post_parse_analyze_hook_type previous_hook = NULL;

uint64
query_text_key(const char *bytes, int length)
{
	uint64		key = hash_bytes_extended((const unsigned char *) bytes,
										  length, 0);

	return key != 0 ? key : 1;
}

/*
 * Key of a text in the set of keys. It includes database and user: the same
 * query id may have another text in another database, and a role may be
 * allowed to read only its own texts.
 */
static uint64
known_key(int64 query_id, Oid user)
{
	uint64		key = (uint64) query_id ^
		((uint64) MyDatabaseId * UINT64CONST(0x9E3779B97F4A7C15)) ^
		((uint64) user * UINT64CONST(0xC2B2AE3D27D4EB4F));

	return key != 0 ? key : 1;
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
	QueryText	entry = {0};
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
	entry.database = MyDatabaseId;
	entry.user = GetUserId();
	entry.encoding = GetDatabaseEncoding();
	entry.query_id = (int64) query->queryId;
	entry.bytes = out.data;
	return query_text_put(&entry);
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
 * Offers the text of a statement unless its key is in the set. True if the key
 * is in the set afterwards.
 */
static bool
make_known(const char *source, const Query *query, CompatJumble *jumble)
{
	uint64		key = known_key((int64) query->queryId, GetUserId());
	int			account = query_text_account(MyDatabaseId, GetUserId());

	if (query_text_is_known(key))
		return true;
	if (query_text_share_is_used(TEXT_OF_QUERY))
		return false;
	if (!query_text_has_room(account, QUERY_TEXT_LIMIT) || !try_offer_text(source, query, jumble))
	{
		pg_atomic_fetch_add_u64(&tacho_shared->texts_dropped, 1);
		return false;
	}
	query_text_remember(key);
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
	 * the number is read before the set, because query_text_want() clears the
	 * set and then changes the number
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
