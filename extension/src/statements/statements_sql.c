/*
 * statements_sql.c
 *	  tacho.statements, tacho.statement_plans, tacho.statements_info,
 *	  tacho.statements_reset.
 *
 * These functions read only shared memory. So they see the current counters of
 * all backends, and also work in a parallel worker.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/elog.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "core/compat.h"
#include "core/encoding.h"
#include "statements/statements.h"
#include "statements/statements_sql.h"

COMPAT_SQL_FUNCTION(tacho_statements_rows);
COMPAT_SQL_FUNCTION(tacho_statement_plans);
COMPAT_SQL_FUNCTION(tacho_statements_info);
COMPAT_SQL_FUNCTION(tacho_statements_reset);

#define KEY_COLUMNS 5			/* userid to query */
#define TAIL_COLUMNS 7			/* last_sqlstate to restored */
#define INFO_COLUMNS 13
#define PLAN_COLUMNS 15

bool
statements_may_see(Oid user_id)
{
	return user_id == GetUserId() ||
		has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

Datum
statements_text_datum(const StatementCopy *copy, bool *isnull)
{
	char	   *text;
	Datum		result;

	*isnull = copy->text == NULL;
	if (*isnull)
		return (Datum) 0;
	if (encoding_is_ascii(copy->text, copy->text_length))
		return PointerGetDatum(cstring_to_text_with_len(copy->text,
														copy->text_length));
	text = encoding_to_server(copy->text, copy->text_length, copy->encoding);
	result = CStringGetTextDatum(text);
	pfree(text);
	return result;
}

static Datum
time_or_null(TimestampTz time, bool *isnull)
{
	*isnull = time == 0;
	return TimestampTzGetDatum(time);
}

/*
 * Fills the columns userid to query. A role that may not see the statement
 * gets no query id, and "<insufficient privilege>" as text.
 */
static void
key_to_datums(const StatementCopy *copy, bool with_text, Datum *values,
			  bool *nulls)
{
	bool		statement = copy->key.query_id != 0;

	values[0] = ObjectIdGetDatum(copy->key.user_id);
	nulls[0] = copy->key.user_id == InvalidOid;
	values[1] = ObjectIdGetDatum(copy->key.database_id);
	nulls[1] = copy->key.database_id == InvalidOid;
	values[2] = BoolGetDatum(copy->key.toplevel);
	nulls[2] = !statement;
	values[3] = Int64GetDatum((int64) copy->key.query_id);
	nulls[3] = !statement;
	nulls[4] = true;
	if (!statement)
		return;
	if (statements_may_see(copy->key.user_id))
		values[4] = statements_text_datum(copy, &nulls[4]);
	else
	{
		nulls[3] = true;
		nulls[4] = !with_text;
		values[4] = CStringGetTextDatum("<insufficient privilege>");
	}
}

/*
 * The last error shows what a user has just tried, so it is visible with the
 * text.
 */
static void
tail_to_datums(const StatementCopy *copy, Datum *values, bool *nulls)
{
	bool		failed = copy->last_sqlstate != 0 &&
		statements_may_see(copy->key.user_id);

	nulls[0] = !failed;
	if (!nulls[0])
		values[0] = CStringGetTextDatum(unpack_sql_state(copy->last_sqlstate));
	values[1] = time_or_null(failed ? copy->last_error_at : 0, &nulls[1]);
	values[2] = time_or_null(copy->last_call, &nulls[2]);
	values[3] = time_or_null(copy->stats_since, &nulls[3]);
	values[4] = time_or_null(copy->minmax_stats_since, &nulls[4]);
	values[5] = time_or_null(copy->text_since, &nulls[5]);
	values[6] = BoolGetDatum(copy->restored);
	nulls[6] = false;
}

static bool
has_counts(const Counters *counters)
{
	return counters->plans + counters->calls + counters->errors +
		counters->cancellations > 0;
}

Datum
tacho_statements_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	StatementReader reader = {0};
	StatementCopy copy;
	int			columns = KEY_COLUMNS + counters_columns + TAIL_COLUMNS;
	MemoryContext row_context;
	Datum	   *values;
	bool	   *nulls;

	statements_require("tacho");
	reader.with_text = PG_ARGISNULL(0) || PG_GETARG_BOOL(0);
	reader.texts_since = PG_ARGISNULL(1) ? 0 : PG_GETARG_TIMESTAMPTZ(1);
	reader.called_since = PG_ARGISNULL(2) ? 0 : PG_GETARG_TIMESTAMPTZ(2);

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != columns)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function of the extension \"tacho\" does not match the loaded library"),
				 errdetail("The function returns %d columns, the library has %d.",
						   result->setDesc->natts, columns),
				 errhint("Update the extension with ALTER EXTENSION tacho UPDATE.")));
	values = palloc(columns * sizeof(Datum));
	nulls = palloc(columns * sizeof(bool));
	row_context = AllocSetContextCreate(CurrentMemoryContext, "tacho row",
										ALLOCSET_DEFAULT_SIZES);
	while (statements_read(&reader, &copy))
	{
		MemoryContext caller;

		CHECK_FOR_INTERRUPTS();
		if (!has_counts(&copy.counters))
			continue;
		caller = MemoryContextSwitchTo(row_context);
		key_to_datums(&copy, reader.with_text, values, nulls);
		counters_to_datums(&copy.counters,
						   copy.minmax_stats_since == copy.stats_since,
						   values + KEY_COLUMNS,
						   nulls + KEY_COLUMNS);
		tail_to_datums(&copy, values + KEY_COLUMNS + counters_columns,
					   nulls + KEY_COLUMNS + counters_columns);
		MemoryContextSwitchTo(caller);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		MemoryContextReset(row_context);
	}
	return (Datum) 0;
}

