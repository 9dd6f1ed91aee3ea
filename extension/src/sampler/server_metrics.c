/*
 * server_metrics.c
 *	  Measurements of the server as a whole.
 *
 * Cumulative statistics and the list of databases are read in a transaction
 * of its own (guarded.c). Its locks are conditional, or held for one copy. A
 * reading that may raise an error belongs to read_statistics(): all others run
 * outside of that transaction.
 *
 * The counters of all tables at one time have one interval, so they have the same
 * reading before. If the statistics cannot be read once, no counter is recorded:
 * the next reading has the increase and the interval of both. If they cannot be
 * read again, they are forgotten, and the counters of the host go on without them.
 *
 * Locking: replicas and slots are read without their spinlocks, in single
 * reads of at most 64 bits. A replica or slot that goes away at the same time
 * may be named once more.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_database.h"
#include "replication/slot.h"
#include "replication/walreceiver.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "core/clocks.h"
#include "core/guarded.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "history/disks.h"
#include "sampler/given_names.h"
#include "sampler/measures.h"
#include "sampler/recorder.h"
#include "sampler/server_io.h"
#include "sampler/server_metrics.h"

#define MAX_DATABASES	1000
/* A group of counters that the server resets together. */
typedef struct Source
{
	const char *what;
	TimestampTz reset;
	bool		known;			/* was read before */
} Source;

/* The counters of a database: this reading and the one before. */
typedef struct Database
{
	Oid			oid;			/* key; InvalidOid: shared objects */
	int64		seen;			/* number of the last reading with it */
	bool		present;		/* has statistics */
	char		name[NAMEDATALEN];
	TimestampTz reset;
	Values		now;
	Values		before;
} Database;

static HTAB *databases;
static int64 readings = 0;
/* CLOCK_BOOTTIME of the last reading whose counters were recorded */
static int64 read_us = 0;
static bool statistics_known = false;	/* the last reading has them */
static int64 next_us = 0;
static int	left_out;
static bool listed;				/* this reading has the statistics, the databases last */
static bool listed_before = false;	/* that reading saw all databases */
static XLogRecPtr position;		/* in the WAL; others are compared with it */

static Values server_now;
static Values server_before;
static Source checkpointer = {"checkpoints"};
static Source archiver = {"the archiver"};
static Source wal = {"write-ahead log"};

/* counters of a database, and the functions behind pg_stat_database */
static const struct
{
	int			column;
	PGFunction	function;
	bool		is_ms;			/* returns a double */
}			database_columns[] = {
	{COL_server_database_xact_commit, pg_stat_get_db_xact_commit},
	{COL_server_database_xact_rollback, pg_stat_get_db_xact_rollback},
	{COL_server_database_blks_hit, pg_stat_get_db_blocks_hit},
	{COL_server_database_blk_read_time, pg_stat_get_db_blk_read_time, true},
	{COL_server_database_blk_write_time, pg_stat_get_db_blk_write_time, true},
	{COL_server_database_tup_returned, pg_stat_get_db_tuples_returned},
	{COL_server_database_tup_fetched, pg_stat_get_db_tuples_fetched},
	{COL_server_database_tup_inserted, pg_stat_get_db_tuples_inserted},
	{COL_server_database_tup_updated, pg_stat_get_db_tuples_updated},
	{COL_server_database_tup_deleted, pg_stat_get_db_tuples_deleted},
	{COL_server_database_temp_files, pg_stat_get_db_temp_files},
	{COL_server_database_temp_bytes, pg_stat_get_db_temp_bytes},
	{COL_server_database_deadlocks, pg_stat_get_db_deadlocks},
	{COL_server_database_conflicts, pg_stat_get_db_conflict_all},
	{COL_server_database_sessions, pg_stat_get_db_sessions},
	{COL_server_database_sessions_abandoned, pg_stat_get_db_sessions_abandoned},
	{COL_server_database_sessions_fatal, pg_stat_get_db_sessions_fatal},
	{COL_server_database_sessions_killed, pg_stat_get_db_sessions_killed},
};

