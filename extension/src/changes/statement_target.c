/*
 * statement_target.c
 *	  The object that a utility statement creates, changes or drops, as text.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "mb/pg_wchar.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "tcop/utility.h"

#include "changes/statement_target.h"
#include "core/compat.h"

#define MOST_NAMED	3			/* most objects listed by name */

/* Text in a buffer of the caller; cut behind a character if the buffer is full. */
typedef struct Words
{
	char	   *bytes;
	Size		size;
	Size		length;
} Words;

static void
put(Words *words, const char *text)
{
	Size		length = text != NULL ? strlen(text) : 0;
	Size		room = words->size - words->length - 1;

	if (length > room)
	{
		length = pg_mbcliplen(text, length, room);
		words->size = words->length + length + 1;	/* nothing follows */
	}
	if (length > 0)
		memcpy(words->bytes + words->length, text, length);
	words->length += length;
	words->bytes[words->length] = '\0';
}

static void
put_relation(Words *words, const RangeVar *relation)
{
	if (relation == NULL)
		return;
	if (relation->schemaname != NULL)
	{
		put(words, relation->schemaname);
		put(words, ".");
	}
	put(words, relation->relname);
}

/* Puts a name of several parts, such as schema and function. */
static void
put_name(Words *words, const List *name)
{
	ListCell   *part;
	bool		first = true;

	foreach(part, name)
	{
		if (!IsA(lfirst(part), String))
			continue;
		put(words, first ? "" : ".");
		put(words, strVal(lfirst(part)));
		first = false;
	}
}

/* The name of a role, or the word that stands for a role. */
static const char *
role_name(const RoleSpec *role)
{
	switch (role->roletype)
	{
		case ROLESPEC_PUBLIC:
			return "PUBLIC";
		case ROLESPEC_CURRENT_ROLE:
			return "CURRENT_ROLE";
		case ROLESPEC_CURRENT_USER:
			return "CURRENT_USER";
		case ROLESPEC_SESSION_USER:
			return "SESSION_USER";
		default:
			return role->rolename;
	}
}

/*
 * Puts the name of one object of a list. The kind of node that has the name
 * depends on the kind of object.
 */
static void
put_object(Words *words, const Node *object)
{
	if (object == NULL)
		return;
	switch (nodeTag(object))
	{
		case T_String:
			put(words, strVal(object));
			break;
		case T_List:
			put_name(words, (const List *) object);
			break;
		case T_RangeVar:
			put_relation(words, (const RangeVar *) object);
			break;
		case T_ObjectWithArgs:
			put_name(words, ((const ObjectWithArgs *) object)->objname);
			break;
		case T_TypeName:
			put_name(words, ((const TypeName *) object)->names);
			break;
		case T_RoleSpec:
			put(words, role_name((const RoleSpec *) object));
			break;
		default:
			break;
	}
}

/* Puts the names of a list's objects, as "a, b, c and 4 more". */
static void
put_objects(Words *words, const List *objects)
{
	char		more[32];
	int			count = list_length(objects);

	for (int i = 0; i < Min(count, MOST_NAMED); i++)
	{
		put(words, i == 0 ? "" : ", ");
		put_object(words, list_nth(objects, i));
	}
	if (count <= MOST_NAMED)
		return;
	snprintf(more, sizeof(more), " and %d more", count - MOST_NAMED);
	put(words, more);
}

/* Puts "name" as the object, and "on public.orders" as the rest. */
static void
put_on(Words *object, Words *rest, const char *name, const RangeVar *relation)
{
	put(object, name);
	put(rest, "on ");
	put_relation(rest, relation);
}

/*
 * Puts the object of an ALTER statement. The parser stores a table or view in
 * the field `relation`, any other object in `object`.
 */
static void
put_either(Words *words, const RangeVar *relation, const Node *object)
{
	if (relation != NULL)
		put_relation(words, relation);
	else
		put_object(words, object);
}

/* Puts the new name behind the rest, as "to old_orders". */
static void
put_to(Words *rest, const char *name)
{
	put(rest, rest->length > 0 ? " to " : "to ");
	put(rest, name);
}

/* True if the statement renames a part of its relation. */
static bool
renames_part(ObjectType type)
{
	return type == OBJECT_COLUMN || type == OBJECT_ATTRIBUTE ||
		type == OBJECT_TABCONSTRAINT || type == OBJECT_DOMCONSTRAINT;
}

/*
 * Puts the object and the rest of a RENAME: "orders" and "note to notes"; for
 * a trigger "checked" and "on orders to verified"; for a role its old name.
 */