/* A plan belongs to its query, so it is visible with the text. */
static void
plan_to_datums(const StatementCopy *copy, const PlanRow *row, Datum *values, bool *nulls)
{
	const PlanCounters *counters = &row->counters;
	bool		seen = statements_may_see(copy->key.user_id);
	int			i = 0;

	memset(nulls, 0, PLAN_COLUMNS * sizeof(bool));
	values[i++] = ObjectIdGetDatum(copy->key.user_id);
	values[i++] = ObjectIdGetDatum(copy->key.database_id);
	values[i++] = BoolGetDatum(copy->key.toplevel);
	nulls[i] = !seen;
	values[i++] = Int64GetDatum((int64) copy->key.query_id);
	nulls[i] = !seen || row->plan_id == 0;
	values[i++] = Int64GetDatum(row->plan_id);
	values[i] = time_or_null(row->since, &nulls[i]);
	i++;
	values[i++] = Int64GetDatum(counters->calls);
	values[i++] = Float8GetDatum(counters->total_exec_time);
	nulls[i] = counters->calls == 0;
	values[i++] = Float8GetDatum(counters->total_exec_time / Max(counters->calls, 1));
	nulls[i] = row->max_exec_time < 0;
	values[i++] = Float8GetDatum(row->max_exec_time);
	values[i++] = Int64GetDatum(counters->rows);
	values[i++] = Int64GetDatum(counters->shared_blks_hit);
	values[i++] = Int64GetDatum(counters->shared_blks_read);
	values[i++] = Int64GetDatum(counters->temp_blks_written);
	values[i++] = Float8GetDatum(counters->cpu_time);
	Assert(i == PLAN_COLUMNS);
}

Datum
tacho_statement_plans(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	StatementReader reader = {0};
	StatementCopy copy;
	PlanRows	rows;

	statements_require("tacho");
	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != PLAN_COLUMNS)
		elog(ERROR, "return type must be a row of %d columns", PLAN_COLUMNS);
	while (statements_read(&reader, &copy))
	{
		Datum		values[PLAN_COLUMNS];
		bool		nulls[PLAN_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		if (!statements_plans(&reader, &copy, &rows))
			continue;
		for (int i = 0; i < rows.n; i++)
		{
			plan_to_datums(&copy, &rows.row[i], values, nulls);
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}

Datum
tacho_statements_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	StatementsInfo info;
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {0};
	int			i = 0;

	statements_require("tacho");
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != INFO_COLUMNS)
		elog(ERROR, "return type must be a row of %d columns", INFO_COLUMNS);
	statements_info(&info);
	values[i++] = Int64GetDatum(info.entries);
	values[i++] = Int64GetDatum(info.max);
	values[i++] = Int64GetDatum(info.reserved);
	values[i++] = Int64GetDatum(info.evicted);
	values[i++] = Int64GetDatum(info.skipped);
	values[i++] = Int64GetDatum(info.text_bytes);
	values[i++] = Int64GetDatum(info.text_bytes_max);
	values[i++] = Int64GetDatum(info.texts_missing);
	values[i++] = Int64GetDatum(info.plans_missing);
	values[i++] = Int64GetDatum(info.normalizations);
	values[i++] = Int64GetDatum(info.promotions);
	values[i] = time_or_null(info.last_eviction, &nulls[i]);
	i++;
	values[i++] = TimestampTzGetDatum(info.stats_reset);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
													  values, nulls)));
}

Datum
tacho_statements_reset(PG_FUNCTION_ARGS)
{
	statements_require("tacho");
	PG_RETURN_TIMESTAMPTZ(statements_reset(PG_GETARG_OID(0), PG_GETARG_OID(1),
										   (uint64) PG_GETARG_INT64(2),
										   PG_GETARG_BOOL(3)));
}
