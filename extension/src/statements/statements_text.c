/*
 * statements_text.c
 *	  Texts of statements: normalises them and keeps them in shared memory.
 *
 * A text is a chain of chunks of 128 bytes. Chunks come from a lock-free
 * pool. The process that takes chunks owns them until it has put the chain
 * into an entry, under the partition lock. A process that removes a chain
 * from an entry, under the same lock taken exclusively, gives the chunks
 * back. A chain is copied only under the partition lock of its entry.
 *
 * If memory is full, a new text takes the memory of other texts. A second hand
 * (text_hand) walks over the entries, as eviction does (statements_evict.c).
 * It takes the texts of entries without usage, and takes large texts sooner.
 * Such an entry keeps its counters. It gets its text again at its next
 * execution that finds room.
 *
 * Each role in a database has an account (query_text_account()) and a share:
 * the memory divided by the number of accounts with texts. A new text may
 * take a text of its own account, or of an account above its share. So a role
 * within its share loses no text to others.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "core/held.h"
#include "core/settings.h"
#include "statements/normalize.h"
#include "statements/query_text.h"
#include "statements/statements.h"
#include "statements/statements_shared.h"

/* Number of chunks that tacho.query_text_memory now allows. */
uint32
text_chunks_limit(void)
{
	uint64		limit = (uint64) tacho_query_text_memory * 1024 / TEXT_CHUNK;

	return Min(limit, statements_memory.shared->chunks);
}

#define SWEEP 64				/* slots that one text without room visits */
#define SWEEPS 4				/* ... times this, while it does not fit */
#define LARGE 1024				/* bytes; a larger text is taken sooner */
#define SHARE 16				/* a text has at most 1/16 of the memory */

static uint32
chunks_of(int length)
{
	return length <= 0 ? 1 : (length + TEXT_CHUNK - 1) / TEXT_CHUNK;
}

static int
account_of(const StatementKey *owner)
{
	return query_text_account(owner->database_id, owner->user_id);
}

static uint32
held_by(int account)
{
	return pg_atomic_read_u32(&statements_memory.shared->text_held[account]);
}

/* Number of chunks that each account may have, `account` included. */
static uint32
fair_share(int account)
{
	uint32		accounts = pg_atomic_read_u32(&statements_memory.shared->text_accounts);

	if (held_by(account) == 0)
		accounts++;
	return text_chunks_limit() / Max(accounts, 1);
}

/*
 * Counts chunks of an account, and the account when it gets its first text.
 * Done before other processes can see the text.
 */
static void
account_add(int account, uint32 n)
{
	StatementsShared *shared = statements_memory.shared;

	if (pg_atomic_add_fetch_u32(&shared->text_held[account], n) == n)
		pg_atomic_add_fetch_u32(&shared->text_accounts, 1);
}

static void
account_subtract(int account, uint32 n)
{
	StatementsShared *shared = statements_memory.shared;

	if (pg_atomic_sub_fetch_u32(&shared->text_held[account], n) == 0)
		pg_atomic_sub_fetch_u32(&shared->text_accounts, 1);
}

static bool
chunks_left(int length)
{
	return (uint64) pg_atomic_read_u32(&statements_memory.shared->chunks_used) +
		chunks_of(length) <= text_chunks_limit();
}

bool
text_has_room(const StatementKey *owner, int length)
{
	int			account = account_of(owner);

	return chunks_left(length) ||
		held_by(account) + chunks_of(length) <= fair_share(account);
}

/* Frees a chain of chunks and returns their number. */
static uint32
chain_free(uint32 first)
{
	uint32		n = 0;

	while (first != 0)
	{
		uint32		next = statements_memory.next_chunk[first - 1];

		pool_push(&statements_memory.shared->texts,
				  statements_memory.next_chunk, first);
		first = next;
		n++;
	}
	pg_atomic_sub_fetch_u32(&statements_memory.shared->chunks_used, n);
	return n;
}

/* Returns a chain with `text`, or 0 if the memory for texts is full. */
uint32
text_store(const StatementKey *owner, const char *text, int length)
{
	StatementsShared *shared = statements_memory.shared;
	uint32		wanted = chunks_of(length);
	uint32		first = 0;
	int			account;

	if (pg_atomic_add_fetch_u32(&shared->chunks_used, wanted) > text_chunks_limit())
	{
		pg_atomic_sub_fetch_u32(&shared->chunks_used, wanted);
		return 0;
	}
	/*
	 * from the last chunk to the first, so that each is linked to the next
	 * one
	 */
	for (uint32 i = wanted; i-- > 0;)
	{
		uint32		chunk = pool_pop(&shared->texts,
									 statements_memory.next_chunk);
		int			begin = i * TEXT_CHUNK;

		/* should not happen: chunks_used counts the chunks that are taken */
		if (chunk == 0)
		{
			pg_atomic_sub_fetch_u32(&shared->chunks_used, i + 1);
			chain_free(first);
			return 0;
		}
		memcpy(statements_memory.chunks + (Size) (chunk - 1) * TEXT_CHUNK,
			   text + begin, Min(TEXT_CHUNK, length - begin));
		statements_memory.next_chunk[chunk - 1] = first;
		first = chunk;
	}
	account = account_of(owner);
	statements_memory.text_account[first - 1] = account;
	account_add(account, wanted);
	return first;
}

void
text_free(uint32 first)
{
	if (first != 0)
	{
		int			account = statements_memory.text_account[first - 1];

		account_subtract(account, chain_free(first));
	}
}

/* True if a text may be removed for one of `account`. */
static bool
text_may_go(uint32 first, int account)
{
	int			owner = first == 0 ? -1 : statements_memory.text_account[first - 1];

	return owner == account ||
		(owner >= 0 && held_by(owner) > fair_share(account));
}

