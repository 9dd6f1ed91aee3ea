/*
 * catalog_worker.c
 *	  The worker that reads names, kinds and sizes of tables and indexes.
 *
 * The sampler has no connection to a database, and only a connection can read
 * pg_class. So the sampler starts this worker for one database at a time. The
 * worker answers a request (catalog_shared.h) and ends.
 *
 * Before 19, CREATE DATABASE ... TEMPLATE and DROP DATABASE wait at most 5 s
 * for other connections to end, and then fail. So the worker ends after
 * LONGEST_US at the latest. Between two relations it looks whether somebody
 * waits for a lock on the database, and then it ends at once.
 *
 * Locking: reads rows of system catalogs, which have lock_timeout as limit.
 * Takes no lock on a user's table or index: the size is the size of its files.
 * A relation that somebody holds in AccessExclusiveLock is read like others.
 *
 * An error ends only the reading. Memory: freed with the process.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_tablespace.h"
#include "common/relpath.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/clocks.h"
#include "core/compat.h"
#include "core/guarded.h"
#include "history/model.h"
#include "sampler/catalog_shared.h"
#include "sampler/catalog_worker.h"
#include "core/tacho.h"

#define CATALOG_WORKER_TYPE	"tacho catalog"
#define LONGEST_US			2000000
#define LOCK_TIMEOUT		"100ms"

static int64 end_us;			/* CLOCK_BOOTTIME when it leaves */
static uint32 request;

bool
catalog_worker_start(uint32 number)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION | COMPAT_WORKER_LEAVES;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = UInt32GetDatum(number);
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_name, CATALOG_WORKER_TYPE, BGW_MAXLEN);
	strlcpy(worker.bgw_type, CATALOG_WORKER_TYPE, BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, TACHO_PREFIX, BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "tacho_catalog_main", BGW_MAXLEN);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* True if the worker must end now. */
static bool
shall_leave(void)
{
	return ShutdownRequestPending || clock_boot_us() >= end_us ||
		!catalog_database_is_free(MyDatabaseId);
}

/* ---- size ---- */

static void
path_of(char *path, Oid tablespace, Oid file)
{
	if (tablespace == GLOBALTABLESPACE_OID)
		snprintf(path, MAXPGPATH, "global/%u", file);
	else if (tablespace == DEFAULTTABLESPACE_OID)
		snprintf(path, MAXPGPATH, "base/%u/%u", MyDatabaseId, file);
	else
		snprintf(path, MAXPGPATH, "pg_tblspc/%u/%s/%u/%u", tablespace,
				 TABLESPACE_VERSION_DIRECTORY, MyDatabaseId, file);
}

/*
 * The size of the files of a relation plus one, 0 if it is not known: somebody
 * has given the relation a new file, or the worker must leave.
 */
static uint64
size_of_files(const char *path)
{
	char		segment[MAXPGPATH + 16];
	uint64		bytes = 0;
	struct stat status;

	strlcpy(segment, path, sizeof(segment));
	for (uint32 number = 1; stat(segment, &status) == 0; number++)
	{
		bytes += status.st_size;
		if (shall_leave())
			return 0;
		snprintf(segment, sizeof(segment), "%s.%u", path, number);
	}
	return errno != ENOENT || strcmp(segment, path) == 0 ? 0 : bytes + 1;
}

static uint64
size_of(const FormData_pg_class *form)
{
	char		path[MAXPGPATH];
	Oid			tablespace = form->reltablespace;
	Oid			file = form->relfilenode;

	if (!RELKIND_HAS_STORAGE(form->relkind))
		return 1;
	if (!OidIsValid(file))
		file = compat_mapped_file(form->oid, form->relisshared);
	if (!OidIsValid(tablespace))
		tablespace = MyDatabaseTableSpace;
	path_of(path, tablespace, file);
	return size_of_files(path);
}

/* ---- rows ---- */

static RelationKind
kind_of_index(const FormData_pg_class *form, const FormData_pg_index *index)
{
	if (!index->indisvalid)
		return RELATION_INVALID_INDEX;
	if (form->relkind == RELKIND_PARTITIONED_INDEX)
		return RELATION_PARTITIONED_INDEX;
	if (index->indisprimary)
		return RELATION_PRIMARY_KEY;
	return index->indisunique ? RELATION_UNIQUE_INDEX : RELATION_INDEX;
}

