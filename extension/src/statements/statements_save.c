/*
 * statements_save.c
 *	  Saves and loads the statistics of statements, across restarts.
 *
 * At a clean shutdown the postmaster writes pg_stat/tacho_statements.stat
 * when all other processes are gone. The next start loads and removes it. For
 * crashes, a background worker writes pg_stat_tmp/tacho_statements.stat every
 * tacho.statements_save_interval if anything has changed. That directory is
 * not part of base backups. Both files are written under another name and
 * renamed, so a reader sees a whole file or none.
 *
 * The loader runs in the postmaster, so it raises no errors and trusts no
 * length. The file has a checksum and the identity of cluster and data
 * directory. A file that fails these checks gets the suffix .rejected, with a
 * warning.
 *
 * The only file of the extension that reads and writes these files.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "core/clocks.h"
#include "core/settings.h"
#include "core/tacho.h"
#include "statements/statements.h"
#include "statements/statements_alias.h"
#include "statements/statements_save.h"

#define DUMP_FILE	"pg_stat/tacho_statements.stat"
#define SAVE_FILE	"pg_stat_tmp/tacho_statements.stat"
#define RESTART_S	5				/* after the saver's end */
#define MAGIC		0x3254534f48434154	/* "TACHOST2", little-endian */

#define COUNTER_WORDS	(sizeof(Counters) / sizeof(uint64))
#define MASK_WORDS		((COUNTER_WORDS + 63) / 64)

typedef struct SavedHead
{
	uint64		magic;
	uint32		major;			/* of PostgreSQL */
	uint32		fingerprint;	/* of the counters */
	uint64		system_identifier;
	uint64		device;			/* of the data directory; never compared */
	uint64		inode;
	int64		evicted;
	int64		skipped;
	TimestampTz stats_reset;
	TimestampTz saved_at;
} SavedHead;

/* The amount that the history lacks in one of its columns. */
typedef struct SavedLack
{
	int64		column;
	int64		value;
} SavedLack;

/*
 * An entry in a file. The counters of `mask`, the text, and `lacking`
 * SavedLacks follow it.
 */
typedef struct SavedEntry
{
	StatementKey key;
	TimestampTz stats_since;
	TimestampTz minmax_stats_since;
	TimestampTz text_since;
	TimestampTz last_call;
	TimestampTz last_error_at;
	int32		last_sqlstate;
	int32		encoding;
	int32		text_length;	/* -1 = no text */
	int32		lacking;		/* number of SavedLacks */
	uint64		mask[MASK_WORDS];
} SavedEntry;

StaticAssertDecl(sizeof(SavedHead) == 72, "layout of saved files");
StaticAssertDecl(sizeof(SavedEntry) == 80 + 8 * MASK_WORDS,
				 "layout of saved files");

/* identity of this cluster, found at start */
static SavedHead identity;

/* ---- writing ---- */

typedef struct Output
{
	FILE	   *file;
	pg_crc32c	crc;
	int			error;			/* errno of the first failure, 0 = none */
} Output;

/* Called when a call has failed and set errno. */
static void
note_error(Output *output)
{
	if (output->error == 0)
		output->error = errno ? errno : EIO;
}

static void
put(Output *output, const void *bytes, Size size)
{
	COMP_CRC32C(output->crc, bytes, size);
	if (fwrite(bytes, 1, size, output->file) != size)
		note_error(output);
}

/*
 * Finds the columns in which the history lacks a part of an entry; returns
 * their number.
 */
static int
find_lacks(const StatementReader *reader, const StatementCopy *copy,
		   SavedLack *lacks)
{
	int64		values[HISTORY_COLUMNS];
	int			n = 0;

	/* a crash save cannot know which of these reach the history afterwards */
	if (IsUnderPostmaster || !statements_lacking(reader, copy, values))
		return 0;
	for (int i = 0; i < HISTORY_COLUMNS; i++)
		if (values[i] != 0)
			lacks[n++] = (SavedLack) {i, values[i]};
	return n;
}

