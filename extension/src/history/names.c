/*
 * names.c
 *	  Names of databases, roles, wait events and kinds of processes.
 *
 * A known name is read again after a minute, or as soon as an invalidation
 * message says that a database or role has changed.
 *
 * Locking: names_resolve() opens catalogs with conditional locks, in a
 * transaction for each kind of name. A lock_timeout limits the locks that are
 * taken inside. Never called during a scan.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "common/ip.h"
#include "mb/pg_wchar.h"
#include "postmaster/bgworker.h"
#include "storage/lmgr.h"
#include "storage/sinval.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "core/clocks.h"
#include "core/guarded.h"
#include "history/names.h"

#define KNOWN_FOR_MS	60000
#define RETRY_AFTER_MS	1000
#define LISTEN_EVERY_MS	1000
#define WANTED			64		/* most names of a kind per names_resolve() */
#define MAX_CACHED		10000	/* most databases, and most roles */
#define WAIT_NAME		64

typedef struct OidName
{
	Oid			oid;			/* key */
	bool		known;
	int64		next_look;		/* next lookup, by names_clock_ms() */
	int			encoding;		/* of the name */
	int			data_encoding;	/* of the data, databases only */
	char		name[NAMEDATALEN];
} OidName;

typedef struct WaitName
{
	uint32		number;			/* key */
	bool		known;
	int64		next_look;
	char		type[WAIT_NAME];
	char		event[WAIT_NAME];
} WaitName;

static MemoryContext context;
static HTAB *databases;
static HTAB *roles;
static HTAB *waits;

/* the list for names_resolve(); names beyond it are wanted again next time */
static OidName *wanted_databases[WANTED];
static OidName *wanted_roles[WANTED];
static WaitName *wanted_waits[WANTED];
static int	database_count;
static int	role_count;
static int	wait_count;
static int	pending;
static uint64 changes = 0;		/* counts changes of databases and roles */
static int64 listened = 0;		/* last time, by names_clock_ms() */

static int64 clock_ms;			/* see names_clock_ms() */

