/*
 * compat.h
 *	  Differences between the supported major versions of PostgreSQL.
 *
 * The only file that tests PG_VERSION_NUM. Included after postgres.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_COMPAT_H
#define TACHO_COMPAT_H

#include "access/transam.h"
#include "access/twophase.h"
#include "executor/execdesc.h"
#include "executor/instrument.h"
#include "libpq/pqcomm.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "parser/scanner.h"
#include "pgstat.h"
#include "replication/slot.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/pgstat_internal.h"
#include "utils/relmapper.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "optimizer/planner.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#include "varatt.h"
#else
#include "utils/queryjumble.h"
#endif

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "tacho supports PostgreSQL 15 to 19"
#endif

/*
 * Makes the C function `name` callable from SQL. The library hides all
 * symbols without this mark. The macro of 15 exports only the record of the
 * calling convention.
 */
#define COMPAT_SQL_FUNCTION(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name)

/*
 * Number of the custom wait event `name`, looked up once per process. *cache
 * is a static variable of the caller. 15 and 16 have only
 * Extension:Extension. The first call takes a lock and may raise an error.
 */
static inline uint32
compat_wait_event(uint32 *cache, const char *name)
{
	if (*cache == 0)
#if PG_VERSION_NUM >= 170000
		*cache = WaitEventExtensionNew(name);
#else
		*cache = PG_WAIT_EXTENSION;
#endif
	return *cache;
}

/*
 * The backend status array: number of its entries, index of this process, and
 * index of the process of a PGPROC. From 17 on the index is the proc number,
 * and compat_slot_proc() returns the PGPROC of an entry. Before 17
 * compat_slot_proc() returns NULL, and the caller searches by process id.
 */
#if PG_VERSION_NUM >= 170000
#define compat_status_slots()	(MaxBackends + NUM_AUXILIARY_PROCS)
#define compat_my_slot()		((int) MyProcNumber)
#define compat_proc_slot(proc)	((int) GetNumberFromPGProc(proc))
#define compat_slot_proc(slot)	GetPGProcByNumber(slot)
#else
#define compat_status_slots()	(MaxBackends + NUM_AUXPROCTYPES)
#define compat_my_slot()		(MyBackendId - 1)
#define compat_proc_slot(proc)	((proc)->backendId - 1)
#define compat_slot_proc(slot)	((PGPROC *) NULL)
#endif

/* The next transaction id: one 64-bit read, without XidGenLock. */
static inline uint64
compat_next_full_xid(void)
{
#if PG_VERSION_NUM >= 170000
	return ((volatile FullTransactionId *) &TransamVariables->nextXid)->value;
#else
	return ((volatile FullTransactionId *) &ShmemVariableCache->nextXid)->value;
#endif
}

/*
 * True if a process uses a replication slot, which may be volatile. The length
 * of the array of slots: 19 has slots for REPACK after the others.
 */
#if PG_VERSION_NUM >= 190000
#define compat_slot_is_active(slot)	((slot)->active_proc != INVALID_PROC_NUMBER)
#define compat_slots_total()	(max_replication_slots + max_repack_replication_slots)
#else
#define compat_slot_is_active(slot)	((slot)->active_pid != 0)
#define compat_slots_total()	max_replication_slots
#endif

/*
 * True if the server has given up a replication slot, which then keeps no WAL
 * and holds back no vacuum; `slot` may be volatile.
 */
#if PG_VERSION_NUM >= 160000
#define compat_slot_is_invalid(slot)	((slot)->data.invalidated != RS_INVAL_NONE)
#else
#define compat_slot_is_invalid(slot) \
	((slot)->data.invalidated_at != InvalidXLogRecPtr && \
	 (slot)->data.restart_lsn == InvalidXLogRecPtr)
#endif

/* The oldest transaction id in any database: one 32-bit read. */
static inline TransactionId
compat_oldest_xid(void)
{
#if PG_VERSION_NUM >= 170000
	return *(volatile TransactionId *) &TransamVariables->oldestXid;
#else
	return *(volatile TransactionId *) &ShmemVariableCache->oldestXid;
#endif
}