void
server_init(void)
{
	HASHCTL		info = {0};

	info.keysize = sizeof(Oid);
	info.entrysize = sizeof(Database);
	info.hcxt = CurrentMemoryContext;
	databases = hash_create("tacho server databases", 64, &info,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	measures_init();
	server_io_init();
	forget(server_before);
	/* copy single entries of the statistics, never all of them */
	SetConfigOption("stats_fetch_consistency", "cache", PGC_SUSET,
					PGC_S_OVERRIDE);
}

bool
server_is_due(int64 boot_us)
{
	return tacho_server_interval > 0 && boot_us >= next_us;
}

/* ---- reading ---- */

static void
read_host(void)
{
	Host		host;

	host_read("", &host);
#define HOST(name) server_now[COL_server_##name] = host.name
	HOST(load_1);
	HOST(load_5);
	HOST(load_15);
	HOST(tasks_runnable);
	HOST(cpu_user);
	HOST(cpu_system);
	HOST(cpu_iowait);
	HOST(cpu_idle);
	HOST(cpu_steal);
	HOST(cpu_throttled);
	HOST(memory_total);
	HOST(memory_available);
	HOST(swap_used);
	HOST(pressure_cpu_some);
	HOST(pressure_memory_some);
	HOST(pressure_memory_full);
	HOST(pressure_io_some);
	HOST(pressure_io_full);
#undef HOST
	if (meta_vcpus_x100() > 0)
		server_now[COL_server_vcpus] = meta_vcpus_x100();
}

/*
 * On a standby the position in the WAL is the replay position, and received
 * WAL that waits for replay is counted.
 */
static void
read_log(void)
{
	XLogRecPtr	received;
	TimestampTz replayed;		/* time of the last commit; 0: none yet */

	if (!RecoveryInProgress())
	{
		position = GetXLogWriteRecPtr();
		server_now[COL_server_wal_bytes] = GetXLogInsertRecPtr();
		return;
	}
	position = GetXLogReplayRecPtr(NULL);
	received = GetWalRcvFlushRecPtr(NULL, NULL);
	server_now[COL_server_wal_bytes] = position;
	if (received == InvalidXLogRecPtr)
		return;
	server_now[COL_server_recovery_lag_bytes] =
		received > position ? received - position : 0;
	replayed = GetLatestXTime();
	if (received <= position)
		server_now[COL_server_recovery_lag] = 0;
	else if (replayed != 0)
		server_now[COL_server_recovery_lag] =
			Max(0, (GetCurrentTimestamp() - replayed) / 1000);
}

static void
read_logins(void)
{
	server_now[COL_server_logins_failed] =
		pg_atomic_read_u64(&tacho_shared->logins_failed);
	server_now[COL_server_logins_refused] =
		pg_atomic_read_u64(&tacho_shared->logins_refused);
}

static void
read_transactions(void)
{
	uint64		next = compat_next_full_xid();

	server_now[COL_server_transaction_ids] = next;
	server_now[COL_server_oldest_xid_age] =
		(int32) ((TransactionId) next - compat_oldest_xid());
}

/*
 * If the server has reset the counters of a source, sets the previous reading
 * of these columns to 0 and puts a marker: the new counters have counted
 * everything since the reset. A counter that is added to the source later has
 * an id after `last`: set its server_before to 0 here, too.
 */
static void
watch_reset(Source *source, TimestampTz reset, int first, int last)
{
	bool		was_reset = source->known && reset != source->reset;

	source->known = true;
	source->reset = reset;
	if (!was_reset)
		return;
	for (int column = first; column <= last; column++)
		server_before[column] = 0;
	mark_reset(source->what, reset);
}

static void
read_cluster(void)
{
	CompatCheckpoints checkpoints = compat_checkpoints();
	const PgStat_ArchiverStats *archived = pgstat_fetch_stat_archiver();
	const PgStat_WalStats *logged = pgstat_fetch_stat_wal();

	server_now[COL_server_checkpoints_timed] = checkpoints.timed;
	server_now[COL_server_checkpoints_requested] = checkpoints.requested;
	server_now[COL_server_checkpoint_write_time] = checkpoints.write_ms;
	server_now[COL_server_checkpoint_sync_time] = checkpoints.sync_ms;
	server_now[COL_server_checkpoint_buffers] = checkpoints.buffers;
	watch_reset(&checkpointer, checkpoints.reset,
				COL_server_checkpoints_timed, COL_server_checkpoint_buffers);
	server_now[COL_server_wal_archived] = archived->archived_count;
	server_now[COL_server_wal_archive_failed] = archived->failed_count;
	watch_reset(&archiver, archived->stat_reset_timestamp,
				COL_server_wal_archived, COL_server_wal_archive_failed);
	server_now[COL_server_wal_records] = COMPAT_WAL_COUNTERS(logged)->wal_records;
	server_now[COL_server_wal_fpi] = COMPAT_WAL_COUNTERS(logged)->wal_fpi;
	server_now[COL_server_wal_buffers_full] =
		COMPAT_WAL_COUNTERS(logged)->wal_buffers_full;
	watch_reset(&wal, logged->stat_reset_timestamp,
				COL_server_wal_records, COL_server_wal_buffers_full);
}

/* The value of a function of pg_stat_database; 0 if it is null. */
static Datum
call(PGFunction function, Oid oid)
{
	LOCAL_FCINFO(fcinfo, 1);
	Datum		result;

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = ObjectIdGetDatum(oid);
	fcinfo->args[0].isnull = false;
	result = function(fcinfo);
	return fcinfo->isnull ? (Datum) 0 : result;
}

static int64
read_counter(int i, Oid oid)
{
	Datum		value = call(database_columns[i].function, oid);

	return database_columns[i].is_ms ?
		(int64) (DatumGetFloat8(value) * 1000) : DatumGetInt64(value);
}

/*
 * A reset of one table's counters sets the reset time of its database, too,
 * and leaves the counters of the database.
 */
static bool
has_fallen(const Database *database)
{
	for (int column = 0; column < MEASURE_COLUMNS; column++)
		if (database->before[column] != NOT_KNOWN &&
			database->now[column] != NOT_KNOWN &&
			database->now[column] < database->before[column])
			return true;
	return false;
}

static void
mark_database_reset(Database *database, TimestampTz reset)
{
	char		what[NAMEDATALEN + 12];

	begin_counting(database->before, true);
	snprintf(what, sizeof(what), database->oid == InvalidOid ?
			 "shared objects" : "database \"%s\"", database->name);
	mark_reset(what, reset);
}

static void
read_database(Oid oid, const char *name)
{
	bool		found;
	Database   *database = hash_search(databases, &oid, HASH_FIND, NULL);
	TimestampTz reset;
	bool		fresh;

	if (database == NULL && hash_get_num_entries(databases) >= MAX_DATABASES)
	{
		left_out++;
		return;
	}
	database = hash_search(databases, &oid, HASH_ENTER, &found);
	fresh = !found || !database->present;
	database->seen = readings;
	strlcpy(database->name, name, NAMEDATALEN);
	database->present = pgstat_fetch_stat_dbentry(oid) != NULL;
	if (!database->present)
		return;
	forget(database->now);
	if (fresh)
		/* a database that was not there at a complete last reading is new */
		begin_counting(database->before, listed_before);
	for (int i = 0; i < lengthof(database_columns); i++)
		database->now[database_columns[i].column] = read_counter(i, oid);
	/* blocks read = blocks fetched - blocks hit */
	database->now[COL_server_database_blks_read] =
		DatumGetInt64(call(pg_stat_get_db_blocks_fetched, oid)) -
		database->now[COL_server_database_blks_hit];
	reset = DatumGetInt64(call(pg_stat_get_db_stat_reset_time, oid));
	if (!fresh && reset != database->reset && has_fallen(database))
		mark_database_reset(database, reset);
	database->reset = reset;
}

static void
read_databases(void)
{
	Relation	relation;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock))
		return;
	relation = table_open(DatabaseRelationId, NoLock);
	scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		read_database(form->oid, NameStr(form->datname));
	}
	systable_endscan(scan);
	table_close(relation, NoLock);
	read_database(InvalidOid, "");
	listed = true;
}

