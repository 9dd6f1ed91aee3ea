/*
 * statements_status.c
 *	  Whose functions the extension pg_stat_statements has here, for status().
 *
 * An extension that was made before tacho took its place calls its own
 * library, which counts nothing then: tools fail, and somebody has to be told
 * why.
 *
 * Reads catalogs of the current database. Locking: theirs. Memory: current
 * context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "commands/extension.h"

#include "core/settings.h"
#include "readers/statements_status.h"
#include "statements/statements_alias.h"
#include "statements/statements_members.h"

/* What the metric says; *lost: functions that went back to contrib. */
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