/*
 * Takes the text of an entry without usage, for a text of `account`. False if
 * another process holds the partition lock.
 */
static bool
text_take(StatementEntry *entry, int account)
{
	LWLock	   *lock = partition_lock(entry->hash);
	uint32		first = 0;

	if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
		return false;
	if (partition_lock(entry->hash) == lock &&
		pg_atomic_read_u64(&entry->generation) != 0 &&
		text_may_go(entry->text_first, account))
	{
		first = entry->text_first;
		entry->text_first = 0;
		entry->wants_text = entry->key.query_id != 0;
		entry->wants_jumble = entry->normalized;
	}
	LWLockRelease(lock);
	text_free(first);
	return first != 0;
}

/*
 * Visits the next slots and takes texts until `wanted` chunks are free for an
 * account.
 */
static void
text_sweep(uint32 wanted, int account)
{
	StatementsShared *shared = statements_memory.shared;
	uint32		slots = Max(pg_atomic_read_u32(&shared->slots.untouched), 1);
	uint32		limit = text_chunks_limit();
	uint32		taken = 0;

	for (int i = 0; i < SWEEP &&
		 pg_atomic_read_u32(&shared->chunks_used) + wanted > limit; i++)
	{
		uint32		slot = pg_atomic_fetch_add_u32(&shared->text_hand, 1) % slots;
		StatementEntry *entry = &statements_memory.entries[slot];
		uint8		usage = entry->usage;	/* others change it meanwhile */
		uint8		price = entry->text_length > LARGE ? 2 : 1;

		/* these reads are hints, without a lock */
		if (!text_may_go(entry->text_first, account))
			continue;
		if (usage >= price)
			entry->usage = usage - price;
		else
			taken += text_take(entry, account);
	}
	pg_atomic_fetch_add_u64(&shared->texts_missing, taken);
}

uint32
text_store_anyhow(const StatementKey *owner, const char *text, int length)
{
	uint32		first = text_store(owner, text, length);

	for (int i = 0; first == 0 && i < SWEEPS; i++)
	{
		text_sweep(chunks_of(length), account_of(owner));
		first = text_store(owner, text, length);
	}
	return first;
}

void
text_copy(uint32 first, int length, char *to)
{
	while (first != 0 && length > 0)
	{
		int			n = Min(TEXT_CHUNK, length);

		memcpy(to, statements_memory.chunks + (Size) (first - 1) * TEXT_CHUNK, n);
		to += n;
		length -= n;
		first = statements_memory.next_chunk[first - 1];
	}
}

int
text_most(void)
{
	uint64		most = (uint64) text_chunks_limit() * TEXT_CHUNK / SHARE;

	return Min(Max(most, 4 * TEXT_CHUNK), MaxAllocSize / 2);
}

/*
 * Returns the normalised text in `result_context`, and its length in *length.
 * Leaves garbage in the current memory context. May raise errors.
 */
static char *
normalize(const StatementSource *source, const char *text, int location,
		  int *length, MemoryContext result_context)
{
	StringInfoData normalized;
	char	   *result;

	initStringInfo(&normalized);
	if (text[*length] != '\0')
		text = pnstrdup(text, *length);
	normalize_text(&normalized, text, *length, source->jumble, location,
				   text_most() + 1, strings_in_doubt());
	result = MemoryContextAlloc(result_context, normalized.len + 1);
	memcpy(result, normalized.data, normalized.len + 1);
	*length = normalized.len;
	return result;
}

/*
 * Same as normalize(), in the current memory context, but returns NULL if
 * memory is short. Garbage goes into a private context, which is deleted.
 */
static char *
text_normalized(const StatementSource *source, const char *text, int location,
				int *length)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext volatile scratch = NULL;
	char	   *volatile result = NULL;
	const Held	held = held_now();

	PG_TRY();
	{
		scratch = AllocSetContextCreate(caller, "tacho normalize",
										ALLOCSET_DEFAULT_SIZES);
		MemoryContextSwitchTo(scratch);
		result = normalize(source, text, location, length, caller);
	}
	PG_CATCH();
	{
		held_restore(held);
		FlushErrorState();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(caller);
	if (scratch)
		MemoryContextDelete(scratch);
	return result;
}

/*
 * Cuts a text that is too long. Without memory for the copy, there is no
 * text.
 */
static void
text_cut(SourceText *text)
{
	int			most = text_most() - (int) strlen(TEXT_CUT);
	char	   *cut;

	if (text->bytes == NULL || text->length <= most)
		return;
	text->length = pg_mbcliplen(text->bytes, text->length, most);
	cut = MemoryContextAllocExtended(CurrentMemoryContext,
									 text->length + sizeof(TEXT_CUT),
									 MCXT_ALLOC_NO_OOM);
	if (cut != NULL)
	{
		memcpy(cut, text->bytes, text->length);
		strcpy(cut + text->length, TEXT_CUT);
		text->length += strlen(TEXT_CUT);
	}
	if (text->owned)
		pfree(text->owned);
	text->bytes = text->owned = cut;
}

SourceText
text_of_source(const StatementSource *source)
{
	SourceText	text = {0};
	int			location = source->location;

	text.length = source->length;
	text.bytes = CleanQuerytext(source->string, &location, &text.length);
	if (source->jumble)
	{
		pg_atomic_add_fetch_u64(&statements_memory.shared->normalizations, 1);
		text.owned = text_normalized(source, text.bytes, location, &text.length);
		text.bytes = text.owned;
	}
	text_cut(&text);
	return text;
}