static void
put_entry(Output *output, const StatementReader *reader,
		  const StatementCopy *copy)
{
	SavedLack	lacks[HISTORY_COLUMNS];
	uint64		words[COUNTER_WORDS];
	uint64		present[COUNTER_WORDS];
	int			n = 0;
	SavedEntry	saved = {
		.key = copy->key,
		.stats_since = copy->stats_since,
		.minmax_stats_since = copy->minmax_stats_since,
		.text_since = copy->text_since,
		.last_call = copy->last_call,
		.last_error_at = copy->last_error_at,
		.last_sqlstate = copy->last_sqlstate,
		.encoding = copy->encoding,
		.text_length = copy->text ? copy->text_length : -1,
		.lacking = find_lacks(reader, copy, lacks),
	};

	memcpy(words, &copy->counters, sizeof(words));
	for (int i = 0; i < COUNTER_WORDS; i++)
	{
		if (words[i] == 0)
			continue;
		saved.mask[i / 64] |= UINT64CONST(1) << (i % 64);
		present[n++] = words[i];
	}
	put(output, &saved, sizeof(saved));
	put(output, present, n * sizeof(uint64));
	if (copy->text)
		put(output, copy->text, copy->text_length);
	put(output, lacks, saved.lacking * sizeof(SavedLack));
}

/* True if the entry has counted anything. */
static bool
worth_saving(const StatementCopy *copy)
{
	return copy->counters.calls + copy->counters.plans +
		copy->counters.errors + copy->counters.cancellations > 0;
}

static void
put_all(Output *output)
{
	StatementReader reader = {.with_text = true};
	StatementCopy copy;
	StatementsInfo info;
	SavedHead	head = identity;
	uint64		entries = 0;
	pg_crc32c	crc;

	statements_info(&info);
	head.evicted = info.evicted;
	head.skipped = info.skipped;
	head.stats_reset = info.stats_reset;
	head.saved_at = GetCurrentTimestamp();
	put(output, &head, sizeof(head));
	while (output->error == 0 && statements_read(&reader, &copy))
	{
		if (!worth_saving(&copy))
			continue;
		put_entry(output, &reader, &copy);
		entries++;
	}
	put(output, &entries, sizeof(entries));
	crc = output->crc;
	FIN_CRC32C(crc);
	put(output, &crc, sizeof(crc));
}

/* Writes all statistics to `path`. Logs a failure and returns false. */
static bool
write_file(const char *path, bool durable)
{
	char		draft[MAXPGPATH];
	Output		output = {0};

	snprintf(draft, sizeof(draft), "%s.new", path);
	output.file = AllocateFile(draft, PG_BINARY_W);
	if (output.file == NULL)
		note_error(&output);
	else
	{
		INIT_CRC32C(output.crc);
		put_all(&output);
		if (FreeFile(output.file) != 0)
			note_error(&output);
	}
	if (output.error == 0 &&
		(durable ? durable_rename(draft, path, LOG) : rename(draft, path)) != 0)
		note_error(&output);
	if (output.error != 0)
	{
		errno = output.error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", path)));
		unlink(draft);
		return false;
	}
	return true;
}

/* ---- reading ---- */

typedef struct Input
{
	const char *at;
	const char *end;
} Input;

/* Copies `size` bytes; false if fewer are left. */
static bool
take(Input *input, void *to, Size size)
{
	if ((Size) (input->end - input->at) < size)
		return false;
	memcpy(to, input->at, size);
	input->at += size;
	return true;
}

/* Fills `values` from `n` SavedLacks. */
static bool
take_lacks(Input *input, int n, int64 *values)
{
	SavedLack	lack;

	memset(values, 0, HISTORY_COLUMNS * sizeof(int64));
	for (int i = 0; i < n; i++)
	{
		if (!take(input, &lack, sizeof(lack)) || lack.column < 0 ||
			lack.column >= HISTORY_COLUMNS)
			return false;
		values[lack.column] = lack.value;
	}
	return true;
}

