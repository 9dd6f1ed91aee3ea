/*
 * given_names.c
 *	  Names that clients give, each role within its share of a day's bytes.
 *
 * A hash of the role finds its account, so two roles may share one. A second hash
 * remembers each name that was recorded today: it takes no more room.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "core/settings.h"
#include "sampler/given_names.h"
#include "sampler/processes.h"
#include "sampler/recorder.h"

#define OTHER			"(other)"
#define NAME_BYTES		16		/* of a name beside its own bytes */
#define SESSION_BYTES	32		/* of a session that is recorded again */
#define PART			4		/* a burst may have one part in four of the bytes left */
#define BURST_MS		(10 * 60 * 1000)
#define DAY_MS			(24 * 60 * 60 * 1000)
#define ACCOUNTS		1024	/* power of two */

typedef struct Account
{
	int64		used;			/* bytes of this day */
	int64		in_burst;		/* bytes since burst_began */
	UnixMs		burst_began;	/* at most BURST_MS ago */
	bool		told;			/* a marker says that a name was left out */
} Account;

static MemoryContext context;
static HTAB *recorded;			/* hashes of names and sessions recorded today */
static Account accounts[ACCOUNTS];
static int64 used = 0;			/* by all */
static int64 day = -1;
static UnixMs now_ms;
static int64 left_out_count = 0;

static void
begin_day(void)
{
	HASHCTL		info = {0};

	MemoryContextReset(context);
	memset(accounts, 0, sizeof(accounts));
	used = 0;
	info.keysize = info.entrysize = sizeof(uint64);
	info.hcxt = context;
	recorded = hash_create("tacho given names", 256, &info,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void
given_names_init(void)
{
	context = AllocSetContextCreate(CurrentMemoryContext, "tacho given names",
									ALLOCSET_DEFAULT_SIZES);
	begin_day();
}

void
given_names_now(UnixMs now)
{
	now_ms = now;
	if (day != now / DAY_MS)
		begin_day();
	day = now / DAY_MS;
}

static bool
is_recorded(uint64 hash)
{
	return hash_search(recorded, &hash, HASH_FIND, NULL) != NULL;
}

/* Takes room for a name, and for the session that gives it to itself. */
static bool
take_room(Account *account, uint64 name, uint64 session, int length)
{
	bool		new_name = !is_recorded(name);
	bool		new_session = session != 0 && !is_recorded(session);
	int64		bytes = (new_name ? NAME_BYTES + length : 0) +
		(new_session ? SESSION_BYTES : 0);
	int64		left = (int64) tacho_name_limit * 1024 - used - account->used;

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
	if (new_name)
		(void) hash_search(recorded, &name, HASH_ENTER, NULL);
	if (new_session)
		(void) hash_search(recorded, &session, HASH_ENTER, NULL);
	return true;
}

/* Marks once a day that names of this role are left out. */
static void
tell(Account *account, Oid role)
{
	int			length;
	const char *name = dictionary_bytes(processes_role_name(role), &length);
	char		detail[STATUS_TEXT_SIZE];

	left_out_count++;
	if (account->told)
		return;
	account->told = true;
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
	tell(account, role);
	*left_out = true;
	return dictionary_find_text(OTHER);
}

uint64
given_name_id(Oid role, const char *name)
{
	bool		left_out;

	return dictionary_use_name(given_name(role, 0, name, &left_out));
}

int64
given_names_left_out(void)
{
	return left_out_count;
}
