/*
 * reader.c
 *	  The SQL functions that read the history.
 *
 * tacho_reader() is the body of every set-returning reader function. It runs
 * `tacho query` with the arguments of the call and returns the rows it
 * prints. tacho_status() returns the status of the sampler and of the tape.
 *
 * Locking: none. Memory: current context of the call. Life time of the child:
 * child.c.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"

#include "core/compat.h"
#include "core/settings.h"
#include "core/status.h"
#include "readers/child.h"
#include "readers/reader.h"
#include "readers/reader_status.h"
#include "readers/statements_status.h"

#define READ_SIZE	(64 * 1024)

COMPAT_SQL_FUNCTION(tacho_reader);
COMPAT_SQL_FUNCTION(tacho_status);

/*
 * Passes the child's output to *output until its end. Stops at the first
 * unexpected output. Returns false with the reason in *failure.
 */
static bool
read_rows(Child *child, ReaderOutput *output, ReaderFailure *failure)
{
	char	   *buffer = palloc(READ_SIZE);
	int			n;

	while ((n = child_read(child, buffer, READ_SIZE)) > 0)
	{
		if (!reader_output_add(output, buffer, n, failure))
			return false;
	}
	return true;
}

/*
 * Runs the program and stores its rows. Returns false with the reason in
 * *failure; some rows may be stored even then.
 */
static bool
run(char *const argv[], TupleDesc desc, Tuplestorestate *store,
	ReaderFailure *failure)
{
	const char *program = tacho_program_path();
	ReaderOutput *output = reader_output_begin(desc, store);
	const char *failed;
	StringInfoData errors;
	Child	   *child;
	int			status;
	int			error;

	if (reader_memory_mb() == 0)
	{
		reader_without_memory(failure);
		return false;
	}
	initStringInfo(&errors);
	child = child_start(program, argv, &errors, &failed);
	if (child == NULL)
	{
		if (failed != NULL)
			reader_not_started(failed, errno, failure);
		else
			reader_too_many(failure);
		return false;
	}
	if (!read_rows(child, output, failure))
	{
		child_stop(child);
		return false;
	}
	status = child_finish(child, &error);
	if (error != 0)
		reader_not_started(program, error, failure);
	else
		reader_messages(program, &errors, status, failure);
	return failure->message == NULL && reader_output_end(output, failure);
}

static void
require_preload(const ReaderFunction *function)
{
	if (!tacho_status_available())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s() needs tacho to be loaded at server start",
						function->name),
				 errhint("Add tacho to shared_preload_libraries and restart the server.")));
}

/* True if the call's window ends now. */
static bool
asks_for_present(const ReaderFunction *function, FunctionCallInfo fcinfo)
{
	for (int i = 0; i < function->nargs && i < PG_NARGS(); i++)
	{
		if (strcmp(function->argnames[i], "until") == 0)
			return PG_ARGISNULL(i);
	}
	return false;
}

/*
 * If no history is being recorded, tells the caller why. An answer whose
 * window ends now gets a notice, because it lacks the present. A failure
 * because there is no history gets a hint.
 */
static void
explain_missing(const ReaderFunction *function, FunctionCallInfo fcinfo,
				ReaderFailure *failure)
{
	const char *reason = reader_status_reason();

	if (reason == NULL)
		return;
	if (failure->message == NULL && asks_for_present(function, fcinfo))
		ereport(NOTICE,
				(errmsg("history is not being recorded: %s", reason)));
	else if (failure->sqlstate == ERRCODE_UNDEFINED_FILE &&
			 failure->hint == NULL)
		failure->hint = psprintf("History is not being recorded: %s.", reason);
}

Datum
tacho_reader(PG_FUNCTION_ARGS)
{
	ReaderFunction *function = reader_function(fcinfo->flinfo);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ReaderFailure failure = {0};
	char	  **argv;

	require_preload(function);
	InitMaterializedSRF(fcinfo, 0);
	argv = reader_arguments(function, fcinfo);
	run(argv, result->setDesc, result->setResult, &failure);
	explain_missing(function, fcinfo, &failure);
	if (failure.message != NULL)
		reader_raise(&failure);
	return (Datum) 0;
}

/* Puts a row of (metric, value). */
static void
put_metric(void *arg, const char *metric, const char *value)
{
	ReturnSetInfo *result = arg;
	Datum		values[2];
	bool		nulls[2] = {false, value == NULL};

	values[0] = CStringGetTextDatum(metric);
	values[1] = value ? CStringGetTextDatum(value) : (Datum) 0;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * True if the caller's arguments caused the error. Insufficient privilege does
 * not count: it means that the server may not read the files.
 */
static bool
is_callers_fault(int sqlstate)
{
	if (sqlstate == ERRCODE_INSUFFICIENT_PRIVILEGE)
		return false;
	return ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_DATA_EXCEPTION ||
		ERRCODE_TO_CATEGORY(sqlstate) ==
		ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION;
}

/*
 * The rows of the server, then the rows of the tape. If the tape cannot be
 * read, a row says so instead of an error, because users call status() when
 * something is wrong.
 */
Datum
tacho_status(PG_FUNCTION_ARGS)
{
	ReaderFunction *function = reader_function(fcinfo->flinfo);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ReaderFailure failure = {0};

	require_preload(function);
	InitMaterializedSRF(fcinfo, 0);
	reader_status_rows(put_metric, result);
	statements_status_row(put_metric, result);
	if (!run(reader_arguments(function, fcinfo), result->setDesc,
			 result->setResult, &failure))
	{
		if (is_callers_fault(failure.sqlstate))
			reader_raise(&failure);
		put_metric(result, "tape_error", failure.message);
		if (failure.hint)
			put_metric(result, "tape_error_hint", failure.hint);
	}
	return (Datum) 0;
}
