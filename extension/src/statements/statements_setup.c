/*
 * statements_setup.c
 *	  Sets up the statistics of statements while the server starts.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"

#include "core/compat.h"
#include "core/settings.h"
#include "plans/running_plan.h"
#include "statements/error_counts.h"
#include "statements/executed.h"
#include "statements/hooks.h"
#include "statements/running_tags.h"
#include "statements/statements.h"
#include "statements/statements_alias.h"
#include "statements/statements_save.h"
#include "statements/statements_setup.h"

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static void
on_shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	statements_shmem_request();
	executed_shmem_request();
	error_counts_shmem_request();
	running_plan_shmem_request();
	running_tags_shmem_request();
}

static void
on_shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	executed_shmem_startup();
	error_counts_shmem_startup();
	running_plan_shmem_startup();
	running_tags_shmem_startup();
	if (statements_shmem_startup() && !IsUnderPostmaster)
		statements_save_startup();
	hooks_install();
}

/* At startup if nothing is counted: removes an old saved file. */
static void
on_shmem_startup_unused(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	if (!IsUnderPostmaster)
		statements_save_forget();
}

void
statements_setup(void)
{
	if (!tacho_statements)
	{
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = on_shmem_startup_unused;
		return;
	}
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = on_shmem_request;
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = on_shmem_startup;
	statements_alias_init();
	statements_save_init();
}