static inline int64
compat_plan_id(const volatile PgBackendStatus *entry)
{
#if PG_VERSION_NUM >= 180000
	return entry->st_plan_id;
#else
	return 0;
#endif
}

/* True if a plan has a place for an id; if pg_plan_advice knows its subplans. */
#define COMPAT_PLANS_HAVE_IDS	(PG_VERSION_NUM >= 180000)
#define COMPAT_PLANS_TAKE_ADVICE	(PG_VERSION_NUM >= 190000)

static inline int64
compat_planned_id(const PlannedStmt *stmt)
{
#if COMPAT_PLANS_HAVE_IDS
	return stmt->planId;
#else
	return 0;
#endif
}

/*
 * Sets the plan id of a statement, if no module has set one before. True if
 * the statement then has this id. False if it has another one, or if this
 * version of PostgreSQL has no plan ids.
 */
static inline bool
compat_take_plan_id(PlannedStmt *stmt, int64 id)
{
#if COMPAT_PLANS_HAVE_IDS
	if (stmt->planId == 0)
		stmt->planId = id;
	return stmt->planId == id;
#else
	return false;
#endif
}

/* All settings that this process knows, in the current memory context. */
static inline struct config_generic **
compat_settings(int *count)
{
#if PG_VERSION_NUM >= 160000
	return get_guc_variables(count);
#else
	*count = GetNumConfigOptions();
	return get_guc_variables();
#endif
}

/* The part of a setting that depends on its type: bool, int, real or enum. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_SETTING(setting, type) (&(setting)->_##type)
#else
#define COMPAT_SETTING(setting, type) \
	((const struct config_##type *) (setting))
#endif

/* State of a client that has not finished connecting; never true before 18. */
static inline bool
compat_state_starting(BackendState state)
{
#if PG_VERSION_NUM >= 180000
	return state == STATE_STARTING;
#else
	return false;
#endif
}

static inline bool
compat_is_slotsync_worker(BackendType type)
{
#if PG_VERSION_NUM >= 170000
	return type == B_SLOTSYNC_WORKER;
#else
	return false;
#endif
}

/* The name of a progress command in the catalog, NULL for none. */
static inline const char *
compat_progress_name(ProgressCommandType command)
{
	switch (command)
	{
		case PROGRESS_COMMAND_INVALID:
			return NULL;
		case PROGRESS_COMMAND_VACUUM:
			return "VACUUM";
		case PROGRESS_COMMAND_ANALYZE:
			return "ANALYZE";
#if PG_VERSION_NUM < 190000
		case PROGRESS_COMMAND_CLUSTER:
			return "CLUSTER";
#else
		case PROGRESS_COMMAND_REPACK:
			return "REPACK";
#endif
		case PROGRESS_COMMAND_CREATE_INDEX:
			return "CREATE INDEX";
		case PROGRESS_COMMAND_BASEBACKUP:
			return "BASE BACKUP";
		case PROGRESS_COMMAND_COPY:
			return "COPY";
		default:
			return "other";
	}
}

/* CLUSTER, which 19 calls REPACK, too; its table, NULL for all tables. */
#if PG_VERSION_NUM >= 190000
typedef RepackStmt CompatClusterStmt;
#define T_CompatClusterStmt	T_RepackStmt
#define compat_cluster_relation(s)	((s)->relation ? (s)->relation->relation : NULL)
#else
typedef ClusterStmt CompatClusterStmt;
#define T_CompatClusterStmt	T_ClusterStmt
#define compat_cluster_relation(s)	((s)->relation)
#endif

