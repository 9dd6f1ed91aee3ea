/*
 * changed_settings.c
 *	  Markers for settings of the server whose values change.
 *
 * KEPT_FILE has the values of the last look, so that the next start knows the
 * settings that were changed while the server was down. It is written when
 * the sampler starts and when a reload has changed a setting. A value that
 * may be a secret is kept as a hash. The file is not synced: an operating
 * system crash may damage it, and then nothing is compared.
 *
 * Locking: none. Memory: a context of each look, which the next one deletes.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "core/clocks.h"
#include "core/server_settings.h"
#include "core/tacho.h"
#include "history/dictionary.h"
#include "sampler/changed_settings.h"
#include "sampler/recorder.h"

#define KEPT_FILE		"pg_stat/tacho_settings.stat"
#define KEPT_MAGIC		0x31544553	/* SET1 */
#define LONGEST_FILE	(16 * 1024 * 1024)
#define LONGEST_SHOWN	1000	/* bytes of a value in a marker */

/* A setting at the last look. */
typedef struct Known
{
	const char *name;
	const char *value;			/* NULL = a secret */
	uint64		hash;			/* of the value */
} Known;

typedef struct Look
{
	MemoryContext context;
	bool		known;			/* the fields below are filled */
	Known	   *settings;		/* in the server's order, by name */
	int			count;
} Look;

/* The file begins with it. The name, hash and value of each setting follow. */
typedef struct KeptHead
{
	uint32		magic;
	pg_crc32c	crc;			/* of all bytes after it */
	uint64		system_identifier;
} KeptHead;

static Look last;

/* ---- the file ---- */

static pg_crc32c
kept_crc(const char *bytes, Size size)
{
	Size		covered = offsetof(KeptHead, system_identifier);
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes + covered, size - covered);
	FIN_CRC32C(crc);
	return crc;
}

static void
put_known(StringInfo bytes, const Known *known)
{
	appendBinaryStringInfo(bytes, known->name, strlen(known->name) + 1);
	appendBinaryStringInfo(bytes, (const char *) &known->hash, sizeof(known->hash));
	appendStringInfoChar(bytes, known->value != NULL);
	if (known->value != NULL)
		appendBinaryStringInfo(bytes, known->value, strlen(known->value) + 1);
}

static bool
write_file(const StringInfoData *bytes)
{
	const char *draft = KEPT_FILE ".new";
	FILE	   *file = AllocateFile(draft, PG_BINARY_W);
	bool		written;

	if (file == NULL)
		return false;
	written = fwrite(bytes->data, 1, bytes->len, file) == bytes->len;
	written = FreeFile(file) == 0 && written;
	return written && rename(draft, KEPT_FILE) == 0;
}

static void
keep(const Look *look)
{
	KeptHead	head = {
		.magic = KEPT_MAGIC,
		.system_identifier = GetSystemIdentifier(),
	};
	StringInfoData bytes;

	initStringInfo(&bytes);
	appendBinaryStringInfo(&bytes, (const char *) &head, sizeof(head));
	for (int i = 0; i < look->count; i++)
		put_known(&bytes, &look->settings[i]);
	((KeptHead *) bytes.data)->crc = kept_crc(bytes.data, bytes.len);
	HOLD_INTERRUPTS();
	if (!write_file(&bytes))
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", KEPT_FILE),
				 errdetail("Settings that are changed before the next start of the sampler get no marker.")));
	RESUME_INTERRUPTS();
	pfree(bytes.data);
}

/* The bytes of the file with a zero byte after them, or NULL. */
static char *
read_file(Size *size)
{
	FILE	   *file = AllocateFile(KEPT_FILE, PG_BINARY_R);
	struct stat status;
	char	   *bytes = NULL;

	if (file == NULL)
		return NULL;
	if (fstat(fileno(file), &status) == 0 && status.st_size <= LONGEST_FILE)
	{
		bytes = palloc0(status.st_size + 1);
		*size = fread(bytes, 1, status.st_size, file);
	}
	FreeFile(file);
	return bytes;
}

/* True if the file is complete and this server has written it. */
static bool
is_ours(const char *bytes, Size size)
{
	const KeptHead *head = (const KeptHead *) bytes;

	return size >= sizeof(KeptHead) && head->magic == KEPT_MAGIC &&
		head->crc == kept_crc(bytes, size) &&
		head->system_identifier == GetSystemIdentifier();
}

