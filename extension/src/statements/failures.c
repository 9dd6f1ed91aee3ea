/*
 * failures.c
 *	  Counts errors for the statements that they leave.
 *
 * An error is counted at one of three places. If it leaves a statement,
 * hooks.c counts it where it is caught. If it ends an attempt (failures.h),
 * on_emit_log() counts it for the attempt's statement. If it left no
 * statement, on_emit_log() counts it for the user and the database.
 *
 * Called by hooks in the user's session. Nothing here raises an error. It
 * waits for each lock for half a millisecond at most
 * (statements_add_failure()).
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "storage/proc.h"

#include "core/hot.h"
#include "core/settings.h"
#include "statements/error_counts.h"
#include "statements/failures.h"
#include "statements/statements_alias.h"
#include "statements/usage.h"

HOT_DATA Attempt failures_attempt = {0};

static emit_log_hook_type previous_emit_log = NULL;

/*
 * The place where the latest error left a top-level statement: the client's
 * message, by its start time (0 = none), and the subtransaction. While both
 * are unchanged, the error is on its way to the client. An error that was
 * caught has ended its subtransaction. A background worker may abort its
 * transaction before it reports the error: then the error's SQLSTATE decides.
 */
static HOT_DATA TimestampTz error_message = 0;
static SubTransactionId error_subxact;
static int	error_sqlstate;

void
failures_leave(void)
{
	error_message = GetCurrentStatementStartTimestamp();
	error_subxact = GetCurrentSubTransactionId();
	error_sqlstate = geterrcode();
}

pg_attribute_hot void
failures_forget(void)
{
	error_message = 0;
}

/* True if the reported error left a statement. */
static inline bool
is_of_statement(int sqlstate)
{
	if (error_message == 0 ||
		error_message != GetCurrentStatementStartTimestamp())
		return false;
	return IsTransactionState() ?
		error_subxact == GetCurrentSubTransactionId() :
		error_sqlstate == sqlstate;
}

/*
 * True if the reported error ended an attempt. Compares the text of the
 * message, too.
 */
static inline bool
is_of_attempt(void)
{
	return failures_attempt.message != 0 &&
		failures_attempt.message == GetCurrentStatementStartTimestamp() &&
		failures_attempt.string == debug_query_string;
}

/* Counts an error of a statement that was not executed. */
static void
count(const StatementKey *key, const StatementSource *source, int sqlstate)
{
	StatementDelta delta;

	usage_clear(&delta);
	usage_failed(&delta, 0, sqlstate);
	statements_add_failure(key, &delta, source);
	error_counts_add(key, sqlstate);
}

void
failures_count(const StatementKey *key, const StatementSource *source,
			   StatementDelta *delta, double ms)
{
	if (delta == NULL)
	{
		count(key, source, geterrcode());
		return;
	}
	usage_failed(delta, ms, geterrcode());
	statements_add_failure(key, delta, source);
	error_counts_add(key, delta->sqlstate);
}

/*
 * Counts a failed attempt. The error may come from a function of another
 * user, whose identity is reset only later.
 */
static void
count_attempt(int sqlstate)
{
	const Attempt *attempt = &failures_attempt;
	StatementKey key = {
		.query_id = attempt->query_id,
		.user_id = GetOuterUserId(),
		.database_id = MyDatabaseId,
		.toplevel = true,
	};
	StatementSource source = {
		attempt->string, attempt->location, attempt->length, NULL
	};

	count(&key, &source, sqlstate);
}

/* Counts an error outside of statements, for the user and the database. */
static void
count_outside(int sqlstate)
{
	StatementKey key = {
		.user_id = GetUserId(),
		.database_id = MyDatabaseId,
		.toplevel = true,
	};

	if (MyProc != NULL && OidIsValid(MyDatabaseId) && !IsParallelWorker() &&
		setting_track() != STATEMENTS_TRACK_NONE)
		count(&key, NULL, sqlstate);
}

/*
 * Counts an error that goes to the client, unless it left a statement: then
 * hooks.c has counted it. Errors outside of statements happen before there is
 * a statement (syntax, missing objects), between statements, or at commit.
 * The server does not call this for errors that log_min_messages keeps out of
 * the log.
 */
static void
on_emit_log(ErrorData *edata)
{
	if (previous_emit_log)
		previous_emit_log(edata);
	if (edata->elevel != ERROR)
		return;
	if (is_of_attempt())
	{
		if (failures_attempt.counted)
			count_attempt(edata->sqlerrcode);
	}
	else if (!is_of_statement(edata->sqlerrcode))
		count_outside(edata->sqlerrcode);
	failures_attempt_failed();
	failures_forget();
}

void
failures_init(void)
{
	previous_emit_log = emit_log_hook;
	emit_log_hook = on_emit_log;
}
