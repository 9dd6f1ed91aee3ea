/*
 * statements_status.c
 *	  Tells whether tacho or contrib answers for pg_stat_statements.
 *
 * If the extension was created before tacho replaced it, its functions call
 * their own library. That library then counts nothing, so tools that call the
 * functions fail. A warning says so and names the function that repairs it.
 *
 * Reads catalogs of the current database and takes their locks. Memory:
 * current context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "commands/extension.h"

#include "core/settings.h"
#include "readers/statements_status.h"
#include "statements/statements_alias.h"
#include "statements/statements_members.h"

/* Value of the metric; *lost is the number of functions that call contrib. */
static const char *
find_state(int *lost)
{
	*lost = 0;
	if (!tacho_pg_stat_statements)
		return "not replaced";
	if (statements_contrib_preloaded())
		return "not replaced: it is preloaded itself";
	if (!OidIsValid(get_extension_oid(STATEMENTS_CONTRIB, true)))
		return "not installed in this database";
	*lost = list_length(statements_contrib_members());
	return *lost > 0 ? "its functions call their own library" : "replaced";
}

void
statements_status_row(PutMetric put, void *arg)
{
	int			lost;

	put(arg, STATEMENTS_CONTRIB, find_state(&lost));
	if (lost > 0)
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_plural("%d function of the extension \"%s\" calls its own library instead of tacho",
							   "%d functions of the extension \"%s\" call their own library instead of tacho",
							   lost, lost, STATEMENTS_CONTRIB),
				 errhint("Call tacho.install_pg_stat_statements() in this database.")));
}
