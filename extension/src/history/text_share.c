/*
 * text_share.c
 *	  Limits the bytes of texts that each role may record in a day.
 *
 * A hash selects the account. Two roles with the same hash share its room.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/settings.h"
#include "core/shmem.h"
#include "history/day_set.h"
#include "history/share.h"
#include "history/text_share.h"
#include "statements/query_text.h"

#define PART		256			/* a text gets at most 1/256 of the rest */
#define SMALL		256			/* bytes that any text may take */
#define SEEN_TEXTS	16384		/* power of two */

typedef struct Account
{
	int64		used;			/* bytes recorded today */
	int64		in_frame;		/* part of `used` in the open frame */
} Account;

/* The limit of one kind of text. */
typedef struct Share
{
	Account		accounts[TEXT_ACCOUNTS];
	DaySet		told;			/* roles that got too little today */
	int64		used;			/* bytes of all accounts */
	int64		repeats;		/* part of `used` for repeats */
	int64		in_frame;

	/*
	 * keys of texts recorded today: the low bits of a key choose its element,
	 * where a later key with the same bits replaces it
	 */
	uint64		seen[SEEN_TEXTS];
} Share;

static Share shares[TEXT_KINDS];

void
text_share_init(void)
{
	for (int kind = 0; kind < TEXT_KINDS; kind++)
		day_set_init(&shares[kind].told);
}

void
text_share_day(void)
{
	for (int kind = 0; kind < TEXT_KINDS; kind++)
	{
		Share	   *share = &shares[kind];

		day_set_clear(&share->told);
		memset(share->accounts, 0, sizeof(share->accounts));
		memset(share->seen, 0, sizeof(share->seen));
		share->used = share->repeats = share->in_frame = 0;
	}
}

void
text_share_frame(void)
{
	for (int kind = 0; kind < TEXT_KINDS; kind++)
	{
		Share	   *share = &shares[kind];

		for (int i = 0; i < TEXT_ACCOUNTS && share->in_frame > 0; i++)
			share->accounts[i].in_frame = 0;
		share->in_frame = 0;
	}
}

bool
text_share_in_frame(void)
{
	for (int kind = 0; kind < TEXT_KINDS; kind++)
		if (shares[kind].in_frame > 0)
			return true;
	return false;
}

static void
give_back(Share *share)
{
	for (int i = 0; i < TEXT_ACCOUNTS && share->in_frame > 0; i++)
	{
		Account    *account = &share->accounts[i];

		account->used -= Min(account->used, account->in_frame);
		account->in_frame = 0;
	}
	share->used -= Min(share->used, share->in_frame);
	share->in_frame = 0;
	memset(share->seen, 0, sizeof(share->seen));
}

void
text_share_lost(void)
{
	for (int kind = 0; kind < TEXT_KINDS; kind++)
		give_back(&shares[kind]);
}

/* Bytes to record of a text of this length. */
static int
most_bytes(const Share *share, const Account *account, bool repeat, int length)
{
	int64		limit = (int64) tacho_text_limit * 1024;
	int64		left = share_left(limit, share->used, account->used);

	if (tacho_text_limit == 0)
		return length;
	if (repeat && share->repeats + length > limit / 4)
		return 0;
	if (length <= Max(left / PART, SMALL))
		return length <= left ? length : 0;
	return left >= SMALL ? Max(left / PART, SMALL) : 0;
}

/*
 * Number of bytes to record, 0 = none: a tree is recorded whole or not at
 * all, because a part of it is of no use.
 */
static int
bytes_of_kind(TextKind kind, int bytes, int length)
{
	return kind != TEXT_OF_QUERY && bytes < length ? 0 : bytes;
}

int
text_share_take(TextKind kind, Oid database, Oid user, uint64 query, int length,
				bool *first)
{
	Share	   *share = &shares[kind];
	Account    *account = &share->accounts[query_text_account(database, user)];
	uint64	   *place = &share->seen[query & (SEEN_TEXTS - 1)];
	bool		repeat = *place == query;
	int			bytes = bytes_of_kind(kind, most_bytes(share, account, repeat, length),
									  length);

	*first = bytes < length && day_set_add(&share->told, (uint64) database << 32 | user);
	if (bytes > 0)
		*place = query;
	account->used += bytes;
	account->in_frame += bytes;
	share->used += bytes;
	share->in_frame += bytes;
	if (repeat)
		share->repeats += bytes;
	return bytes;
}