static bool
take_entry(Input *input, StatementCopy *copy, int64 *lacking)
{
	SavedEntry	saved;
	uint64		words[COUNTER_WORDS] = {0};

	if (!take(input, &saved, sizeof(saved)))
		return false;
	for (int i = 0; i < COUNTER_WORDS; i++)
		if ((saved.mask[i / 64] >> (i % 64)) & 1)
			if (!take(input, &words[i], sizeof(uint64)))
				return false;
	memset(copy, 0, sizeof(*copy));
	if (saved.text_length >= 0)
	{
		if (input->end - input->at < saved.text_length)
			return false;
		copy->text = unconstify(char *, input->at);
		copy->text_length = saved.text_length;
		input->at += saved.text_length;
	}
	copy->key = saved.key;
	copy->stats_since = saved.stats_since;
	copy->minmax_stats_since = saved.minmax_stats_since;
	copy->text_since = saved.text_since;
	copy->last_call = saved.last_call;
	copy->last_error_at = saved.last_error_at;
	copy->last_sqlstate = saved.last_sqlstate;
	copy->encoding = saved.encoding;
	memcpy(&copy->counters, words, sizeof(words));
	return PG_VALID_ENCODING(saved.encoding) &&
		take_lacks(input, saved.lacking, lacking);
}

/* The reason why a file of `size` bytes is rejected, or NULL. */
static const char *
find_fault(const char *bytes, Size size)
{
	SavedHead	head;
	pg_crc32c	crc;
	pg_crc32c	stored;

	if (size < sizeof(head) + sizeof(uint64) + sizeof(crc))
		return "It is too short.";
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != MAGIC)
		return "It is of another format.";
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes, size - sizeof(crc));
	FIN_CRC32C(crc);
	memcpy(&stored, bytes + size - sizeof(crc), sizeof(crc));
	if (!EQ_CRC32C(crc, stored))
		return "Its checksum is wrong.";
	if (head.major != identity.major || head.fingerprint != identity.fingerprint)
		return "It was written by another version.";
	if (head.system_identifier != identity.system_identifier)
		return "It belongs to another database cluster.";
	/* a reboot or another mount may change the device number */
	if (head.inode != identity.inode)
		return "It was copied from another data directory.";
	return NULL;
}

/*
 * Restores the entries of a checked file. `fresh`: no server has loaded the
 * file yet. Only then are the amounts that the history lacks restored,
 * because they may count only once.
 */
static const char *
restore(const char *bytes, Size size, bool fresh)
{
	Input		input = {bytes, bytes + size - sizeof(pg_crc32c) - sizeof(uint64)};
	SavedHead	head;
	StatementCopy copy;
	int64		lacking[HISTORY_COLUMNS];

	take(&input, &head, sizeof(head));
	while (input.at < input.end)
	{
		if (!take_entry(&input, &copy, lacking))
			return "An entry is damaged.";
		if (!statements_restore(&copy, fresh ? lacking : NULL))
			head.skipped += copy.counters.calls;
	}
	statements_restore_info(head.evicted, head.skipped, head.stats_reset);
	return NULL;
}

/* Reads a file into malloc() memory. NULL if there is no file or no memory. */
static char *
read_file(const char *path, Size *size)
{
	FILE	   *file = AllocateFile(path, PG_BINARY_R);
	struct stat status;
	char	   *bytes = NULL;

	if (file == NULL && errno == ENOENT)
		return NULL;
	if (file && fstat(fileno(file), &status) == 0)
	{
		*size = status.st_size;
		bytes = malloc(*size + 1);
		/* a file that has become shorter fails the checks */
		if (bytes)
			*size = fread(bytes, 1, *size, file);
		if (bytes && ferror(file))
		{
			free(bytes);
			bytes = NULL;
		}
	}
	if (bytes == NULL)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", path)));
	if (file)
		FreeFile(file);
	return bytes;
}

