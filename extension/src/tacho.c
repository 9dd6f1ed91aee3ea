/*
 * tacho.c
 *	  Entry point of the library: the ordered list of what is set up.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "changes/schema_change.h"
#include "core/compat.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "plans/plan_ids.h"
#include "sampler/sampler.h"
#include "statements/hooks.h"
#include "statements/query_text.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/*
 * Without shared memory there is nothing to record into: a library that was
 * not preloaded only lends its functions, which say so.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	settings_init();
	/* what pg_upgrade executes is nobody's load, and its files are not ours */
	if (IsBinaryUpgrade)
		return;
	shmem_init();
	EnableQueryId();
	plan_ids_init();
	schema_change_init();
	query_text_init();
	/* before the saver of hooks_init(): history has the last slot of a worker */
	sampler_init();
	hooks_init();
}