static void
put_rename(Words *object, Words *rest, const RenameStmt *rename)
{
	if (rename->relation == NULL && rename->object == NULL)
		put(object, rename->subname);
	else if (rename->subname != NULL && !renames_part(rename->renameType))
		put_on(object, rest, rename->subname, rename->relation);
	else
	{
		put_either(object, rename->relation, rename->object);
		put(rest, rename->subname);
	}
	put_to(rest, rename->newname);
}

static void
put_cluster(Words *object, Words *rest, const CompatClusterStmt *cluster)
{
	put_relation(object, compat_cluster_relation(cluster));
	if (cluster->indexname == NULL)
		return;
	put(rest, "using ");
	put(rest, cluster->indexname);
}

/* REINDEX SYSTEM and REINDEX DATABASE may have no name. */
static void
put_reindex(Words *object, const ReindexStmt *reindex)
{
	put_relation(object, reindex->relation);
	put(object, reindex->name);
}

static void
put_grant(Words *object, Words *rest, const GrantStmt *grant)
{
	put_objects(object, grant->objects);
	put(rest, grant->is_grant ? "to " : "from ");
	put_objects(rest, grant->grantees);
}

static bool
resets(const VariableSetStmt *set)
{
	return set->kind == VAR_RESET || set->kind == VAR_RESET_ALL;
}

static void
put_setting(Words *words, const VariableSetStmt *set)
{
	put(words, set->kind == VAR_RESET_ALL ? "ALL" : set->name);
}

/*
 * Puts "SET work_mem" behind the rest, without the value, which may be a
 * secret.
 */
static void
put_set(Words *rest, const VariableSetStmt *set)
{
	put(rest, rest->length > 0 ? " " : "");
	put(rest, resets(set) ? "RESET " : "SET ");
	put_setting(rest, set);
}

static void
put_role_set(Words *object, Words *rest, const AlterRoleSetStmt *alter)
{
	if (alter->role != NULL)
		put_object(object, (const Node *) alter->role);
	else
		put(object, "ALL");
	if (alter->database != NULL)
	{
		put(rest, "in database ");
		put(rest, alter->database);
	}
	put_set(rest, alter->setstmt);
}

/*
 * Puts object and rest from the fields in which each kind of statement names
 * them.
 */
static void
put_target(Words *object, Words *rest, const Node *statement)
{
#define CASE(type, call) \
		case T_##type: \
		{ \
			const type *s = (const type *) statement; \
			call; \
			break; \
		}

	switch (nodeTag(statement))
	{
			CASE(CreateStmt, put_relation(object, s->relation));
			CASE(CreateTableAsStmt, put_relation(object, s->into->rel));
			CASE(ViewStmt, put_relation(object, s->view));
			CASE(IndexStmt, put_on(object, rest, s->idxname, s->relation));
			CASE(AlterTableStmt, put_relation(object, s->relation));
			CASE(AlterTableMoveAllStmt, put(object, s->orig_tablespacename));
			CASE(CreateSeqStmt, put_relation(object, s->sequence));
			CASE(AlterSeqStmt, put_relation(object, s->sequence));
			CASE(CreateTrigStmt, put_on(object, rest, s->trigname, s->relation));
			CASE(CreatePolicyStmt, put_on(object, rest, s->policy_name, s->table));
			CASE(AlterPolicyStmt, put_on(object, rest, s->policy_name, s->table));
			CASE(RuleStmt, put_on(object, rest, s->rulename, s->relation));
			CASE(CreateStatsStmt, put_name(object, s->defnames));
			CASE(AlterStatsStmt, put_name(object, s->defnames));
			CASE(CommentStmt, put_object(object, s->object));
			CASE(SecLabelStmt, put_object(object, s->object));
			CASE(RefreshMatViewStmt, put_relation(object, s->relation));
			CASE(TruncateStmt, put_objects(object, s->relations));
			CASE(CompatClusterStmt, put_cluster(object, rest, s));
			CASE(ReindexStmt, put_reindex(object, s));
			CASE(DropStmt, put_objects(object, s->objects));
			CASE(RenameStmt, put_rename(object, rest, s));
			CASE(AlterObjectSchemaStmt, put_either(object, s->relation, s->object); put_to(rest, s->newschema));
			CASE(AlterOwnerStmt, put_either(object, s->relation, s->object));
			CASE(CreateFunctionStmt, put_name(object, s->funcname));
			CASE(AlterFunctionStmt, put_name(object, s->func->objname));
			CASE(DefineStmt, put_name(object, s->defnames));
			CASE(CreateDomainStmt, put_name(object, s->domainname));
			CASE(AlterDomainStmt, put_name(object, s->typeName));
			CASE(CompositeTypeStmt, put_relation(object, s->typevar));
			CASE(CreateEnumStmt, put_name(object, s->typeName));
			CASE(AlterEnumStmt, put_name(object, s->typeName));
			CASE(CreateRangeStmt, put_name(object, s->typeName));
			CASE(CreateSchemaStmt, put(object, s->schemaname));
			CASE(CreateExtensionStmt, put(object, s->extname));
			CASE(AlterExtensionStmt, put(object, s->extname));
			CASE(CreatedbStmt, put(object, s->dbname));
			CASE(AlterDatabaseStmt, put(object, s->dbname));
			CASE(AlterDatabaseSetStmt, put(object, s->dbname); put_set(rest, s->setstmt));
			CASE(AlterSystemStmt, put_setting(object, s->setstmt));
			CASE(DropdbStmt, put(object, s->dbname));
			CASE(CreateRoleStmt, put(object, s->role));
			CASE(AlterRoleStmt, put_object(object, (const Node *) s->role));
			CASE(AlterRoleSetStmt, put_role_set(object, rest, s));
			CASE(DropRoleStmt, put_objects(object, s->roles));
			CASE(GrantStmt, put_grant(object, rest, s));
			CASE(GrantRoleStmt, put_objects(object, s->grantee_roles));
			CASE(CreateTableSpaceStmt, put(object, s->tablespacename));
			CASE(DropTableSpaceStmt, put(object, s->tablespacename));
			CASE(CreatePublicationStmt, put(object, s->pubname));
			CASE(AlterPublicationStmt, put(object, s->pubname));
			CASE(CreateSubscriptionStmt, put(object, s->subname));
			CASE(AlterSubscriptionStmt, put(object, s->subname));
			CASE(DropSubscriptionStmt, put(object, s->subname));
			CASE(CreateForeignServerStmt, put(object, s->servername));
			CASE(AlterForeignServerStmt, put(object, s->servername));
		case T_CreateForeignTableStmt:
			put_relation(object, ((const CreateForeignTableStmt *) statement)->base.relation);
			break;
		default:
			break;
	}
#undef CASE
}