/* Transaction id of a lock holder if it is a prepared transaction, else 0. */
static inline TransactionId
compat_prepared_holder(const LockInstanceData *instance)
{
	VirtualTransactionId vxid;
	bool		have_more;

#if PG_VERSION_NUM >= 170000
	vxid = instance->vxid;
	if (vxid.procNumber == INVALID_PROC_NUMBER)
		return vxid.localTransactionId;
#else
	vxid.backendId = instance->backend;
	vxid.localTransactionId = instance->lxid;
	if (vxid.backendId == InvalidBackendId)
		return vxid.localTransactionId;
#endif
	if (!VirtualTransactionIdIsValid(vxid))
		return InvalidTransactionId;
	return TwoPhaseGetXidByVirtualXID(vxid, &have_more);
}

/*
 * The server's table of prepared transactions, which no header declares.
 * prepared.c says how it notices a difference.
 */
typedef struct CompatPrepared
{
	void	   *next;
	int			pgprocno;
#if PG_VERSION_NUM < 170000
	int			backend_id;
#endif
	TimestampTz prepared_at;
	XLogRecPtr	start_lsn;
	XLogRecPtr	end_lsn;
#if PG_VERSION_NUM >= 190000
	FullTransactionId xid;
#else
	TransactionId xid;
#endif
	Oid			owner;
	int			locked_by;
	bool		valid;
	bool		on_disk;
	bool		in_redo;
	char		gid[GIDSIZE];
} CompatPrepared;

typedef struct CompatPreparedTable
{
	void	   *free;
	int			count;
	CompatPrepared *entries[FLEXIBLE_ARRAY_MEMBER];
} CompatPreparedTable;

static inline TransactionId
compat_prepared_xid(const volatile CompatPrepared *entry)
{
#if PG_VERSION_NUM >= 190000
	return (TransactionId) entry->xid.value;
#else
	return entry->xid;
#endif
}

/*
 * Size of the whole table in bytes. Up to 18, 0 if the server computes another
 * size; 19 has no function that tells its size.
 */
static inline Size
compat_prepared_table_size(void)
{
	Size		size = offsetof(CompatPreparedTable, entries);

	size = MAXALIGN(size + sizeof(CompatPrepared *) * max_prepared_xacts);
	size += sizeof(CompatPrepared) * max_prepared_xacts;
#if PG_VERSION_NUM < 190000
	if (size != TwoPhaseShmemSize())
		return 0;
#endif
	return size;
}

/* True if log_min_messages lets errors through to emit_log_hook. */
static inline bool
compat_logs_errors(void)
{
#if PG_VERSION_NUM >= 190000
	int			least = log_min_messages[MyBackendType];
#else
	int			least = log_min_messages;
#endif

	return least <= ERROR && least != LOG;
}

/* The jumble state a post_parse_analyze hook gets. */
#if PG_VERSION_NUM >= 190000
typedef const JumbleState CompatJumble;
#else
typedef JumbleState CompatJumble;
#endif

/*
 * From 18 on a location may stand for a whole list of constants, with its
 * length set, or for a parameter of the client. A parameter's location counts
 * only if the query has such lists, because then all parameters get new
 * numbers.
 */
static inline bool
compat_location_is_list(const LocationLen *location)
{
#if PG_VERSION_NUM >= 180000
	return location->squashed;
#else
	return false;
#endif
}

static inline bool
compat_location_is_parameter(const LocationLen *location)
{
#if PG_VERSION_NUM >= 180000
	return location->extern_param;
#else
	return false;
#endif
}

static inline bool
compat_has_lists(CompatJumble *jumble)
{
#if PG_VERSION_NUM >= 180000
	return jumble->has_squashed_lists;
#else
	return false;
#endif
}

/*
 * True if a backslash in a plain string is an ordinary character; always from
 * 19 on.
 */
static inline bool
compat_standard_strings(void)
{
#if PG_VERSION_NUM >= 190000
	return true;
#else
	return standard_conforming_strings;
#endif
}

/* Makes a scanner that raises no warnings; from 19 on no scanner does. */
static inline void
compat_quiet_scanner(core_yy_extra_type *extra)
{
#if PG_VERSION_NUM < 190000
	extra->escape_string_warning = false;
#endif
}

/* ---- cumulative statistics; they take locks and may raise errors ---- */

