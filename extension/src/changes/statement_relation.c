/*
 * statement_relation.c
 *	  The OID of the relation that a utility statement names.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "changes/statement_relation.h"
#include "core/compat.h"

/* Checks no privilege: a role may create in a schema that it may not use. */
static Oid
find(const char *schema, const char *name)
{
	Oid			namespace;

	if (schema == NULL)
		return RelnameGetRelid(name);
	namespace = get_namespace_oid(schema, true);
	return OidIsValid(namespace) ? get_relname_relid(name, namespace) : InvalidOid;
}

static Oid
find_relation(const RangeVar *relation)
{
	return relation != NULL ? find(relation->schemaname, relation->relname) : InvalidOid;
}

/* An index lies in the schema of its table. */
static Oid
find_index(const IndexStmt *index)
{
	Oid			table = index->idxname != NULL ? find_relation(index->relation) : InvalidOid;

	return OidIsValid(table) ?
		get_relname_relid(index->idxname, get_rel_namespace(table)) : InvalidOid;
}

/* The relation of a name: schema and relation, or relation alone. */
static Oid
find_named(const List *name)
{
	int			parts = list_length(name);

	return find(parts > 1 ? strVal(list_nth(name, parts - 2)) : NULL, strVal(llast(name)));
}

/* The relation that a DROP names, if it names only one. */
static Oid
find_dropped(const DropStmt *drop)
{
	return list_length(drop->objects) == 1 && IsA(linitial(drop->objects), List) ?
		find_named((const List *) linitial(drop->objects)) : InvalidOid;
}

static bool
is_relation(ObjectType type)
{
	return type == OBJECT_TABLE || type == OBJECT_INDEX || type == OBJECT_VIEW ||
		type == OBJECT_MATVIEW || type == OBJECT_SEQUENCE || type == OBJECT_FOREIGN_TABLE;
}

bool
statement_creates(const Node *statement)
{
	return IsA(statement, CreateStmt) || IsA(statement, CreateForeignTableStmt) ||
		IsA(statement, CreateTableAsStmt) || IsA(statement, ViewStmt) ||
		IsA(statement, IndexStmt) || IsA(statement, CreateSeqStmt);
}

Oid
statement_relation(const Node *statement)
{
#define FIELD(type, field) \
		case T_##type: \
			return find_relation(((const type *) statement)->field);

	switch (nodeTag(statement))
	{
			FIELD(CreateStmt, relation);
			FIELD(CreateForeignTableStmt, base.relation);
			FIELD(CreateTableAsStmt, into->rel);
			FIELD(ViewStmt, view);
			FIELD(CreateSeqStmt, sequence);
			FIELD(AlterTableStmt, relation);
			FIELD(AlterSeqStmt, sequence);
			FIELD(RefreshMatViewStmt, relation);
			FIELD(ReindexStmt, relation);
		case T_CompatClusterStmt:
			return find_relation(compat_cluster_relation((const CompatClusterStmt *) statement));
		case T_IndexStmt:
			return find_index((const IndexStmt *) statement);
		case T_DropStmt:
			return is_relation(((const DropStmt *) statement)->removeType) ?
				find_dropped((const DropStmt *) statement) : InvalidOid;
		case T_TruncateStmt:
			return list_length(((const TruncateStmt *) statement)->relations) == 1 ?
				find_relation(linitial(((const TruncateStmt *) statement)->relations)) : InvalidOid;
		case T_RenameStmt:
			{
				const RenameStmt *rename = (const RenameStmt *) statement;

				return is_relation(rename->renameType) || rename->renameType == OBJECT_COLUMN ||
					rename->renameType == OBJECT_TABCONSTRAINT ?
					find_relation(rename->relation) : InvalidOid;
			}
		case T_AlterObjectSchemaStmt:
			return find_relation(((const AlterObjectSchemaStmt *) statement)->relation);
		case T_AlterOwnerStmt:
			return find_relation(((const AlterOwnerStmt *) statement)->relation);
		default:
			return InvalidOid;
	}
#undef FIELD
}

/*
 * get_rel_persistence() raises an error for a relation that another session
 * has just dropped.
 */
static bool
is_temporary(Oid relation)
{
	HeapTuple	tuple;
	bool		temporary;

	if (!OidIsValid(relation))
		return false;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	if (!HeapTupleIsValid(tuple))
		return false;
	temporary = ((Form_pg_class) GETSTRUCT(tuple))->relpersistence == RELPERSISTENCE_TEMP;
	ReleaseSysCache(tuple);
	return temporary;
}

static bool
truncates_temporary(const TruncateStmt *truncate)
{
	ListCell   *cell;

	foreach(cell, truncate->relations)
		if (!is_temporary(find_relation(lfirst(cell))))
			return false;
	return true;
}

static bool
drops_temporary(const DropStmt *drop)
{
	ListCell   *cell;

	/* the names of other objects have parts that are no strings */
	if (!is_relation(drop->removeType))
		return false;
	foreach(cell, drop->objects)
		if (!is_temporary(find_named(lfirst(cell))))
			return false;
	return true;
}

bool
statement_changes_temporary(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_IndexStmt:
			return is_temporary(find_relation(((const IndexStmt *) statement)->relation));
		case T_TruncateStmt:
			return truncates_temporary((const TruncateStmt *) statement);
		case T_DropStmt:
			return drops_temporary((const DropStmt *) statement);
		default:
			return !statement_creates(statement) && is_temporary(statement_relation(statement));
	}
}

static bool
names_index(const Node *statement)
{
	return (IsA(statement, DropStmt) &&
			((const DropStmt *) statement)->removeType == OBJECT_INDEX) ||
		(IsA(statement, ReindexStmt) &&
		 ((const ReindexStmt *) statement)->kind == REINDEX_OBJECT_INDEX);
}

bool
statement_index_table(const Node *statement, Oid index, const char **schema, const char **table)
{
	Oid			relation;

	if (!names_index(statement))
		return false;
	relation = IndexGetRelation(index, true);
	if (!OidIsValid(relation))
		return false;
	*schema = get_namespace_name(get_rel_namespace(relation));
	*table = get_rel_name(relation);
	return *schema != NULL && *table != NULL;
}
