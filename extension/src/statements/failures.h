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
 * The statement of the client that the server is planning or starting now. No
 * code between it and the client can catch an error. So the error is reported
 * in any case and counted then, and nothing has to catch it before.
 */
typedef struct Attempt
{
	TimestampTz message;		/* from the client; 0 = none */
	bool		counted;
	uint64		query_id;
	const char *string;			/* the message */
	int			location;
	int			length;
	int		   *level;			/* becomes 0 when its error is reported; or NULL */
} Attempt;

extern Attempt failures_attempt;

/* Installs the hook that sees what is reported. */
extern void failures_init(void);

/* Whether an attempt of an earlier message has not ended. */
static inline bool
failures_attempt_left(void)
{
	return failures_attempt.message != 0 &&
		failures_attempt.message != GetCurrentStatementStartTimestamp();
}

/*
 * Whether an error in a statement of the top level with this text ends the
 * message of the client, and is reported. So it is when the text is what the
 * client has sent: functions, triggers and prepared statements execute texts of
 * their own. Background workers catch errors where they like.
 */
static inline bool
failures_go_to_client(const char *string)
{
	return string != NULL && string == debug_query_string &&
		MyBgworkerEntry == NULL && compat_logs_errors() &&
		(failures_attempt.message == 0 || failures_attempt_left());
}

/*
 * Between these two an error is one of this statement, for which
 * failures_go_to_client() holds.
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

/* The error of the attempt, if there is one, has ended its way. */
static inline void
failures_attempt_failed(void)
{
	if (failures_attempt.message != 0 && failures_attempt.level != NULL)
		*failures_attempt.level = 0;
	failures_attempt_end();
}

/*
 * An error leaves a statement of the top level, which has counted it or is not
 * counted (inside of PG_CATCH); and there is none on its way any more.
 */
extern void failures_leave(void);
extern void failures_forget(void);

/*
 * Counts the error that is being handled; inside of PG_CATCH. `delta` has the
 * resources of the `ms` that the statement was executed, NULL = not executed.
 */
extern void failures_count(const StatementKey *key, const StatementSource *source,
						   StatementDelta *delta, double ms);

#endif							/* TACHO_FAILURES_H */