typedef struct CompatCheckpoints
{
	int64		timed;			/* restartpoints included */
	int64		requested;
	int64		write_ms;
	int64		sync_ms;
	int64		buffers;
	TimestampTz reset;
} CompatCheckpoints;

static inline CompatCheckpoints
compat_checkpoints(void)
{
	const PgStat_CheckpointerStats *stats = pgstat_fetch_stat_checkpointer();

#if PG_VERSION_NUM >= 170000
	return (CompatCheckpoints)
	{
		.timed = stats->num_timed + stats->restartpoints_timed,
			.requested = stats->num_requested + stats->restartpoints_requested,
			.write_ms = stats->write_time, .sync_ms = stats->sync_time,
			.buffers = stats->buffers_written,
			.reset = stats->stat_reset_timestamp
	};
#else
	return (CompatCheckpoints)
	{
		.timed = stats->timed_checkpoints,
			.requested = stats->requested_checkpoints,
			.write_ms = stats->checkpoint_write_time,
			.sync_ms = stats->checkpoint_sync_time,
			.buffers = stats->buf_written_checkpoints,
			.reset = pgstat_fetch_stat_bgwriter()->stat_reset_timestamp
	};
#endif
}

/* Counters of the WAL, with the same names on all versions. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_WAL_COUNTERS(stats) (&(stats)->wal_counters)
#else
#define COMPAT_WAL_COUNTERS(stats) (stats)
#endif

/*
 * I/O by kind of process, object and context; 15 does not have it. From 18 on
 * bytes are counted; before, each operation is one block.
 */
#if PG_VERSION_NUM >= 160000
#define COMPAT_HAS_IO
#endif
#if PG_VERSION_NUM >= 180000
#define COMPAT_IO_BYTES(io, object, context, op) \
	((io)->bytes[object][context][op])
#else
#define COMPAT_IO_BYTES(io, object, context, op) \
	((io)->counts[object][context][op] * BLCKSZ)
#endif

/*
 * The key of a relation in the server's table of statistics, and its OID. All
 * majors have one kind of entry for tables and indexes.
 */
static inline PgStat_HashKey
compat_relation_key(Oid database, Oid relation)
{
	PgStat_HashKey key;

	memset(&key, 0, sizeof(key));	/* the server compares padding, too */
	key.kind = PGSTAT_KIND_RELATION;
	key.dboid = database;
#if PG_VERSION_NUM >= 180000
	key.objid = relation;
#else
	key.objoid = relation;
#endif
	return key;
}

static inline Oid
compat_relation_oid(const PgStat_HashKey *key)
{
#if PG_VERSION_NUM >= 180000
	return (Oid) key->objid;
#else
	return key->objoid;
#endif
}

/* A flag of workers that end when somebody wants their database; 19 has it. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_WORKER_LEAVES	BGWORKER_INTERRUPTIBLE
#else
#define COMPAT_WORKER_LEAVES	0
#endif

/*
 * Ends no transaction of this background worker by its length; 17 has the
 * setting, which ends the process with a FATAL error.
 */
static inline void
compat_no_transaction_timeout(void)
{
#if PG_VERSION_NUM >= 170000
	SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#endif
}

/* The file of a catalog whose row of pg_class has none. */
static inline Oid
compat_mapped_file(Oid relation, bool shared)
{
#if PG_VERSION_NUM >= 160000
	return RelationMapOidToFilenumber(relation, shared);
#else
	return RelationMapOidToFilenode(relation, shared);
#endif
}

