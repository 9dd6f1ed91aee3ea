/*
 * statements_dropin.c
 *	  The functions of pg_stat_statements, over the statistics of tacho.
 *
 * SQL names and columns are the same as in contrib's versions 1.0 to 1.13.
 * The number of columns shows which version the caller expects. The library
 * exports contrib's symbols, so contrib's SQL scripts work with it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "core/compat.h"
#include "statements/statements.h"
#include "statements/statements_sql.h"

#define LIBRARY "pg_stat_statements"

COMPAT_SQL_FUNCTION(pg_stat_statements);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_2);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_3);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_8);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_9);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_10);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_11);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_12);
COMPAT_SQL_FUNCTION(pg_stat_statements_1_13);
COMPAT_SQL_FUNCTION(pg_stat_statements_info);
COMPAT_SQL_FUNCTION(pg_stat_statements_reset);
COMPAT_SQL_FUNCTION(pg_stat_statements_reset_1_7);
COMPAT_SQL_FUNCTION(pg_stat_statements_reset_1_11);

typedef enum
{
	COUNTER_COLUMN, USERID, DBID, TOPLEVEL, QUERYID, QUERY, STATS_SINCE,
	MINMAX_STATS_SINCE, WAL_BYTES
} ColumnKind;

typedef struct Column
{
	int			since;			/* first version with it: 100 is 1.0 */
	const char *name;			/* name in the catalog of counters */
	ColumnKind	kind;
} Column;

/* in the order of output */
static const Column columns[] = {
	{100, NULL, USERID},
	{100, NULL, DBID},
	{109, NULL, TOPLEVEL},
	{102, NULL, QUERYID},
	{100, NULL, QUERY},
	{108, "plans"},
	{108, "total_plan_time"},
	{108, "min_plan_time"},
	{108, "max_plan_time"},
	{108, "mean_plan_time"},
	{108, "stddev_plan_time"},
	{100, "calls"},
	{100, "total_exec_time"},
	{103, "min_exec_time"},
	{103, "max_exec_time"},
	{103, "mean_exec_time"},
	{103, "stddev_exec_time"},
	{100, "rows"},
	{100, "shared_blks_hit"},
	{100, "shared_blks_read"},
	{101, "shared_blks_dirtied"},
	{100, "shared_blks_written"},
	{100, "local_blks_hit"},
	{100, "local_blks_read"},
	{101, "local_blks_dirtied"},
	{100, "local_blks_written"},
	{100, "temp_blks_read"},
	{100, "temp_blks_written"},
	{101, "shared_blk_read_time"},
	{101, "shared_blk_write_time"},
	{111, "local_blk_read_time"},
	{111, "local_blk_write_time"},
	{110, "temp_blk_read_time"},
	{110, "temp_blk_write_time"},
	{108, "wal_records"},
	{108, "wal_fpi"},
	{108, NULL, WAL_BYTES},
	{112, "wal_buffers_full"},
	{110, "jit_functions"},
	{110, "jit_generation_time"},
	{110, "jit_inlining_count"},
	{110, "jit_inlining_time"},
	{110, "jit_optimization_count"},
	{110, "jit_optimization_time"},
	{110, "jit_emission_count"},
	{110, "jit_emission_time"},
	{111, "jit_deform_count"},
	{111, "jit_deform_time"},
	{112, "parallel_workers_to_launch"},
	{112, "parallel_workers_launched"},
	{113, "generic_plan_calls"},
	{113, "custom_plan_calls"},
	{111, NULL, STATS_SINCE},
	{111, NULL, MINMAX_STATS_SINCE},
};

static const int versions[] = {100, 101, 102, 103, 108, 109, 110, 111, 112, 113};

static int
columns_of(int version)
{
	int			n = 0;

	for (int i = 0; i < lengthof(columns); i++)
		n += columns[i].since <= version;
	return n;
}

/* The version whose result has `natts` columns. */
static int
version_of(int natts)
{
	for (int i = 0; i < lengthof(versions); i++)
		if (columns_of(versions[i]) == natts)
			return versions[i];
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			 errmsg("no version of pg_stat_statements has %d columns", natts)));
}

/* contrib's wal_bytes is numeric. */
static Datum
int64_numeric(int64 value)
{
	return NumericGetDatum(int64_to_numeric(value));
}

static Datum
query_datum(const StatementCopy *copy, bool allowed, bool showtext,
			bool *isnull)
{
	if (allowed)
		return statements_text_datum(copy, isnull);
	*isnull = !showtext;
	return CStringGetTextDatum("<insufficient privilege>");
}