/* Loads a file; see restore(). False if there is no file. */
static bool
load_saved(const char *path, bool fresh)
{
	Size		size = 0;
	char	   *bytes = read_file(path, &size);
	const char *fault;
	char		aside[MAXPGPATH];

	if (bytes == NULL)
		return false;
	fault = find_fault(bytes, size);
	if (fault == NULL)
		fault = restore(bytes, size, fresh);
	free(bytes);
	if (fault == NULL)
		return true;
	snprintf(aside, sizeof(aside), "%s.rejected", path);
	if (rename(path, aside) != 0)
		unlink(path);
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("statement statistics in file \"%s\" are not used", path),
			 errdetail_internal("%s", fault)));
	return false;
}

/* ---- postmaster ---- */

static void
find_identity(void)
{
	struct stat status = {0};

	if (stat(DataDir, &status) != 0)
		memset(&status, 0, sizeof(status));
	identity = (SavedHead) {
		.magic = MAGIC,
		.major = COMPAT_MAJOR,
		.fingerprint = counters_fingerprint(),
		.system_identifier = GetSystemIdentifier(),
		.device = status.st_dev,
		.inode = status.st_ino,
	};
}

void
statements_save_forget(void)
{
	unlink(DUMP_FILE);
	unlink(SAVE_FILE);
}

/* Runs at the exit of the postmaster, or of a server in single-user mode. */
static void
on_exit_dump(int code, Datum arg)
{
	if (code != 0 || !statements_active())
		return;
	if (!setting_save())
	{
		statements_save_forget();
		return;
	}
	/* without this file, the next start loads the last save */
	if (write_file(DUMP_FILE, true))
		unlink(SAVE_FILE);
}

void
statements_save_startup(void)
{
	find_identity();
	on_shmem_exit(on_exit_dump, (Datum) 0);
	if (!setting_save())
	{
		statements_save_forget();
		return;
	}
	/* until the first save, a crash needs the file that was just loaded */
	if (load_saved(DUMP_FILE, true))
	{
		if (rename(DUMP_FILE, SAVE_FILE) != 0)
			unlink(DUMP_FILE);
	}
	else
		load_saved(SAVE_FILE, false);
}

/* ---- saver ---- */

void
statements_save_init(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = RESTART_S;
	strlcpy(worker.bgw_name, "tacho saver", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "tacho saver", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, TACHO_PREFIX, BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "statements_saver_main", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* Milliseconds until the next save; -1 = until a signal. */
static long
until_next_save(int64 last_us)
{
	int64		elapsed = (clock_boot_us() - last_us) / 1000;

	if (!setting_save() || tacho_statements_save_interval == 0)
		return -1;
	return Max(tacho_statements_save_interval - elapsed, 0);
}

void
statements_saver_main(Datum arg)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "tacho saver",
												  ALLOCSET_DEFAULT_SIZES);
	int64		last_us = clock_boot_us();
	uint64		saved = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	find_identity();

	while (!ShutdownRequestPending)
	{
		static uint32 wait_event = 0;
		long		timeout = until_next_save(last_us);

		if (timeout == 0)
		{
			uint64		now = statements_state();

			MemoryContextSwitchTo(context);
			if (now != saved)
				write_file(SAVE_FILE, false);
			MemoryContextReset(context);
			saved = now;
			last_us = clock_boot_us();
			continue;
		}
		WaitLatch(MyLatch,
				  WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
				  (timeout > 0 ? WL_TIMEOUT : 0),
				  timeout, compat_wait_event(&wait_event, "TachoSaverMain"));
		ResetLatch(MyLatch);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			if (!setting_save())
			{
				statements_save_forget();
				saved = 0;
			}
		}
		CHECK_FOR_INTERRUPTS();
	}
	/* not 0, so that a terminated saver is started again */
	proc_exit(1);
}
