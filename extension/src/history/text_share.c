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

static Account accounts[TEXT_ACCOUNTS];
static DaySet told;				/* roles that got too little today */
static int64 used = 0;			/* bytes of all accounts */
static int64 repeats = 0;		/* part of `used` for repeats */
static int64 in_frame = 0;

/* hashes of texts recorded today; a later text replaces one in its place */
static uint64 seen[SEEN_TEXTS];

void
text_share_init(void)
{
	day_set_init(&told);
}

void
text_share_day(void)
{
	day_set_clear(&told);
	memset(accounts, 0, sizeof(accounts));
	memset(seen, 0, sizeof(seen));
	used = repeats = in_frame = 0;
}

void
text_share_frame(void)
{
	for (int i = 0; i < TEXT_ACCOUNTS && in_frame > 0; i++)
		accounts[i].in_frame = 0;
	in_frame = 0;
}

bool
text_share_in_frame(void)
{
	return in_frame > 0;
}

void
text_share_lost(void)
{
	for (int i = 0; i < TEXT_ACCOUNTS && in_frame > 0; i++)
	{
		accounts[i].used -= Min(accounts[i].used, accounts[i].in_frame);
		accounts[i].in_frame = 0;
	}
	used -= Min(used, in_frame);
	in_frame = 0;
	memset(seen, 0, sizeof(seen));
}

/* Bytes to record of a text of this length. */
static int
most_bytes(const Account *account, bool repeat, int length)
{
	int64		limit = (int64) tacho_text_limit * 1024;
	int64		left = share_left(limit, used, account->used);

	if (tacho_text_limit == 0)
		return length;
	if (repeat && repeats + length > limit / 4)
		return 0;
	if (length <= Max(left / PART, SMALL))
		return length <= left ? length : 0;
	return left >= SMALL ? Max(left / PART, SMALL) : 0;
}

int
text_share_take(Oid database, Oid user, uint64 query, int length, bool *first)
{
	Account    *account = &accounts[query_text_account(database, user)];
	uint64	   *place = &seen[query & (SEEN_TEXTS - 1)];
	bool		repeat = *place == query;
	int			bytes = most_bytes(account, repeat, length);

	*first = bytes < length && day_set_add(&told, (uint64) database << 32 | user);
	if (bytes > 0)
		*place = query;
	account->used += bytes;
	account->in_frame += bytes;
	used += bytes;
	in_frame += bytes;
	if (repeat)
		repeats += bytes;
	return bytes;
}
