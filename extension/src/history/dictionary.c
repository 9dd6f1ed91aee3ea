/*
 * dictionary.c
 *	  Gives ids to names, waits, statements and sessions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "history/dictionary.h"
#include "history/names.h"

#define REPEAT_MS		60000
/* if a dictionary has more, all are emptied */
#define MAX_ENTRIES		50000
#define MAX_STATS_ENTRIES	200000

/* The id of an entry, and its last definition in a frame. */
typedef struct Definition
{
	uint64		id;
	/* `generation` at the last definition, 0 = never */
	uint64		generation;
	int64		boot_ms;		/* time of the last definition */
} Definition;

typedef struct NameKey
{
	const char *bytes;
	int			length;
	int			encoding;
} NameKey;

struct NameEntry
{
	NameKey		key;
	Definition	definition;
};

struct SessionEntry
{
	SessionKey	key;
	Definition	definition;
};

typedef struct WaitEntry
{
	uint32		number;			/* key */
	NameEntry  *type;
	NameEntry  *event;
	Definition	definition;
} WaitEntry;

typedef struct StatementKey
{
	int64		query_id;
	int64		plan_id;
	uint64		text_key;
	NameEntry  *tags;			/* may be NULL */
} StatementKey;

typedef struct StatementEntry
{
	StatementKey key;
	Definition	definition;
} StatementEntry;

typedef struct StatsEntry
{
	StatsEntryKey key;
	Definition	definition;
} StatsEntry;

static MemoryContext context;
static HTAB *names;
static HTAB *sessions;
static HTAB *waits;
static HTAB *statements;
static HTAB *stats_entries;

static Frame *current_frame;
static int64 current_ms;
static uint64 generation = 1;
static uint64 epoch = 1;

/* each table has its own sequence of ids */
static uint64 last_name;
static uint64 last_session;
static uint64 last_wait;
static uint64 last_statement;
static uint64 last_stats_entry;

static uint32
hash_name(const void *key, Size size)
{
	const NameKey *name = key;

	return hash_bytes((const unsigned char *) name->bytes, name->length) ^
		(uint32) name->encoding;
}

static int
match_name(const void *left, const void *right, Size size)
{
	const NameKey *a = left;
	const NameKey *b = right;

	return a->length != b->length || a->encoding != b->encoding ||
		memcmp(a->bytes, b->bytes, a->length) != 0;
}

