/*
 * statements_text.c
 *	  Texts of statements: normalising them, and keeping them in shared memory.
 *
 * A text is a chain of chunks of 256 bytes. Chunks come from a pool without
 * locks; whoever has taken them owns them until it has put the chain into an
 * entry (under the partition lock), and whoever has taken the chain out of an
 * entry (under the same lock, exclusively) gives them back. A chain is copied
 * only under the partition lock of its entry.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "held.h"
#include "normalize.h"
#include "settings.h"
#include "statements_shared.h"

/* Chunks that tacho.query_text_memory allows now. */
uint32
text_chunks_limit(void)
{
	uint64		limit = (uint64) tacho_query_text_memory * 1024 / TEXT_CHUNK;

	return Min(limit, statements_memory.shared->chunks);
}

static uint32
chunks_of(int length)
{
	return length <= 0 ? 1 : (length + TEXT_CHUNK - 1) / TEXT_CHUNK;
}

bool
text_has_room(int length)
{
	return (uint64) pg_atomic_read_u32(&statements_memory.shared->chunks_used) +
		chunks_of(length) <= text_chunks_limit();
}

/* A chain holding `text`, or 0 when memory for texts is full. */
uint32
text_store(const char *text, int length)
{
	StatementsShared *shared = statements_memory.shared;
	uint32		wanted = chunks_of(length);
	uint32		first = 0;

	if (pg_atomic_add_fetch_u32(&shared->chunks_used, wanted) > text_chunks_limit())
	{
		pg_atomic_sub_fetch_u32(&shared->chunks_used, wanted);
		return 0;
	}
	/* from the end, so that each chunk knows the one after it */
	for (uint32 i = wanted; i-- > 0;)
	{
		uint32		chunk = pool_pop(&shared->texts,
									 statements_memory.next_chunk);
		int			begin = i * TEXT_CHUNK;

		/* chunks_used bounds what is taken, so the pool cannot be empty */
		if (chunk == 0)
		{
			pg_atomic_sub_fetch_u32(&shared->chunks_used, i + 1);
			text_free(first);
			return 0;
		}
		memcpy(statements_memory.chunks + (Size) (chunk - 1) * TEXT_CHUNK,
			   text + begin, Min(TEXT_CHUNK, length - begin));
		statements_memory.next_chunk[chunk - 1] = first;
		first = chunk;
	}
	return first;
}

void
text_free(uint32 first)
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
	if (n > 0)
		pg_atomic_sub_fetch_u32(&statements_memory.shared->chunks_used, n);
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

/* The work of text_of_source(), in the current context; may raise errors. */
static char *
normalize(const StatementSource *source, const char *text, int location,
		  int *length, MemoryContext result_context)
{
	StringInfoData normalized;
	char	   *result;
	bool		doubt = text_in_doubt(source->string);

	initStringInfo(&normalized);
	if (text[*length] != '\0')
		text = pnstrdup(text, *length);
	normalize_text(&normalized, text, *length, source->jumble, location,
				   MaxAllocSize / 2, doubt);
	result = MemoryContextAlloc(result_context, normalized.len + 1);
	memcpy(result, normalized.data, normalized.len + 1);
	*length = normalized.len;
	return result;
}

/*
 * Normalising can fail: memory may be short. Nothing but memory is held then,
 * and that goes with the private context.
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
	return text;
}
