/*
 * logins.c
 *	  Counts connections that end before they have become sessions.
 *
 * ClientAuthentication_hook does not see a connection that pg_hba.conf
 * rejects, a role that does not exist, or a server without a free connection:
 * each of these ends the process before. All of them, and a wrong password,
 * are reported as FATAL while the process is still being initialized. So the
 * hook of reported messages counts them. A client that leaves at the
 * prompt for a password is not reported and not counted.
 *
 * Example: a wrong password (28P01) counts in logins_failed, "too many
 * clients" (53300) in logins_refused.
 *
 * Locking: none, only atomic counters. The process may have no PGPROC yet.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"

#include "core/logins.h"
#include "core/shmem.h"

static emit_log_hook_type previous_emit_log = NULL;

static void
on_emit_log(ErrorData *edata)
{
	if (previous_emit_log)
		previous_emit_log(edata);
	if (edata->elevel != FATAL || MyProcPort == NULL ||
		!IsInitProcessingMode() || tacho_shared == NULL)
		return;
	if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) ==
		ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION)
		pg_atomic_fetch_add_u64(&tacho_shared->logins_failed, 1);
	else
		pg_atomic_fetch_add_u64(&tacho_shared->logins_refused, 1);
}

void
logins_init(void)
{
	previous_emit_log = emit_log_hook;
	emit_log_hook = on_emit_log;
}