/* The name of a kind of object, "" for a rare kind. */
static const char *
class_of_type(ObjectType type)
{
	switch (type)
	{
		case OBJECT_COLUMN:
			return "column";
		case OBJECT_DATABASE:
			return "database";
		case OBJECT_EXTENSION:
			return "extension";
		case OBJECT_FUNCTION:
			return "function";
		case OBJECT_INDEX:
			return "index";
		case OBJECT_MATVIEW:
			return "materialized view";
		case OBJECT_PARAMETER_ACL:
			return "setting";
		case OBJECT_PROCEDURE:
			return "procedure";
		case OBJECT_ROLE:
			return "role";
		case OBJECT_SCHEMA:
			return "schema";
		case OBJECT_SEQUENCE:
			return "sequence";
		case OBJECT_TABCONSTRAINT:
			return "constraint";
		case OBJECT_TABLE:
			return "table";
		case OBJECT_TABLESPACE:
			return "tablespace";
		case OBJECT_TRIGGER:
			return "trigger";
		case OBJECT_TYPE:
			return "type";
		case OBJECT_VIEW:
			return "view";
		default:
			return "";
	}
}

/* The kind of object that a GRANT or REVOKE names. */
static const char *
class_of_grant(const GrantStmt *grant)
{
	return grant->targtype == ACL_TARGET_ALL_IN_SCHEMA ? "schema" : class_of_type(grant->objtype);
}

static const char *
class_of_reindex(const ReindexStmt *reindex)
{
	switch (reindex->kind)
	{
		case REINDEX_OBJECT_INDEX:
			return "index";
		case REINDEX_OBJECT_TABLE:
			return "table";
		case REINDEX_OBJECT_SCHEMA:
			return "schema";
		default:
			return "database";
	}
}

/* The kind in a tag: "materialized view" from "DROP MATERIALIZED VIEW". */
static const char *
class_of_tag(const char *tag)
{
	static const char *const verbs[] = {
		"CREATE ", "ALTER ", "DROP ", "TRUNCATE ", "REFRESH ", "GRANT ", "REVOKE ",
	};

	for (int i = 0; i < lengthof(verbs); i++)
		if (strncmp(tag, verbs[i], strlen(verbs[i])) == 0)
			return tag + strlen(verbs[i]);
	return "";
}

/* Copies a name, in lower case. */
static void
put_class(char *object_class, const char *name)
{
	int			i;

	for (i = 0; name[i] != '\0' && i < CLASS_BYTES - 1; i++)
		object_class[i] = pg_ascii_tolower(name[i]);
	object_class[i] = '\0';
}

