/*
 * statements_status.c
 *	  Whose functions the extension pg_stat_statements has here, for status().
 *
 * ALTER EXTENSION pg_stat_statements UPDATE, and restoring a dump, give the
 * functions back to their own library, which counts nothing in a server where
 * tacho takes its place: tools fail then, and somebody has to be told why.
 *
 * Reads catalogs of the current database. Locking: theirs. Memory: current
 * context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

#include "settings.h"
#include "statements_alias.h"
#include "statements_status.h"

#define CONTRIB "pg_stat_statements"

/* Whether a function is written in C and lies in contrib's library. */
static bool
calls_contrib(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Datum		library;
	bool		isnull;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	library = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &isnull);
	result = !isnull && statements_is_contrib(TextDatumGetCString(library));
	ReleaseSysCache(tuple);
	return result;
}

/* Number of the extension's functions that call its own library. */
static int
contrib_functions(Oid extension)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	int			n = 0;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ExtensionRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend member = (Form_pg_depend) GETSTRUCT(tuple);

		if (member->classid == ProcedureRelationId &&
			member->deptype == DEPENDENCY_EXTENSION &&
			calls_contrib(member->objid))
			n++;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return n;
}

/* What the metric says; *lost: functions that went back to contrib. */
static const char *
find_state(int *lost)
{
	Oid			extension;

	*lost = 0;
	if (!tacho_pg_stat_statements)
		return "not replaced";
	if (statements_contrib_preloaded())
		return "not replaced: it is preloaded itself";
	extension = get_extension_oid(CONTRIB, true);
	if (!OidIsValid(extension))
		return "not installed in this database";
	*lost = contrib_functions(extension);
	return *lost > 0 ? "its functions call their own library" : "replaced";
}

void
statements_status_row(PutMetric put, void *arg)
{
	int			lost;

	put(arg, CONTRIB, find_state(&lost));
	if (lost > 0)
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_plural("%d function of the extension \"%s\" calls its own library instead of tacho",
							   "%d functions of the extension \"%s\" call their own library instead of tacho",
							   lost, lost, CONTRIB),
				 errhint("Call tacho.install_pg_stat_statements() in this database.")));
}