static HTAB *
create_cache(const char *name, Size entry_size)
{
	HASHCTL		info = {0};

	info.keysize = sizeof(uint32);
	info.entrysize = entry_size;
	info.hcxt = CurrentMemoryContext;
	return hash_create(name, 64, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Makes every name in the cache due for a lookup when it is next wanted. */
static void
look_again(HTAB *cache)
{
	HASH_SEQ_STATUS scan;
	OidName    *entry;

	hash_seq_init(&scan, cache);
	while ((entry = hash_seq_search(&scan)) != NULL)
		entry->next_look = 0;
	changes++;
}

static void
hear_change(Datum argument, int cache, uint32 hash)
{
	look_again(cache == DATABASEOID ? databases : roles);
}

void
names_init(void)
{
	context = CurrentMemoryContext;
	databases = create_cache("tacho databases", sizeof(OidName));
	roles = create_cache("tacho roles", sizeof(OidName));
	waits = create_cache("tacho waits", sizeof(WaitName));
	CacheRegisterSyscacheCallback(DATABASEOID, hear_change, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, hear_change, (Datum) 0);
}

/* Empties a cache that is too large: roles and databases come and go. */
static void
forget_too_many(HTAB **cache, const char *name)
{
	HASH_SEQ_STATUS scan;
	OidName    *entry;

	if (hash_get_num_entries(*cache) <= MAX_CACHED)
		return;
	hash_seq_init(&scan, *cache);
	while ((entry = hash_seq_search(&scan)) != NULL)
		pending -= !entry->known;
	hash_destroy(*cache);
	*cache = create_cache(name, sizeof(OidName));
}

int64
names_clock_ms(void)
{
	return clock_ms;
}

static void
want_oid(HTAB *cache, Oid oid, OidName **wanted, int *count)
{
	OidName    *entry;
	bool		found;

	if (!OidIsValid(oid))
		return;
	entry = hash_search(cache, &oid, HASH_ENTER, &found);
	if (!found)
	{
		memset(entry, 0, sizeof(*entry));
		entry->oid = oid;
		pending++;
	}
	if (clock_ms < entry->next_look || *count >= WANTED)
		return;
	entry->next_look = clock_ms + (entry->known ? KNOWN_FOR_MS : RETRY_AFTER_MS);
	wanted[(*count)++] = entry;
}

void
names_want_database(Oid database)
{
	want_oid(databases, database, wanted_databases, &database_count);
}

void
names_want_role(Oid role)
{
	want_oid(roles, role, wanted_roles, &role_count);
}

/* Until its name is known, an event is named by its number in its class. */
static void
init_wait(WaitName *entry)
{
	const char *type = pgstat_get_wait_event_type(entry->number);

	entry->known = false;
	entry->next_look = 0;
	strlcpy(entry->type, type ? type : "???", WAIT_NAME);
	snprintf(entry->event, WAIT_NAME, "%u", entry->number & 0x00FFFFFFU);
	pending++;
}

static WaitName *
wait_entry(uint32 number)
{
	bool		found;
	WaitName   *entry = hash_search(waits, &number, HASH_ENTER, &found);

	if (!found)
		init_wait(entry);
	return entry;
}

void
names_want_wait(uint32 number)
{
	WaitName   *entry;

	if (number == 0)
		return;
	entry = wait_entry(number);
	if (entry->known || clock_ms < entry->next_look || wait_count >= WANTED)
		return;
	entry->next_look = clock_ms + RETRY_AFTER_MS;
	wanted_waits[wait_count++] = entry;
}

int
names_guess_encoding(const char *bytes, int length)
{
	bool		ascii = true;

	for (int i = 0; i < length; i++)
		if (IS_HIGHBIT_SET(bytes[i]))
			ascii = false;
	if (ascii || pg_encoding_verifymbstr(PG_UTF8, bytes, length) == length)
		return PG_UTF8;
	return PG_SQL_ASCII;
}

static void
set_oid_name(OidName *entry, const char *name)
{
	strlcpy(entry->name, name, NAMEDATALEN);
	entry->encoding = names_guess_encoding(entry->name, strlen(entry->name));
	if (!entry->known)
		entry->next_look += KNOWN_FOR_MS - RETRY_AFTER_MS;
	if (!entry->known)
		pending--;
	entry->known = true;
}

/*
 * A dropped database or role keeps the name it had. If its name was never
 * known, it gets the name that pg_get_userbyid() would give it.
 */
static void
set_gone(OidName *entry)
{
	char		name[NAMEDATALEN];

	if (entry->known)
		return;
	snprintf(name, sizeof(name), "unknown (OID=%u)", entry->oid);
	set_oid_name(entry, name);
}

static void
look_up_databases(void)
{
	if (database_count == 0 ||
		!ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock))
		return;
	for (int i = 0; i < database_count; i++)
	{
		OidName    *entry = wanted_databases[i];
		HeapTuple	tuple = SearchSysCache1(DATABASEOID,
											ObjectIdGetDatum(entry->oid));
		Form_pg_database form;

		if (!HeapTupleIsValid(tuple))
		{
			set_gone(entry);
			continue;
		}
		form = (Form_pg_database) GETSTRUCT(tuple);
		entry->data_encoding = form->encoding;
		set_oid_name(entry, NameStr(form->datname));
		ReleaseSysCache(tuple);
	}
}

static void
look_up_roles(void)
{
	if (role_count == 0 ||
		!ConditionalLockRelationOid(AuthIdRelationId, AccessShareLock))
		return;
	for (int i = 0; i < role_count; i++)
	{
		OidName    *entry = wanted_roles[i];
		HeapTuple	tuple = SearchSysCache1(AUTHOID,
											ObjectIdGetDatum(entry->oid));

		if (!HeapTupleIsValid(tuple))
		{
			set_gone(entry);
			continue;
		}
		set_oid_name(entry, NameStr(((Form_pg_authid) GETSTRUCT(tuple))->rolname));
		ReleaseSysCache(tuple);
	}
}

/*
 * Looks up the wanted wait events. The server raises an error if an extension
 * has not registered its event yet.
 */
static void
look_up_waits(void)
{
	for (int i = 0; i < wait_count; i++)
	{
		WaitName   *entry = wanted_waits[i];
		const char *type = pgstat_get_wait_event_type(entry->number);
		const char *event = pgstat_get_wait_event(entry->number);

		if (type == NULL || event == NULL)
			continue;
		strlcpy(entry->type, type, WAIT_NAME);
		strlcpy(entry->event, event, WAIT_NAME);
		entry->known = true;
		pending--;
	}
}

/* Does nothing: starting its transaction reads invalidation messages. */
static void
listen_only(void)
{
}

void
names_begin(void)
{
	MemoryContext previous = MemoryContextSwitchTo(context);

	clock_ms = clock_boot_us() / 1000;
	forget_too_many(&databases, "tacho databases");
	forget_too_many(&roles, "tacho roles");
	MemoryContextSwitchTo(previous);
	if (clock_ms - listened >= LISTEN_EVERY_MS)
	{
		listened = clock_ms;
		(void) guarded_run(listen_only);
	}
}

uint64
names_changes(void)
{
	return changes;
}

void
names_resolve(void)
{
	if (database_count > 0)
		(void) guarded_run(look_up_databases);
	if (role_count > 0)
		(void) guarded_run(look_up_roles);
	if (wait_count > 0)
		(void) guarded_run(look_up_waits);
	database_count = role_count = wait_count = 0;
}

void
names_catch_up(void)
{
	if (catchupInterruptPending)
		(void) guarded_run(ProcessCatchupInterrupt);
}

int
names_pending(void)
{
	return pending;
}

static const char *
get_oid_name(HTAB *cache, Oid oid, int *encoding)
{
	OidName    *entry = hash_search(cache, &oid, HASH_FIND, NULL);

	if (entry == NULL || !entry->known)
		return NULL;
	*encoding = entry->encoding;
	return entry->name;
}

const char *
names_get_database(Oid database, int *encoding)
{
	return get_oid_name(databases, database, encoding);
}

const char *
names_get_role(Oid role, int *encoding)
{
	return get_oid_name(roles, role, encoding);
}

int
names_database_encoding(Oid database)
{
	OidName    *entry = hash_search(databases, &database, HASH_FIND, NULL);

	return entry && entry->known ? entry->data_encoding : PG_SQL_ASCII;
}

void
names_get_wait(uint32 number, const char **type, const char **event)
{
	WaitName   *entry = wait_entry(number);

	*type = entry->type;
	*event = entry->event;
}

void
names_backend_type(int pid, BackendType type, char *buffer, Size size)
{
	const char *name = NULL;

	if (type == B_BG_WORKER)
		name = GetBackgroundWorkerTypeByPid(pid);
	strlcpy(buffer, name ? name : GetBackendTypeDesc(type), size);
}

Category
names_category(BackendType type, const char *type_name, BackendType leader)
{
	switch (type)
	{
		case B_BACKEND:
			return CATEGORY_FOREGROUND;
		case B_AUTOVAC_LAUNCHER:
		case B_AUTOVAC_WORKER:
			return CATEGORY_MAINTENANCE;
		case B_WAL_SENDER:
		case B_WAL_RECEIVER:
			return CATEGORY_REPLICATION;
		case B_BG_WORKER:
			break;
		default:
			return compat_is_slotsync_worker(type) ?
				CATEGORY_REPLICATION : CATEGORY_BACKGROUND;
	}
	if (strncmp(type_name, "logical replication", 19) == 0)
		return CATEGORY_REPLICATION;
	if (strcmp(type_name, "parallel worker") != 0)
		return CATEGORY_BACKGROUND;
	if (leader == B_AUTOVAC_WORKER)
		return CATEGORY_MAINTENANCE;
	return leader == B_BG_WORKER ? CATEGORY_BACKGROUND : CATEGORY_FOREGROUND;
}

void
names_client_addr(const SockAddr *addr, char *buffer, Size size)
{
	char	   *zone;

	buffer[0] = '\0';
	switch (addr->addr.ss_family)
	{
		case AF_UNIX:
			strlcpy(buffer, "[local]", size);
			break;
		case AF_INET:
		case AF_INET6:
			if (pg_getnameinfo_all(&addr->addr, addr->salen, buffer, size,
								   NULL, 0, NI_NUMERICHOST | NI_NUMERICSERV))
				buffer[0] = '\0';
			zone = strchr(buffer, '%');
			if (zone)
				*zone = '\0';
			break;
	}
}