static void
read_statistics(void)
{
	pgstat_clear_snapshot();
	read_cluster();
	server_io_read();
	read_databases();
}

/* ---- recording ---- */

/* Adds rows of databases, and forgets databases that are gone. */
static void
put_databases(UnixMs now)
{
	HASH_SEQ_STATUS scan;
	Database   *database;

	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
	{
		Section    *section;
		int			row;

		if (database->seen != readings)
			(void) hash_search(databases, &database->oid, HASH_REMOVE, NULL);
		else if (database->present &&
				 !has_counted(TABLE_server_database, database->now,
							  database->before))
			memcpy(database->before, database->now, sizeof(Values));
		else if (database->present)
		{
			section = add_row(TABLE_server_database, now, &row);
			section_set(section, row, COL_server_database_object,
						object_name(database->name));
			set_measures(section, row, database->now, database->before);
		}
	}
}

/* The application name of a replica's process. */
static uint64
replica_name(const SessionScan *scan, int pid)
{
	for (int i = 0; i < scan->row_count; i++)
	{
		const SessionRow *row = &scan->rows[i];

		if (scan->identities[row->slot].pid == pid)
			return given_name_id(row->user, row->application);
	}
	return 0;
}

static int64
bytes_behind(XLogRecPtr reached)
{
	if (reached == InvalidXLogRecPtr)
		return NOT_KNOWN;
	return reached < position ? position - reached : 0;
}

static void
put_replicas(const SessionScan *scan, UnixMs now)
{
	for (int i = 0; WalSndCtl != NULL && i < max_wal_senders; i++)
	{
		volatile WalSnd *sender = &WalSndCtl->walsnds[i];
		int			pid = sender->pid;
		Values		values;
		Section    *section;
		int			row;

		if (pid == 0 || sender->state < WALSNDSTATE_CATCHUP)
			continue;
		forget(values);
		values[COL_server_replica_replica_sent_lag] = bytes_behind(sender->sentPtr);
		values[COL_server_replica_replica_write_lag] = bytes_behind(sender->write);
		values[COL_server_replica_replica_flush_lag] = bytes_behind(sender->flush);
		values[COL_server_replica_replica_replay_lag] = bytes_behind(sender->apply);
		values[COL_server_replica_replica_replay_delay] =
			sender->applyLag < 0 ? NOT_KNOWN : sender->applyLag;
		section = add_row(TABLE_server_replica, now, &row);
		section_set(section, row, COL_server_replica_object,
					replica_name(scan, pid));
		set_measures(section, row, values, NULL);
	}
}