/* Names that 16 gave to statistics of relations. */
#if PG_VERSION_NUM >= 160000
#define COMPAT_LIVE_TUPLES			live_tuples
#define COMPAT_DEAD_TUPLES			dead_tuples
#define COMPAT_MOD_SINCE_ANALYZE	mod_since_analyze
#define COMPAT_INS_SINCE_VACUUM		ins_since_vacuum
#define COMPAT_LAST_VACUUM			last_vacuum_time
#define COMPAT_LAST_AUTOVACUUM		last_autovacuum_time
#define COMPAT_LAST_ANALYZE			last_analyze_time
#define COMPAT_LAST_AUTOANALYZE		last_autoanalyze_time
#define COMPAT_AUTOVACUUM_COUNT		autovacuum_count
#define COMPAT_AUTOANALYZE_COUNT	autoanalyze_count
#else
#define COMPAT_LIVE_TUPLES			n_live_tuples
#define COMPAT_DEAD_TUPLES			n_dead_tuples
#define COMPAT_MOD_SINCE_ANALYZE	changes_since_analyze
#define COMPAT_INS_SINCE_VACUUM		inserts_since_vacuum
#define COMPAT_LAST_VACUUM			vacuum_timestamp
#define COMPAT_LAST_AUTOVACUUM		autovac_vacuum_timestamp
#define COMPAT_LAST_ANALYZE			analyze_timestamp
#define COMPAT_LAST_AUTOANALYZE		autovac_analyze_timestamp
#define COMPAT_AUTOVACUUM_COUNT		autovac_vacuum_count
#define COMPAT_AUTOANALYZE_COUNT	autovac_analyze_count
#endif

/* Statistics of relations that came with 16; false and 0 on 15. */
#define COMPAT_COUNTS_NEW_PAGES (PG_VERSION_NUM >= 160000)

static inline int64
compat_newpage_updated(const PgStat_StatTabEntry *stats)
{
#if COMPAT_COUNTS_NEW_PAGES
	return stats->tuples_newpage_updated;
#else
	return 0;
#endif
}

static inline TimestampTz
compat_last_scan(const PgStat_StatTabEntry *stats)
{
#if PG_VERSION_NUM >= 160000
	return stats->lastscan;
#else
	return 0;
#endif
}

/* ---- statistics of statements ---- */

#define COMPAT_MAJOR (PG_VERSION_NUM / 10000)

/* planner_hook: 19 passes the state of EXPLAIN. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, ExplainState *es
#define COMPAT_PLANNER_ARGS \
	parse, query_string, cursorOptions, boundParams, es
#else
#define COMPAT_PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams
#define COMPAT_PLANNER_ARGS \
	parse, query_string, cursorOptions, boundParams
#endif

/* ExecutorRun_hook: 18 dropped execute_once. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_RUN_PARAMS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define COMPAT_RUN_ARGS queryDesc, direction, count
#else
#define COMPAT_RUN_PARAMS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count, \
	bool execute_once
#define COMPAT_RUN_ARGS queryDesc, direction, count, execute_once
#endif

/*
 * Nesting levels, as pg_stat_statements of this major counts them. Up to 16,
 * planning has a level of its own, which counts only while planning is
 * tracked. Utility commands nest only while they are tracked, and DEALLOCATE
 * is not tracked.
 */
#if PG_VERSION_NUM >= 170000
#define COMPAT_ONE_NESTING_LEVEL true
#define COMPAT_TRACKS_DEALLOCATE true
#else
#define COMPAT_ONE_NESTING_LEVEL false
#define COMPAT_TRACKS_DEALLOCATE false
#endif

/*
 * The library name of a function, as the server searches for it. 18 and later
 * search dynamic_library_path for "$libdir/name", too.
 */
static inline const char *
compat_library_of_function(const char *name)
{
#if PG_VERSION_NUM >= 180000
	if (strncmp(name, "$libdir/", 8) == 0 && strchr(name + 8, '/') == NULL)
		return name + 8;
#endif
	return name;
}

/*
 * Memory for the value that a check hook passes to the assign hook; NULL if
 * memory is short.
 */
