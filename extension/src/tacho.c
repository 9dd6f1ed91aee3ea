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
#include "core/logins.h"
#include "core/settings.h"
#include "core/shmem.h"
#include "plans/plan_ids.h"
#include "plans/planner_settings.h"
#include "sampler/catalog_shared.h"
#include "sampler/sampler.h"
#include "statements/query_text.h"
#include "statements/statements_setup.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/*
 * A library that was not preloaded has no shared memory to record into. It only
 * provides its functions, which raise an error that says so.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	settings_init();
	/* pg_upgrade is no load of a user, and must not touch the history */
	if (IsBinaryUpgrade)
		return;
	shmem_init();
	logins_init();
	EnableQueryId();
	plan_ids_init();
	planner_settings_init();
	schema_change_init();
	query_text_init();
	catalog_shared_init();
	/* before statements_setup(): the saver must not take the last worker slot */
	sampler_init();
	statements_setup();
}
