/*
 * failures.c
 *	  Errors, and the statements they are counted for.
 *
 * An error that leaves a statement is counted where it is caught on its way
 * (hooks.c), one of an attempt when it is reported, and one that left no
 * statement is counted then for the user and the database.
 *
 * Called by hooks on the user's path. Nothing here raises an error, waits or
 * allocates.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "storage/proc.h"

#include "core/hot.h"
#include "core/settings.h"
#include "statements/failures.h"
#include "statements/statements_alias.h"
#include "statements/usage.h"

HOT_DATA Attempt failures_attempt = {0};

static emit_log_hook_type previous_emit_log = NULL;

/*
 * Where the latest error left a statement of the top level: in the message
 * from the client that began then (0 = none) and in a subtransaction. While
 * both are the same, the error is on its way to the client. One that somebody
 * has caught is not: that ended its subtransaction. A background worker may
 * abort its transaction first and then report the error: then its code tells.
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

/* Whether the error that is reported left a statement. */
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
 * Whether the error that is reported ended an attempt. The message is compared
 * as well: its text is there then.
 */
static inline bool
is_of_attempt(void)
{
	return failures_attempt.message != 0 &&
		failures_attempt.message == GetCurrentStatementStartTimestamp() &&
		failures_attempt.string == debug_query_string;
}

/* An error of what was not executed. */
static void
count(const StatementKey *key, const StatementSource *source, int sqlstate)
{
	StatementDelta delta;

	usage_clear(&delta);
	usage_failed(&delta, 0, sqlstate);
	statements_add_failure(key, &delta, source);
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
}

/*
 * Counts a failed attempt. The error may come from a function of somebody
 * else, whose identity is taken back only later.
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

/* Counts an error outside of statements for the user and the database. */
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
 * An error goes to the client: of an attempt, of a statement that has counted
 * it when it left, or of none. That happened before there was one (syntax,
 * missing objects), between statements, or at commit. Not called for what
 * log_min_messages keeps out of the log.
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
	failures_attempt_end();
	failures_forget();
}

void
failures_init(void)
{
	previous_emit_log = emit_log_hook;
	emit_log_hook = on_emit_log;
}
