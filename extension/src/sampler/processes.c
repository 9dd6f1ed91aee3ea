/*
 * processes.c
 *	  Session entries and categories of the processes of a scan.
 *
 * Each slot remembers its session entry and the values that the entry was
 * made from. The entry is made again if a value differs, if a name was
 * missing, or if a database or role has changed. After a minute it is made
 * again in any case.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "common/ip.h"
#include "postmaster/bgworker.h"

#include "history/names.h"
#include "sampler/given_names.h"
#include "sampler/processes.h"

#define VALID_MS		60000

typedef struct SlotSession
{
	uint64		epoch;			/* of the dictionary, 0 = no entry */
	uint64		names;			/* names_changes() */
	int64		valid_until;	/* names_clock_ms() */
	TimestampTz backend_start;
	int			pid;
	int			leader;
	Oid			database;
	Oid			user;
	char		application[NAMEDATALEN];
	bool		left_out;		/* the application had no room */
	SessionEntry *entry;
} SlotSession;

static SlotSession *sessions;

void
processes_init(int slots)
{
	sessions = palloc0(sizeof(SlotSession) * slots);
}

static bool
is_same_process(const SlotSession *session, const SlotIdentity *identity)
{
	return session->pid == identity->pid &&
		session->backend_start == identity->backend_start;
}

static bool
is_current(const SlotSession *session, const SlotIdentity *identity,
		   const SessionRow *row)
{
	return session->epoch == dictionary_epoch() &&
		is_same_process(session, identity) &&
		session->leader == row->leader &&
		session->database == row->database &&
		session->user == row->user &&
		session->names == names_changes() &&
		names_clock_ms() < session->valid_until &&
		strcmp(session->application, row->application) == 0;
}

NameEntry *
processes_database_name(Oid database)
{
	int			encoding;
	const char *name = names_get_database(database, &encoding);

	return name ? dictionary_find_name(name, strlen(name), encoding) : NULL;
}

NameEntry *
processes_role_name(Oid role)
{
	int			encoding;
	const char *name = names_get_role(role, &encoding);

	return name ? dictionary_find_name(name, strlen(name), encoding) : NULL;
}

/*
 * The entry of the application name, or of "(other)" if its role has no room.
 */
static NameEntry *
find_application(SlotSession *session, const SlotIdentity *identity,
				 const SessionRow *row)
{
	bool		renamed = is_same_process(session, identity) &&
		(session->left_out ||
		 strcmp(session->application, row->application) != 0);

	return given_name(row->user, !renamed ? 0 :
					  hash_combine64(identity->pid, identity->backend_start),
					  row->application, &session->left_out);
}

/* Finds or makes the session entry for a row. */
static SessionEntry *
find_session(SessionScan *scan, SlotSession *session, SlotIdentity *identity,
			 const SessionRow *row)
{
	SessionKey	key;
	char		type[BGW_MAXLEN];
	char		addr[NI_MAXHOST];
	BackendType leader = row->leader == 0 ? B_INVALID :
		session_scan_type(scan, row->leader);

	names_backend_type(identity->pid, identity->type, type, sizeof(type));
	names_client_addr(&identity->client_addr, addr, sizeof(addr));
	identity->category = names_category(identity->type, type, leader);

	memset(&key, 0, sizeof(key));
	key.pid = identity->pid;
	key.backend_start = identity->backend_start;
	key.backend_type = dictionary_find_text(type);
	key.category = identity->category;
	key.database_oid = row->database;
	key.database = processes_database_name(row->database);
	key.user_oid = row->user;
	key.user = processes_role_name(row->user);
	key.application = find_application(session, identity, row);
	key.client_addr = dictionary_find_text(addr);
	key.leader = row->leader;
	return dictionary_find_session(&key);
}

static bool
has_pending_name(const SessionRow *row)
{
	int			encoding;

	return (OidIsValid(row->database) &&
			names_get_database(row->database, &encoding) == NULL) ||
		(OidIsValid(row->user) &&
		 names_get_role(row->user, &encoding) == NULL);
}

uint64
processes_session(SessionScan *scan, const SessionRow *row)
{
	SlotIdentity *identity = &scan->identities[row->slot];
	SlotSession *session = &sessions[row->slot];

	if (row->failed)
	{
		if (session->epoch != dictionary_epoch() ||
			!is_same_process(session, identity))
			return 0;
	}
	else if (!is_current(session, identity, row))
	{
		session->entry = find_session(scan, session, identity, row);
		session->epoch = dictionary_epoch();
		session->names = names_changes();
		session->valid_until = names_clock_ms() +
			(has_pending_name(row) ? 0 : VALID_MS);
		session->backend_start = identity->backend_start;
		session->pid = identity->pid;
		session->leader = row->leader;
		session->database = row->database;
		session->user = row->user;
		strlcpy(session->application, row->application, NAMEDATALEN);
	}
	return dictionary_use_session(session->entry);
}

Category
processes_category(const SessionScan *scan, int slot)
{
	SlotIdentity *identity = &scan->identities[slot];
	char		type[BGW_MAXLEN];

	if (identity->category == CATEGORY_NONE)
	{
		names_backend_type(identity->pid, identity->type, type, sizeof(type));
		identity->category = names_category(identity->type, type, B_INVALID);
	}
	return identity->category;
}
