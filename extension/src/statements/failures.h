/*
 * failures.h
 *	  Counts errors for the statements that they leave.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_FAILURES_H
#define TACHO_FAILURES_H

#include "access/xact.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"

#include "core/compat.h"
#include "statements/statements.h"

/*
 * The client's statement that the server is planning or starting now. No code
 * between the statement and the client can catch an error, so the server
 * reports each error. failures.c counts it when it is reported, without
 * PG_TRY.
 */
typedef struct Attempt
{
	TimestampTz message;		/* from the client; 0 = none */
	bool		counted;
	uint64		query_id;
	const char *string;			/* the message */
	int			location;
	int			length;
	int		   *level;			/* nesting level to set to 0 on error, or NULL */
} Attempt;

extern Attempt failures_attempt;

/* Installs the hook that sees reported messages. */
extern void failures_init(void);

/* True if an attempt of an earlier message has not ended. */
static inline bool
failures_attempt_left(void)
{
	return failures_attempt.message != 0 &&
		failures_attempt.message != GetCurrentStatementStartTimestamp();
}

/*
 * True if an error in a top-level statement with this text ends the client's
 * message and is reported. That holds if the text is the one that the client
 * has sent: functions, triggers and prepared statements execute texts of
 * their own. Background workers may catch errors anywhere.
 */
static inline bool
failures_go_to_client(const char *string)
{
	return string != NULL && string == debug_query_string &&
		MyBgworkerEntry == NULL && compat_logs_errors() &&
		(failures_attempt.message == 0 || failures_attempt_left());
}

/*
 * From begin to end of the attempt, an error belongs to this statement.
 * Requires failures_go_to_client().
 */
static inline void
failures_attempt_begin(bool counted, uint64 query_id, const char *string,
					   int location, int length)
{
	failures_attempt = (Attempt) {
		.message = GetCurrentStatementStartTimestamp(),
		.counted = counted,
		.query_id = query_id,
		.string = string,
		.location = location,
		.length = length,
	};
}

static inline void
failures_attempt_end(void)
{
	failures_attempt.message = 0;
}

/* Ends the attempt, if there is one, and restores the nesting level. */
static inline void
failures_attempt_failed(void)
{
	if (failures_attempt.message != 0 && failures_attempt.level != NULL)
		*failures_attempt.level = 0;
	failures_attempt_end();
}

/*
 * failures_leave() (inside PG_CATCH): an error leaves a top-level statement,
 * which has counted it or is not counted. failures_forget(): that error was
 * reported or caught.
 */
extern void failures_leave(void);
extern void failures_forget(void);

/*
 * Counts the error that is being handled, inside PG_CATCH. `delta` has the
 * resources of the `ms` that the statement was executed, NULL = not executed.
 */
extern void failures_count(const StatementKey *key, const StatementSource *source,
						   StatementDelta *delta, double ms);

#endif							/* TACHO_FAILURES_H */