static const char *
class_of(const Node *statement, const char *tag)
{
	switch (nodeTag(statement))
	{
		case T_AlterSystemStmt:
			return "setting";
		case T_CreateTableAsStmt:
			return ((const CreateTableAsStmt *) statement)->objtype == OBJECT_MATVIEW ?
				"materialized view" : "table";
		case T_GrantStmt:
			return class_of_grant((const GrantStmt *) statement);
		case T_CommentStmt:
			return class_of_type(((const CommentStmt *) statement)->objtype);
		case T_SecLabelStmt:
			return class_of_type(((const SecLabelStmt *) statement)->objtype);
		case T_ReindexStmt:
			return class_of_reindex((const ReindexStmt *) statement);
		case T_CompatClusterStmt:
			return "table";
		case T_DropOwnedStmt:
			return "";
		default:
			return class_of_tag(tag);
	}
}

void
statement_target(Node *statement, StatementTarget *target)
{
	const char *tag = GetCommandTagName(CreateCommandTag(statement));
	Words		object = {.bytes = target->object, .size = sizeof(target->object)};
	Words		rest = {.bytes = target->rest, .size = sizeof(target->rest)};

	target->object[0] = target->rest[0] = '\0';
	put_target(&object, &rest, statement);
	put_class(target->object_class, class_of(statement, tag));
	strlcpy(target->command, tag, sizeof(target->command));
	if (IsA(statement, AlterSystemStmt))
		strlcat(target->command,
				resets(((AlterSystemStmt *) statement)->setstmt) ? " RESET" : " SET",
				sizeof(target->command));
}

/* EXPLAIN counts as the statement that it executes. */
Node *
statement_executed(Node *statement)
{
	Node	   *query;

	if (!IsA(statement, ExplainStmt) || GetCommandLogLevel(statement) != LOGSTMT_DDL)
		return statement;
	query = ((ExplainStmt *) statement)->query;
	return IsA(query, Query) && ((Query *) query)->utilityStmt != NULL ?
		((Query *) query)->utilityStmt : statement;
}

static bool
is_temporary(const RangeVar *relation)
{
	return relation != NULL &&
		(relation->relpersistence == RELPERSISTENCE_TEMP ||
		 (relation->schemaname != NULL &&
		  strncmp(relation->schemaname, "pg_temp", strlen("pg_temp")) == 0));
}

bool
statement_is_temporary(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateStmt:
			return is_temporary(((const CreateStmt *) statement)->relation);
		case T_CreateTableAsStmt:
			return is_temporary(((const CreateTableAsStmt *) statement)->into->rel);
		case T_CreateSeqStmt:
			return is_temporary(((const CreateSeqStmt *) statement)->sequence);
		case T_ViewStmt:
			return is_temporary(((const ViewStmt *) statement)->view);
		default:
			return false;
	}
}

/* True for IF EXISTS and IF NOT EXISTS, of the table or of a part of it. */
static bool
alteration_may_do_nothing(const AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
		if (lfirst_node(AlterTableCmd, cell)->missing_ok)
			return true;
	return statement->missing_ok;
}

bool
statement_may_do_nothing(const Node *statement)
{
#define FIELD(type, field) \
		case T_##type: \
			return ((const type *) statement)->field;

	switch (nodeTag(statement))
	{
		case T_AlterTableStmt:
			return alteration_may_do_nothing((const AlterTableStmt *) statement);
		case T_CompatClusterStmt:
			return compat_cluster_relation((const CompatClusterStmt *) statement) == NULL;
		case T_ReindexStmt:
			return ((const ReindexStmt *) statement)->relation == NULL;
			FIELD(CreateStmt, if_not_exists);
			FIELD(CreateForeignTableStmt, base.if_not_exists);
			FIELD(CreateTableAsStmt, if_not_exists);
			FIELD(CreateSeqStmt, if_not_exists);
			FIELD(CreateSchemaStmt, if_not_exists);
			FIELD(CreateExtensionStmt, if_not_exists);
			FIELD(IndexStmt, if_not_exists);
			FIELD(DropStmt, missing_ok);
			FIELD(DropRoleStmt, missing_ok);
			FIELD(DropdbStmt, missing_ok);
			FIELD(DropTableSpaceStmt, missing_ok);
			FIELD(DropUserMappingStmt, missing_ok);
			FIELD(DropSubscriptionStmt, missing_ok);
			FIELD(RenameStmt, missing_ok);
			FIELD(AlterObjectSchemaStmt, missing_ok);
			FIELD(AlterSeqStmt, missing_ok);
			FIELD(AlterStatsStmt, missing_ok);
			FIELD(AlterDomainStmt, missing_ok);
			FIELD(AlterTSConfigurationStmt, missing_ok);
			FIELD(AlterEnumStmt, skipIfNewValExists);
			FIELD(CreateForeignServerStmt, if_not_exists);
			FIELD(CreateUserMappingStmt, if_not_exists);
			FIELD(CreateStatsStmt, if_not_exists);
			FIELD(DefineStmt, if_not_exists);
		default:
			return false;
	}
#undef FIELD
}