static RelationKind
kind_of_table(const FormData_pg_class *form)
{
	switch (form->relkind)
	{
		case RELKIND_RELATION:
			return RELATION_TABLE;
		case RELKIND_PARTITIONED_TABLE:
			return RELATION_PARTITIONED_TABLE;
		case RELKIND_MATVIEW:
			return RELATION_MATERIALIZED_VIEW;
		case RELKIND_TOASTVALUE:
			return RELATION_TOAST_TABLE;
		case RELKIND_SEQUENCE:
			return RELATION_SEQUENCE;
		default:
			return RELATION_OTHER;
	}
}

/* An error leaves no half of a row: it counts when it is whole. */
static void
put_row(const FormData_pg_class *form, const FormData_pg_index *index)
{
	CatalogRow *row = &catalog_shared->rows[catalog_shared->row_count];
	char	   *schema = get_namespace_name(form->relnamespace);

	row->oid = form->oid;
	row->table = index ? index->indrelid : InvalidOid;
	row->kind = index ? kind_of_index(form, index) : kind_of_table(form);
	row->shared = form->relisshared;
	row->bytes = size_of(form);
	row->rows = form->reltuples < 0 ? 0 : (uint64) form->reltuples + 1;
	strlcpy(row->schema, schema ? schema : "", NAMEDATALEN);
	strlcpy(row->name, NameStr(form->relname), NAMEDATALEN);
	catalog_shared->row_count++;
}

/*
 * Adds a table, or an index with its row of pg_index. Returns false when the
 * answer is full or the worker must leave. A relation that was dropped has no
 * row.
 */
static bool
put_relation(Oid relation, const FormData_pg_index *index)
{
	HeapTuple	tuple;
	Form_pg_class form;

	if (catalog_shared->row_count == CATALOG_ROWS || shall_leave())
		return false;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relpersistence != RELPERSISTENCE_TEMP)
		put_row(form, index);
	ReleaseSysCache(tuple);
	return true;
}

static bool
put_indexes(Relation pg_index, Oid table)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		go_on = true;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (go_on && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		go_on = put_relation(index->indexrelid, index);
	}
	systable_endscan(scan);
	return go_on;
}

/* ---- the request ---- */

/* The table of an index, or the OID itself. */
static Oid
table_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(relation));
	Oid			table = relation;

	if (HeapTupleIsValid(tuple))
	{
		table = ((Form_pg_index) GETSTRUCT(tuple))->indrelid;
		ReleaseSysCache(tuple);
	}
	return table;
}

static int
compare_oids(const void *a, const void *b)
{
	Oid			left = *(const Oid *) a;
	Oid			right = *(const Oid *) b;

	return (left > right) - (left < right);
}

/* Reads tables with their indexes; false if there is no room or time for all. */
static bool
read_tables(Relation pg_index, Oid *tables, int count)
{
	bool		go_on = true;

	for (int i = 0; i < count; i++)
		tables[i] = table_of(tables[i]);
	qsort(tables, count, sizeof(Oid), compare_oids);
	for (int i = 0; go_on && i < count; i++)
		if (i == 0 || tables[i] != tables[i - 1])
			go_on = put_relation(tables[i], NULL) && put_indexes(pg_index, tables[i]);
	return go_on;
}

/* Reads the wanted tables first: there may be no room for the others. */
static void
read_catalog(void)
{
	Oid		   *asked = catalog_shared->asked;
	int			wanted = catalog_shared->wanted_count;
	int			others = catalog_shared->asked_count - wanted;
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);

	catalog_shared->whole = read_tables(pg_index, asked, wanted) &&
		read_tables(pg_index, asked + wanted, others);
	table_close(pg_index, AccessShareLock);
}

static void
answer(int code, Datum argument)
{
	(void) catalog_move(request, CATALOG_READING, CATALOG_ANSWERED);
}

void
tacho_catalog_main(Datum argument)
{
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	request = DatumGetUInt32(argument);
	if (!catalog_move(request, CATALOG_REQUESTED, CATALOG_READING))
		proc_exit(0);
	catalog_shared->row_count = 0;
	catalog_shared->whole = false;
	before_shmem_exit(answer, (Datum) 0);
	SetConfigOption("lock_timeout", LOCK_TIMEOUT, PGC_SUSET, PGC_S_OVERRIDE);
	compat_no_transaction_timeout();
	BackgroundWorkerInitializeConnectionByOid(catalog_shared->database, InvalidOid, 0);

	/* from here on the worker ends without a message in the server's log */
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	catalog_shared->encoding = GetDatabaseEncoding();
	end_us = clock_boot_us() + LONGEST_US;
	pgstat_report_activity(STATE_RUNNING, "reading names and sizes of tables and indexes");
	(void) guarded_run(read_catalog);
	proc_exit(0);
}