static Datum
column_datum(const StatementCopy *copy, ColumnKind kind,
			 const CounterColumn *counter, bool showtext, bool *isnull)
{
	*isnull = false;
	switch (kind)
	{
		case USERID:
			return ObjectIdGetDatum(copy->key.user_id);
		case DBID:
			return ObjectIdGetDatum(copy->key.database_id);
		case TOPLEVEL:
			return BoolGetDatum(copy->key.toplevel);
		case QUERYID:
			*isnull = !statements_may_see(copy->key.user_id);
			return Int64GetDatum((int64) copy->key.query_id);
		case QUERY:
			return query_datum(copy, statements_may_see(copy->key.user_id),
							   showtext, isnull);
		case STATS_SINCE:
			return TimestampTzGetDatum(copy->stats_since);
		case MINMAX_STATS_SINCE:
			return TimestampTzGetDatum(copy->minmax_stats_since);
		case WAL_BYTES:
			return int64_numeric(copy->counters.wal_bytes);
		case COUNTER_COLUMN:
			break;
	}
	return counters_column_datum(&copy->counters, counter);
}

static void
row_to_datums(const StatementCopy *copy, const CounterColumn *counters,
			  int version, bool showtext, Datum *values, bool *nulls)
{
	int			n = 0;

	for (int i = 0; i < lengthof(columns); i++)
	{
		if (version < columns[i].since)
			continue;
		values[n] = column_datum(copy, columns[i].kind, &counters[i], showtext,
								 &nulls[n]);
		n++;
	}
}

static void
find_counters(CounterColumn *counters)
{
	for (int i = 0; i < lengthof(columns); i++)
		if (columns[i].kind == COUNTER_COLUMN &&
			!counters_column(columns[i].name, &counters[i]))
			elog(ERROR, "counter \"%s\" is not in the catalog", columns[i].name);
}

static Datum
rows(FunctionCallInfo fcinfo, bool showtext)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	StatementReader reader = {.with_text = showtext};
	StatementCopy copy;
	CounterColumn counters[lengthof(columns)];
	Datum		values[lengthof(columns)];
	bool		nulls[lengthof(columns)];
	MemoryContext row_context;
	int			version;

	statements_require(LIBRARY);
	InitMaterializedSRF(fcinfo, 0);
	version = version_of(result->setDesc->natts);
	find_counters(counters);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "tacho row",
										ALLOCSET_DEFAULT_SIZES);
	while (statements_read(&reader, &copy))
	{
		MemoryContext caller;

		CHECK_FOR_INTERRUPTS();
		if (copy.key.query_id == 0 ||
			copy.counters.plans + copy.counters.calls == 0)
			continue;
		caller = MemoryContextSwitchTo(row_context);
		row_to_datums(&copy, counters, version, showtext, values, nulls);
		MemoryContextSwitchTo(caller);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		MemoryContextReset(row_context);
	}
	return (Datum) 0;
}

/* 1.0 and 1.1 had no argument and always returned texts. */
Datum
pg_stat_statements(PG_FUNCTION_ARGS)
{
	return rows(fcinfo, true);
}

#define ROWS_FUNCTION(name) \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return rows(fcinfo, PG_GETARG_BOOL(0)); \
}

ROWS_FUNCTION(pg_stat_statements_1_2)
ROWS_FUNCTION(pg_stat_statements_1_3)
ROWS_FUNCTION(pg_stat_statements_1_8)
ROWS_FUNCTION(pg_stat_statements_1_9)
ROWS_FUNCTION(pg_stat_statements_1_10)
ROWS_FUNCTION(pg_stat_statements_1_11)
ROWS_FUNCTION(pg_stat_statements_1_12)
ROWS_FUNCTION(pg_stat_statements_1_13)

Datum
pg_stat_statements_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	StatementsInfo info;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	statements_require(LIBRARY);
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	statements_info(&info);
	values[0] = Int64GetDatum(info.evicted);
	values[1] = TimestampTzGetDatum(info.stats_reset);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
													  values, nulls)));
}

Datum
pg_stat_statements_reset(PG_FUNCTION_ARGS)
{
	statements_require(LIBRARY);
	statements_reset(InvalidOid, InvalidOid, 0, false);
	PG_RETURN_VOID();
}

Datum
pg_stat_statements_reset_1_7(PG_FUNCTION_ARGS)
{
	statements_require(LIBRARY);
	statements_reset(PG_GETARG_OID(0), PG_GETARG_OID(1),
					 (uint64) PG_GETARG_INT64(2), false);
	PG_RETURN_VOID();
}

Datum
pg_stat_statements_reset_1_11(PG_FUNCTION_ARGS)
{
	statements_require(LIBRARY);
	PG_RETURN_TIMESTAMPTZ(statements_reset(PG_GETARG_OID(0), PG_GETARG_OID(1),
										   (uint64) PG_GETARG_INT64(2),
										   PG_GETARG_BOOL(3)));
}
