/*
 * given_names.c
 *	  Limits the bytes of names that clients choose, by role and day.
 *
 * A hash of the role selects its account, so two roles may share one. A hash
 * of each name recorded today is kept: the same name takes no room twice.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"

#include "core/settings.h"
#include "history/day_set.h"
#include "history/share.h"
#include "sampler/given_names.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"

#define OTHER			"(other)"
#define NAME_BYTES		16		/* bytes that a name costs beside its own */
/* bytes of a session that is recorded again */
#define SESSION_BYTES	32
/* a role gets 1/4 of its remaining bytes in BURST_MS */
#define PART			4
/* 1/512 of the limit is free for returns, each minute */
#define RETURNS_PART	512
#define BURST_MS		(10 * 60 * 1000)
#define MINUTE_MS		(60 * 1000)
#define DAY_MS			(24 * 60 * 60 * 1000)
#define ACCOUNTS		1024	/* power of two */

typedef struct Account
{
	int64		used;			/* bytes used today */
	int64		in_burst;		/* bytes used since burst_began */
	UnixMs		burst_began;	/* at most BURST_MS ago */
	/* free bytes of returns used in this minute */
	int64		returned;
	uint64		left_out;		/* the newest tags without room */
} Account;

static DaySet recorded;			/* names and sessions of today */
/* sessions that returned to a name in this minute */
static DaySet returned;
static DaySet told;				/* roles that a marker has named today */
static Account accounts[ACCOUNTS];
static int64 used = 0;			/* bytes used by all roles today */
static int64 all_returned = 0;
static int64 day = -1;
static int64 minute = -1;
static UnixMs now_ms;
static int64 left_out_count = 0;

static void
begin_day(void)
{
	day_set_clear(&recorded);
	day_set_clear(&told);
	memset(accounts, 0, sizeof(accounts));
	used = 0;
}

static void
begin_minute(void)
{
	day_set_clear(&returned);
	for (int i = 0; i < ACCOUNTS; i++)
		accounts[i].returned = 0;
	all_returned = 0;
}

void
given_names_init(void)
{
	day_set_init(&recorded);
	day_set_init(&returned);
	day_set_init(&told);
}

void
given_names_now(UnixMs now)
{
	now_ms = now;
	if (day != now / DAY_MS)
		begin_day();
	if (minute != now / MINUTE_MS)
		begin_minute();
	day = now / DAY_MS;
	minute = now / MINUTE_MS;
}

/*
 * Takes bytes from the role's share of the day and of the last BURST_MS;
 * false if too few are left.
 */
static bool
take_bytes(Account *account, int64 bytes)
{
	int64		left = share_left((int64) tacho_name_limit * 1024, used, account->used);

	if (bytes == 0)
		return true;
	if (now_ms - account->burst_began >= BURST_MS || now_ms < account->burst_began)
	{
		account->burst_began = now_ms;
		account->in_burst = 0;
	}
	if (account->in_burst + bytes > left / PART)
		return false;
	account->used += bytes;
	account->in_burst += bytes;
	used += bytes;
	return true;
}

/*
 * Takes the bytes of a return from the free bytes of this minute; false if
 * the account has none left.
 */
static bool
is_free_return(Account *account)
{
	int64		limit = (int64) tacho_name_limit * 1024 / RETURNS_PART;

	if (SESSION_BYTES > share_left(limit, all_returned, account->returned))
		return false;
	account->returned += SESSION_BYTES;
	all_returned += SESSION_BYTES;
	return true;
}

/*
 * Takes room for a session that returns to a name it had today: its entry may
 * be defined in the log again. Costs nothing the second time in a minute;
 * false if there is no room.
 */
static bool
take_return(Account *account, uint64 session)
{
	if (day_set_has(&returned, session))
		return true;
	if (!is_free_return(account) && !take_bytes(account, SESSION_BYTES))
		return false;
	(void) day_set_add(&returned, session);
	return true;
}

/*
 * Takes room for a name that is new today, and for a session that changes to
 * it; false if there is none.
 */
static bool
take_room(Account *account, uint64 name, uint64 session, int length)
{
	bool		new_name = !day_set_has(&recorded, name);
	bool		new_session = session != 0 && !day_set_has(&recorded, session);

	if (session != 0 && !new_session)
		return take_return(account, session);
	if (!take_bytes(account, (new_name ? NAME_BYTES + length : 0) +
					(new_session ? SESSION_BYTES : 0)))
		return false;
	(void) day_set_add(&recorded, name);
	if (new_session)
	{
		(void) day_set_add(&recorded, session);
		(void) day_set_add(&returned, session);
	}
	return true;
}

/* Marks, once a day, that names of this role are left out. */
static void
tell(Oid role)
{
	int			length;
	const char *name = dictionary_bytes(processes_role_name(role), &length);
	char		detail[STATUS_TEXT_SIZE];

	left_out_count++;
	if (!day_set_add(&told, role))
		return;
	snprintf(detail, sizeof(detail),
			 "names that role \"%.*s\" gives are recorded as %s: its share of tacho.name_limit",
			 length, name, OTHER);
	recorder_marker(MARKER_NAMES_LEFT_OUT, now_ms, now_ms, 0, detail);
}

NameEntry *
given_name(Oid role, uint64 session, const char *name, bool *left_out)
{
	int			length = strlen(name);
	uint64		hash = hash_bytes_extended((const unsigned char *) name, length,
										   role);
	Account    *account = &accounts[murmurhash32(role) & (ACCOUNTS - 1)];

	*left_out = false;
	if (length == 0 || tacho_name_limit == 0)
		return dictionary_find_text(name);
	if (session != 0)
		session = hash_combine64(session, hash);
	if (take_room(account, hash, session, length))
		return dictionary_find_text(name);
	tell(role);
	*left_out = true;
	return dictionary_find_text(OTHER);
}

NameEntry *
given_tags(Oid role, const char *tags, int length, int encoding)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) tags, length, role);
	Account    *account = &accounts[murmurhash32(role) & (ACCOUNTS - 1)];

	if (length == 0)
		return NULL;
	if (tacho_name_limit == 0 || take_room(account, hash, 0, length))
		return dictionary_find_name(tags, length, encoding);
	/* a statement counts once, not with each of its samples */
	if (account->left_out != hash)
		tell(role);
	account->left_out = hash;
	return dictionary_find_text(OTHER);
}

uint64
given_name_id(Oid role, const char *name)
{
	bool		left_out;

	return dictionary_use_name(given_name(role, 0, name, &left_out));
}

uint64
given_text_id(Oid role, const char *text, int encoding)
{
	int			length = strlen(text);
	bool		left_out;
	NameEntry  *entry = given_name(role, 0, text, &left_out);

	if (length > 0 && !left_out && encoding != PG_SQL_ASCII)
		entry = dictionary_find_name(text, length, encoding);
	return dictionary_use_name(entry);
}

int64
given_names_left_out(void)
{
	return left_out_count;
}