static HTAB *
create_table(const char *name, Size key_size, Size entry_size)
{
	HASHCTL		info = {0};

	info.keysize = key_size;
	info.entrysize = entry_size;
	info.hcxt = context;
	return hash_create(name, 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
create_tables(void)
{
	HASHCTL		info = {0};

	info.keysize = sizeof(NameKey);
	info.entrysize = sizeof(NameEntry);
	info.hash = hash_name;
	info.match = match_name;
	info.hcxt = context;
	names = hash_create("tacho names", 256, &info,
						HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
	sessions = create_table("tacho sessions", sizeof(SessionKey),
							sizeof(SessionEntry));
	waits = create_table("tacho waits", sizeof(uint32), sizeof(WaitEntry));
	statements = create_table("tacho statements", sizeof(StatementKey),
							  sizeof(StatementEntry));
	stats_entries = create_table("tacho entries", sizeof(StatsEntryKey),
								 sizeof(StatsEntry));
}

void
dictionary_init(void)
{
	context = AllocSetContextCreate(CurrentMemoryContext, "tacho dictionary",
									ALLOCSET_DEFAULT_SIZES);
	create_tables();
}

static bool
is_too_large(void)
{
	return hash_get_num_entries(names) > MAX_ENTRIES ||
		hash_get_num_entries(sessions) > MAX_ENTRIES ||
		hash_get_num_entries(waits) > MAX_ENTRIES ||
		hash_get_num_entries(statements) > MAX_ENTRIES ||
		hash_get_num_entries(stats_entries) > MAX_STATS_ENTRIES;
}

void
dictionary_begin_frame(Frame *frame, int64 boot_ms)
{
	current_frame = frame;
	current_ms = boot_ms;
	if (!is_too_large())
		return;
	MemoryContextReset(context);
	create_tables();
	epoch++;
}

void
dictionary_redefine(void)
{
	generation++;
}

uint64
dictionary_epoch(void)
{
	return epoch;
}

/*
 * Returns true if the frame must define the entry now, and notes the
 * definition.
 */
static bool
must_define(Definition *definition)
{
	if (definition->generation == generation &&
		current_ms - definition->boot_ms < REPEAT_MS)
		return false;
	definition->generation = generation;
	definition->boot_ms = current_ms;
	return true;
}

NameEntry *
dictionary_find_name(const char *bytes, int length, int encoding)
{
	NameKey		key = {bytes, length, encoding};
	NameEntry  *entry;
	bool		found;
	char	   *copy;

	if (length == 0)
		return NULL;
	entry = hash_search(names, &key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry;
	copy = MemoryContextAlloc(context, length);
	memcpy(copy, bytes, length);
	key.bytes = copy;
	entry = hash_search(names, &key, HASH_ENTER, &found);
	memset(&entry->definition, 0, sizeof(Definition));
	entry->definition.id = ++last_name;
	return entry;
}

NameEntry *
dictionary_find_text(const char *text)
{
	int			length = strlen(text);

	return dictionary_find_name(text, length, names_guess_encoding(text, length));
}

const char *
dictionary_bytes(const NameEntry *entry, int *length)
{
	if (entry == NULL)
	{
		*length = 1;
		return "?";
	}
	*length = entry->key.length;
	return entry->key.bytes;
}

uint64
dictionary_use_name(NameEntry *entry)
{
	Section    *section;
	int			row;

	if (entry == NULL)
		return 0;
	if (must_define(&entry->definition))
	{
		section = frame_section(current_frame, TABLE_name);
		row = section_add(section);
		section_set(section, row, COL_name_id, entry->definition.id);
		section_set(section, row, COL_name_encoding, entry->key.encoding);
		section_set_bytes(section, COL_name_bytes, entry->key.bytes,
						  entry->key.length);
	}
	return entry->definition.id;
}

uint64
dictionary_name(const char *bytes, int length, int encoding)
{
	return dictionary_use_name(dictionary_find_name(bytes, length, encoding));
}

uint64
dictionary_text(const char *text)
{
	return dictionary_use_name(dictionary_find_text(text));
}

SessionEntry *
dictionary_find_session(const SessionKey *key)
{
	bool		found;
	SessionEntry *entry = hash_search(sessions, key, HASH_ENTER, &found);

	if (!found)
	{
		memset(&entry->definition, 0, sizeof(Definition));
		entry->definition.id = ++last_session;
	}
	return entry;
}

static void
define_session(SessionEntry *entry)
{
	SessionKey *key = &entry->key;
	uint64		type = dictionary_use_name(key->backend_type);
	uint64		database = dictionary_use_name(key->database);
	uint64		user = dictionary_use_name(key->user);
	uint64		application = dictionary_use_name(key->application);
	uint64		addr = dictionary_use_name(key->client_addr);
	Section    *section = frame_section(current_frame, TABLE_session);
	int			row = section_add(section);

	section_set(section, row, COL_session_id, entry->definition.id);
	section_set(section, row, COL_session_pid, key->pid);
	section_set(section, row, COL_session_backend_start,
				frame_time_us(key->backend_start + TACHO_EPOCH_OFFSET_US));
	section_set(section, row, COL_session_backend_type, type);
	section_set(section, row, COL_session_category, key->category);
	section_set(section, row, COL_session_database_oid, key->database_oid);
	section_set(section, row, COL_session_database, database);
	section_set(section, row, COL_session_user_oid, key->user_oid);
	section_set(section, row, COL_session_username, user);
	section_set(section, row, COL_session_application, application);
	section_set(section, row, COL_session_client_addr, addr);
	section_set(section, row, COL_session_leader, key->leader);
}

uint64
dictionary_use_session(SessionEntry *entry)
{
	if (must_define(&entry->definition))
		define_session(entry);
	return entry->definition.id;
}

/*
 * Finds the name entries of the class and the name of a wait event. If the
 * name becomes known later, the event gets another entry.
 */
static NameEntry *
wait_names(uint32 number, NameEntry **event_entry)
{
	const char *type;
	const char *event;

	names_get_wait(number, &type, &event);
	*event_entry = dictionary_find_name(event, strlen(event), PG_UTF8);
	return dictionary_find_name(type, strlen(type), PG_UTF8);
}

static void
define_wait(WaitEntry *entry)
{
	uint64		type = dictionary_use_name(entry->type);
	uint64		event = dictionary_use_name(entry->event);
	Section    *section = frame_section(current_frame, TABLE_wait);
	int			row = section_add(section);

	section_set(section, row, COL_wait_id, entry->definition.id);
	section_set(section, row, COL_wait_number, entry->number);
	section_set(section, row, COL_wait_wait_event_type, type);
	section_set(section, row, COL_wait_wait_event, event);
}

uint64
dictionary_wait(uint32 number)
{
	WaitEntry  *entry;
	NameEntry  *type;
	NameEntry  *event;
	bool		found;

	if (number == 0)
		return 0;
	entry = hash_search(waits, &number, HASH_ENTER, &found);
	if (!found)
		memset(&entry->definition, 0, sizeof(Definition));
	else if (entry->definition.generation == generation &&
			 current_ms - entry->definition.boot_ms < REPEAT_MS)
		return entry->definition.id;
	type = wait_names(number, &event);
	if (!found || entry->type != type || entry->event != event)
	{
		entry->definition.id = ++last_wait;
		entry->definition.generation = 0;
		entry->type = type;
		entry->event = event;
	}
	if (must_define(&entry->definition))
		define_wait(entry);
	return entry->definition.id;
}

static void
define_statement(const StatementEntry *entry)
{
	const StatementKey *key = &entry->key;
	uint64		tags = dictionary_use_name(key->tags);
	Section    *section = frame_section(current_frame, TABLE_statement);
	int			row = section_add(section);

	section_set(section, row, COL_statement_id, entry->definition.id);
	section_set(section, row, COL_statement_query_id, frame_int(key->query_id));
	section_set(section, row, COL_statement_plan_id, frame_int(key->plan_id));
	section_set(section, row, COL_statement_text_key, key->text_key);
	section_set(section, row, COL_statement_tags, tags);
}

uint64
dictionary_statement(int64 query_id, int64 plan_id, uint64 text_key, NameEntry *tags)
{
	StatementKey key;
	StatementEntry *entry;
	bool		found;

	/* the key is compared byte by byte */
	memset(&key, 0, sizeof(key));
	key.query_id = query_id;
	key.plan_id = plan_id;
	key.text_key = text_key;
	key.tags = tags;
	if (query_id == 0 && plan_id == 0 && text_key == 0 && tags == NULL)
		return 0;
	entry = hash_search(statements, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset(&entry->definition, 0, sizeof(Definition));
		entry->definition.id = ++last_statement;
	}
	if (must_define(&entry->definition))
		define_statement(entry);
	return entry->definition.id;
}

static void
define_stats_entry(const StatsEntry *entry)
{
	const StatsEntryKey *key = &entry->key;
	uint64		user = dictionary_use_name(key->user);
	uint64		database = dictionary_use_name(key->database);
	Section    *section = frame_section(current_frame, TABLE_entry);
	int			row = section_add(section);

	section_set(section, row, COL_entry_id, entry->definition.id);
	section_set(section, row, COL_entry_user_oid, key->user_oid);
	section_set(section, row, COL_entry_username, user);
	section_set(section, row, COL_entry_database_oid, key->database_oid);
	section_set(section, row, COL_entry_database, database);
	section_set(section, row, COL_entry_query_id, frame_int(key->query_id));
	section_set(section, row, COL_entry_toplevel, key->toplevel);
}

uint64
dictionary_stats_entry(const StatsEntryKey *key)
{
	StatsEntry *entry;
	bool		found;

	entry = hash_search(stats_entries, key, HASH_ENTER, &found);
	if (!found)
	{
		memset(&entry->definition, 0, sizeof(Definition));
		entry->definition.id = ++last_stats_entry;
	}
	if (must_define(&entry->definition))
		define_stats_entry(entry);
	return entry->definition.id;
}
