/*
 * statements_members.c
 *	  The functions of the extension pg_stat_statements in this database.
 *
 * CREATE and ALTER EXTENSION run contrib's scripts, whose functions call
 * contrib's library. If tacho replaces that library, it is not preloaded and
 * the functions fail. So their library is changed to tacho (pg_proc.probin);
 * symbols and types are the same.
 *
 * Reads and writes catalogs of the current database and takes their locks.
 * Memory: current context. Called by the session that runs the command.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "core/compat.h"
#include "core/settings.h"
#include "statements/statements_alias.h"
#include "statements/statements_members.h"

/* the same name as in the scripts of the extension tacho */
#define LIBRARY "$libdir/tacho"

/* True if a function is written in C and belongs to contrib's library. */
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
	result = !isnull &&
		statements_is_contrib(compat_library_of_function(TextDatumGetCString(library)));
	ReleaseSysCache(tuple);
	return result;
}

static List *
contrib_members(Oid extension)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *members = NIL;

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
			members = lappend_oid(members, member->objid);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return members;
}

List *
statements_contrib_members(void)
{
	Oid			extension = get_extension_oid(STATEMENTS_CONTRIB, true);

	return OidIsValid(extension) ? contrib_members(extension) : NIL;
}

/*
 * True if a command may change the extension's functions. Any user may run
 * CREATE EXTENSION IF NOT EXISTS for an extension that exists; without the
 * right to change its functions this does nothing. A command for another
 * extension may install this one with CASCADE. If it existed before, its
 * functions were left unchanged on purpose.
 */
static bool
may_make_members(const Node *statement)
{
	bool		named;

	if (IsA(statement, AlterExtensionStmt))
		return strcmp(((const AlterExtensionStmt *) statement)->extname,
					  STATEMENTS_CONTRIB) == 0;
	if (!IsA(statement, CreateExtensionStmt))
		return false;
	named = strcmp(((const CreateExtensionStmt *) statement)->extname,
				   STATEMENTS_CONTRIB) == 0;
	return (named && superuser()) ||
		!OidIsValid(get_extension_oid(STATEMENTS_CONTRIB, true));
}

bool
statements_adopts(const Node *statement)
{
	return tacho_pg_stat_statements && may_make_members(statement) &&
		!statements_contrib_preloaded();
}

/*
 * Changes one function, unless tacho lacks its symbol: a later version of the
 * extension may have more functions.
 */
static void
adopt(Relation functions, Oid function)
{
	HeapTuple	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(function));
	Datum		values[Natts_pg_proc] = {0};
	bool		nulls[Natts_pg_proc] = {false};
	bool		replaces[Natts_pg_proc] = {false};
	Datum		symbol;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return;
	symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	if (isnull || load_external_function(LIBRARY, TextDatumGetCString(symbol),
										 false, NULL) == NULL)
		return;
	values[Anum_pg_proc_probin - 1] = CStringGetTextDatum(LIBRARY);
	replaces[Anum_pg_proc_probin - 1] = true;
	tuple = heap_modify_tuple(tuple, RelationGetDescr(functions), values, nulls,
							  replaces);
	CatalogTupleUpdate(functions, &tuple->t_self, tuple);
}

void
statements_adopt_members(void)
{
	List	   *members;
	ListCell   *cell;
	Relation	functions;

	/* sees the functions that the command has made */
	CommandCounterIncrement();
	members = statements_contrib_members();
	if (members == NIL)
		return;
	functions = table_open(ProcedureRelationId, RowExclusiveLock);
	foreach(cell, members)
		adopt(functions, lfirst_oid(cell));
	table_close(functions, RowExclusiveLock);
	list_free(members);
	CommandCounterIncrement();
}