static inline void *
compat_guc_malloc(Size size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

/* The proc number of this backend, which spreads backends over stripes. */
static inline int
compat_proc_number(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyProc->pgprocno;
#endif
}

/* Rows of an execution; on 15 only the rows of the last fetch. */
static inline uint64
compat_rows(const EState *estate)
{
#if PG_VERSION_NUM >= 160000
	return estate->es_total_processed;
#else
	return estate->es_processed;
#endif
}

/*
 * Numbers of parallel workers that an execution wanted to launch, and that it
 * launched. Before 18 both are 0.
 */
#if PG_VERSION_NUM >= 180000
#define compat_workers_to_launch(estate)	((estate)->es_parallel_workers_to_launch)
#define compat_workers_launched(estate)	((estate)->es_parallel_workers_launched)
#else
#define compat_workers_to_launch(estate)	0
#define compat_workers_launched(estate)	0
#endif

/*
 * True if the plan cache made this plan as a generic plan, or as a custom
 * plan. False before 19, where plans do not say so.
 */
#if PG_VERSION_NUM >= 190000
#define compat_plan_is_generic(plan)	((plan)->planOrigin == PLAN_STMT_CACHE_GENERIC)
#define compat_plan_is_custom(plan)	((plan)->planOrigin == PLAN_STMT_CACHE_CUSTOM)
#else
#define compat_plan_is_generic(plan)	false
#define compat_plan_is_custom(plan)	false
#endif

/* The join types that came after 15; -1 if this major lacks them. */
#if PG_VERSION_NUM >= 160000
#define COMPAT_JOIN_RIGHT_ANTI	((int) JOIN_RIGHT_ANTI)
#else
#define COMPAT_JOIN_RIGHT_ANTI	(-1)
#endif
#if PG_VERSION_NUM >= 180000
#define COMPAT_JOIN_RIGHT_SEMI	((int) JOIN_RIGHT_SEMI)
#else
#define COMPAT_JOIN_RIGHT_SEMI	(-1)
#endif

/* The word that EXPLAIN of 19 prints before the name of a subplan. */
static inline const char *
compat_subplan_word(const SubPlan *use)
{
#if PG_VERSION_NUM >= 190000
	return use->subLinkType == CTE_SUBLINK ? "CTE " : use->isInitPlan ? "InitPlan " : "SubPlan ";
#else
	return "";
#endif
}

/* Number of relations of a range table, without the keys of GROUP BY (18). */
static inline int
compat_relations(const List *table)
{
	int			count = list_length(table);
#if PG_VERSION_NUM >= 180000
	ListCell   *cell;

	foreach(cell, table)
		if (((const RangeTblEntry *) lfirst(cell))->rtekind == RTE_GROUP)
			return count - 1;
#endif
	return count;
}

/* Times of blocks. Before 17 one counter has shared and local blocks. */
#if PG_VERSION_NUM >= 170000
#define COMPAT_SHARED_READ_TIME(usage) ((usage)->shared_blk_read_time)
#define COMPAT_SHARED_WRITE_TIME(usage) ((usage)->shared_blk_write_time)
#else
#define COMPAT_SHARED_READ_TIME(usage) ((usage)->blk_read_time)
#define COMPAT_SHARED_WRITE_TIME(usage) ((usage)->blk_write_time)
#endif

static inline double
compat_local_read_time(const BufferUsage *usage)
{
#if PG_VERSION_NUM >= 170000
	return INSTR_TIME_GET_MILLISEC(usage->local_blk_read_time);
#else
	return 0;
#endif
}

static inline double
compat_local_write_time(const BufferUsage *usage)
{
#if PG_VERSION_NUM >= 170000
	return INSTR_TIME_GET_MILLISEC(usage->local_blk_write_time);
#else
	return 0;
#endif
}

static inline int64
compat_wal_buffers_full(const WalUsage *usage)
{
#if PG_VERSION_NUM >= 180000
	return usage->wal_buffers_full;
#else
	return 0;
#endif
}

/* JIT deforming time, ms: known since 17. */
#if PG_VERSION_NUM >= 170000
#define COMPAT_JIT_DEFORM_TIME(jit)	INSTR_TIME_GET_MILLISEC((jit)->deform_counter)
#else
#define COMPAT_JIT_DEFORM_TIME(jit) 0.0
#endif

#endif							/* TACHO_COMPAT_H */