/* Decodes one setting; the checksum of the bytes was right. */
static const char *
take_known(const char *at, Known *known)
{
	known->name = at;
	at += strlen(at) + 1;
	memcpy(&known->hash, at, sizeof(known->hash));
	at += sizeof(known->hash);
	known->value = NULL;
	if (*at++ != 0)
	{
		known->value = at;
		at += strlen(at) + 1;
	}
	return at;
}

/*
 * Loads the last look of the process before this one, if its file is usable.
 */
static void
take_file(Look *look)
{
	Size		size;
	char	   *bytes = read_file(&size);
	int			room = 64;

	if (bytes == NULL || !is_ours(bytes, size))
		return;
	look->known = true;
	look->settings = palloc(room * sizeof(Known));
	for (const char *at = bytes + sizeof(KeptHead); at < bytes + size;)
	{
		if (look->count == room)
		{
			room *= 2;
			look->settings = repalloc(look->settings, room * sizeof(Known));
		}
		at = take_known(at, &look->settings[look->count++]);
	}
}

/* ---- what has changed ---- */

/*
 * Finds a setting by name; starts at `near`, because both looks have nearly
 * the same order.
 */
static const Known *
find(const Look *look, const char *name, int near)
{
	for (int i = 0; i < look->count; i++)
	{
		const Known *known = &look->settings[(near + i) % look->count];

		if (strcmp(known->name, name) == 0)
			return known;
	}
	return NULL;
}

/* A value as a marker shows it. */
static const char *
shown(const Known *known)
{
	int			length;

	if (known->value == NULL)
		return "(not shown)";
	if (known->value[0] == '\0')
		return "''";
	length = strlen(known->value);
	if (length <= LONGEST_SHOWN)
		return known->value;
	return psprintf("%.*s... (%d bytes)",
					pg_encoding_mbcliplen(PG_UTF8, known->value, length, LONGEST_SHOWN),
					known->value, length);
}

static void
mark(const ServerSetting *setting, const Known *before, const Known *now)
{
	MarkerRow	marker = {.kind = MARKER_SETTINGS_CHANGED, .time = clock_wall_us() / 1000};

	(void) recorder_frame(marker.time);
	marker.object_class = dictionary_text("setting");
	marker.object_name = dictionary_text(now->name);
	if (before != NULL)
		marker.old_value = dictionary_text(shown(before));
	marker.new_value = dictionary_text(shown(now));
	if (setting->file != NULL)
		marker.detail = dictionary_text(psprintf("%s:%d", setting->file, setting->line));
	recorder_marker_row(&marker);
}

/*
 * A setting that the last look did not have usually came with a new version
 * or library. It is marked only if it exists in a configuration file alone.
 */
static bool
has_changed(const ServerSetting *setting, const Known *before, const Known *now)
{
	return before != NULL ? before->hash != now->hash : setting->placeholder;
}

static Known
known_of(const ServerSetting *setting)
{
	return (Known) {
		.name = setting->name,
		.value = setting->shown ? setting->value : NULL,
		.hash = hash_bytes_extended((const unsigned char *) setting->value,
									strlen(setting->value), 0),
	};
}

/* Reads all settings, and marks those that differ from the last look. */
static bool
compare(Look *look, bool *own)
{
	ServerSetting *settings;
	bool		any = false;

	look->known = true;
	look->count = server_settings_read(&settings);
	look->settings = palloc(look->count * sizeof(Known));
	for (int i = 0; i < look->count; i++)
	{
		const Known *before = find(&last, settings[i].name, i);
		Known	   *now = &look->settings[i];

		*now = known_of(&settings[i]);
		if (!last.known || !has_changed(&settings[i], before, now))
			continue;
		any = true;
		*own |= strncmp(now->name, TACHO_PREFIX ".", strlen(TACHO_PREFIX ".")) == 0;
		mark(&settings[i], before, now);
	}
	return any;
}

bool
changed_settings_look(void)
{
	Look		look = {.context = AllocSetContextCreate(TopMemoryContext, "tacho settings",
														 ALLOCSET_DEFAULT_SIZES)};
	MemoryContext caller = MemoryContextSwitchTo(look.context);
	bool		first = last.context == NULL;
	bool		own = false;

	if (first)
		take_file(&last);
	if (compare(&look, &own) || first)
		keep(&look);
	MemoryContextSwitchTo(caller);
	if (!first)
		MemoryContextDelete(last.context);
	last = look;
	return own;
}