static int64
xmin_age(TransactionId xmin, TransactionId catalog_xmin)
{
	TransactionId next = (TransactionId) compat_next_full_xid();
	int64		age = NOT_KNOWN;

	if (TransactionIdIsNormal(xmin))
		age = (int32) (next - xmin);
	if (TransactionIdIsNormal(catalog_xmin))
		age = Max(age, (int32) (next - catalog_xmin));
	return age;
}

static void
put_slots(UnixMs now)
{
	for (int i = 0; ReplicationSlotCtl != NULL && i < compat_slots_total(); i++)
	{
		volatile ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		char		name[NAMEDATALEN];
		Values		values;
		Section    *section;
		int			row;

		if (!slot->in_use)
			continue;
		forget(values);
		strlcpy(name, (const char *) NameStr(slot->data.name), NAMEDATALEN);
		values[COL_server_slot_slot_active] = compat_slot_is_active(slot);
		if (!compat_slot_is_invalid(slot))
		{
			values[COL_server_slot_slot_retained] =
				bytes_behind(slot->data.restart_lsn);
			values[COL_server_slot_slot_xmin_age] =
				xmin_age(slot->effective_xmin, slot->effective_catalog_xmin);
		}
		section = add_row(TABLE_server_slot, now, &row);
		section_set(section, row, COL_server_slot_object, object_name(name));
		set_measures(section, row, values, NULL);
	}
}

static void
put_disks(UnixMs now)
{
	int			count;
	const Disk *disks = disks_read(&count);

	for (int i = 0; i < count; i++)
	{
		int			row;
		Section    *section = add_row(TABLE_server_disk, now, &row);
		Values		values;

		forget(values);
		values[COL_server_disk_disk_free] = disks[i].free;
		values[COL_server_disk_disk_size] = disks[i].size;
		section_set(section, row, COL_server_disk_object,
					object_name(disks[i].name));
		set_measures(section, row, values, NULL);
	}
	disks_forget();
}

/* The counters of the statistics begin again: their last reading is too old. */
static void
forget_statistics(void)
{
	HASH_SEQ_STATUS scan;
	Database   *database;

	for (int column = COL_server_wal_records; column <= COL_server_checkpoint_buffers; column++)
		server_before[column] = NOT_KNOWN;
	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
		(void) hash_search(databases, &database->oid, HASH_REMOVE, NULL);
	server_io_forget();
	listed_before = false;
}

/* Adds the row of a reading whose counters wait for the next one. */
static void
put_gauges(UnixMs now)
{
	Values		none;
	int			row;
	Section    *section = add_row(TABLE_server, now, &row);

	forget(none);
	set_measures(section, row, server_now, none);
}

/* Adds the rows of the server, its databases and its I/O. */
static void
put_server(UnixMs now, int64 boot_us)
{
	int			row;
	Section    *section;

	if (listed)
		put_databases(now);
	else
		forget_statistics();
	listed_before = listed && left_out == 0;
	server_now[COL_server_databases_left_out] = left_out;
	section = add_row(TABLE_server, now, &row);
	section_set(section, row, COL_server_elapsed_ms,
				read_us == 0 ? 0 : (boot_us - read_us) / 1000);
	set_measures(section, row, server_now, server_before);
	server_io_put(now);
	read_us = boot_us;
}

static void
plan_next(int64 boot_us)
{
	int64		interval_us = (int64) tacho_server_interval * 1000;

	next_us += interval_us;
	if (next_us <= boot_us || next_us > boot_us + interval_us)
		next_us = boot_us + interval_us;
}

void
server_measure(const SessionScan *scan, int64 wall_us, int64 boot_us,
			   TachoStatus *status)
{
	int64		cpu_before = clock_cpu_us();
	UnixMs		now = wall_us / 1000;

	plan_next(boot_us);
	readings++;
	left_out = 0;
	listed = false;
	(void) recorder_frame(now);
	forget(server_now);
	read_host();
	read_log();
	read_transactions();
	read_logins();
	if (!guarded_run(read_statistics))
		status->server_failed++;
	if (statistics_known && !listed)
		put_gauges(now);
	else
		put_server(now, boot_us);
	statistics_known = listed;
	put_replicas(scan, now);
	put_slots(now);
	put_disks(now);
	status->server_readings++;
	status->server_cpu_us += clock_cpu_us() - cpu_before;
}
