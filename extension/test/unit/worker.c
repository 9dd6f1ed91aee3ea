/*
 * worker.c
 *	  A background worker that executes a statement. After an error it
 *	  aborts its transaction before the error is reported, as workers of
 *	  logical replication do. For 104_statements_failures.pl, which builds
 *	  it; not part of the extension.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(worker_run);
PGDLLEXPORT void worker_main(Datum argument);

static void
execute(const char *statement)
{
	StartTransactionCommand();
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_execute(statement, false, 0);
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
}

void
worker_main(Datum argument)
{
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection("postgres", NULL, 0);
	PG_TRY();
	{
		execute(MyBgworkerEntry->bgw_extra);
	}
	PG_CATCH();
	{
		AbortOutOfAnyTransaction();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* Executes a statement in a background worker, and waits for that to end. */
Datum
worker_run(PG_FUNCTION_ARGS)
{
	BackgroundWorker worker = {0};
	BackgroundWorkerHandle *handle;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	strcpy(worker.bgw_name, "worker");
	strcpy(worker.bgw_type, "worker");
	strcpy(worker.bgw_library_name, "worker");
	strcpy(worker.bgw_function_name, "worker_main");
	strlcpy(worker.bgw_extra, text_to_cstring(PG_GETARG_TEXT_PP(0)), BGW_EXTRALEN);
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		elog(ERROR, "there is no place for a background worker");
	PG_RETURN_BOOL(WaitForBackgroundWorkerShutdown(handle) == BGWH_STOPPED);
}
