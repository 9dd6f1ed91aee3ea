/*
 * statement_target.c
 *	  The object that a utility statement creates, changes or drops, in words.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"

#include "changes/statement_target.h"

#define MOST_NAMED	3			/* of several objects */

/* A buffer of the caller; what does not fit is cut. */
typedef struct Words
{
	char	   *bytes;
	Size		size;
	Size		length;
} Words;

static void
put(Words *words, const char *text)
{
	if (text == NULL || words->length + 1 >= words->size)
		return;
	words->length += strlcpy(words->bytes + words->length, text,
							 words->size - words->length);
	words->length = Min(words->length, words->size - 1);
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

/* A name of several parts, such as schema and function. */
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

/* One object of a list, whose form depends on its kind. */
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
			put(words, ((const RoleSpec *) object)->rolename);
			break;
		default:
			break;
	}
}

/* "a, b, c and 4 more" */
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

/* "name on public.orders" */
static void
put_on(Words *words, const char *name, const RangeVar *relation)
{
	put(words, name);
	put(words, name != NULL ? " on " : "on ");
	put_relation(words, relation);
}

/* An object of a statement that names a relation in a field of its own. */
static void
put_either(Words *words, const RangeVar *relation, const Node *object)
{
	if (relation != NULL)
		put_relation(words, relation);
	else
		put_object(words, object);
}

/* " to old_orders" */
static void
put_to(Words *words, const char *name)
{
	put(words, " to ");
	put(words, name);
}

static void
put_rename(Words *words, const RenameStmt *rename)
{
	put_either(words, rename->relation, rename->object);
	if (rename->subname != NULL && rename->relation != NULL)
	{
		put(words, ".");
		put(words, rename->subname);
	}
	put_to(words, rename->newname);
}

static void
put_grant(Words *words, const GrantStmt *grant)
{
	put(words, "on ");
	put_objects(words, grant->objects);
	put(words, grant->is_grant ? " to " : " from ");
	put_objects(words, grant->grantees);
}

/* " SET work_mem", without the value, which may be a secret */
static void
put_set(Words *words, const VariableSetStmt *set)
{
	bool		resets = set->kind == VAR_RESET || set->kind == VAR_RESET_ALL;

	put(words, words->length > 0 ? " " : "");
	put(words, resets ? "RESET " : "SET ");
	put(words, set->kind == VAR_RESET_ALL ? "ALL" : set->name);
}

static void
put_role_set(Words *words, const AlterRoleSetStmt *alter)
{
	if (alter->role != NULL)
		put_object(words, (const Node *) alter->role);
	else
		put(words, "ALL");
	if (alter->database != NULL)
	{
		put(words, " in database ");
		put(words, alter->database);
	}
	put_set(words, alter->setstmt);
}

/* The fields in which statements name their object. */
static void
put_target(Words *words, const Node *statement)
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
			CASE(CreateStmt, put_relation(words, s->relation));
			CASE(CreateTableAsStmt, put_relation(words, s->into->rel));
			CASE(ViewStmt, put_relation(words, s->view));
			CASE(IndexStmt, put_on(words, s->idxname, s->relation));
			CASE(AlterTableStmt, put_relation(words, s->relation));
			CASE(AlterTableMoveAllStmt, put(words, s->orig_tablespacename));
			CASE(CreateSeqStmt, put_relation(words, s->sequence));
			CASE(AlterSeqStmt, put_relation(words, s->sequence));
			CASE(CreateTrigStmt, put_on(words, s->trigname, s->relation));
			CASE(CreatePolicyStmt, put_on(words, s->policy_name, s->table));
			CASE(AlterPolicyStmt, put_on(words, s->policy_name, s->table));
			CASE(RuleStmt, put_on(words, s->rulename, s->relation));
			CASE(CreateStatsStmt, put_name(words, s->defnames));
			CASE(AlterStatsStmt, put_name(words, s->defnames));
			CASE(RefreshMatViewStmt, put_relation(words, s->relation));
			CASE(TruncateStmt, put_objects(words, s->relations));
			CASE(DropStmt, put_objects(words, s->objects));
			CASE(RenameStmt, put_rename(words, s));
			CASE(AlterObjectSchemaStmt, put_either(words, s->relation, s->object); put_to(words, s->newschema));
			CASE(AlterOwnerStmt, put_either(words, s->relation, s->object));
			CASE(CreateFunctionStmt, put_name(words, s->funcname));
			CASE(AlterFunctionStmt, put_name(words, s->func->objname));
			CASE(DefineStmt, put_name(words, s->defnames));
			CASE(CreateDomainStmt, put_name(words, s->domainname));
			CASE(AlterDomainStmt, put_name(words, s->typeName));
			CASE(CompositeTypeStmt, put_relation(words, s->typevar));
			CASE(CreateEnumStmt, put_name(words, s->typeName));
			CASE(AlterEnumStmt, put_name(words, s->typeName));
			CASE(CreateRangeStmt, put_name(words, s->typeName));
			CASE(CreateSchemaStmt, put(words, s->schemaname));
			CASE(CreateExtensionStmt, put(words, s->extname));
			CASE(AlterExtensionStmt, put(words, s->extname));
			CASE(CreatedbStmt, put(words, s->dbname));
			CASE(AlterDatabaseStmt, put(words, s->dbname));
			CASE(AlterDatabaseSetStmt, put(words, s->dbname); put_set(words, s->setstmt));
			CASE(AlterSystemStmt, put_set(words, s->setstmt));
			CASE(DropdbStmt, put(words, s->dbname));
			CASE(CreateRoleStmt, put(words, s->role));
			CASE(AlterRoleStmt, put_object(words, (const Node *) s->role));
			CASE(AlterRoleSetStmt, put_role_set(words, s));
			CASE(DropRoleStmt, put_objects(words, s->roles));
			CASE(GrantStmt, put_grant(words, s));
			CASE(GrantRoleStmt, put_objects(words, s->grantee_roles));
			CASE(CreateTableSpaceStmt, put(words, s->tablespacename));
			CASE(DropTableSpaceStmt, put(words, s->tablespacename));
			CASE(CreatePublicationStmt, put(words, s->pubname));
			CASE(AlterPublicationStmt, put(words, s->pubname));
			CASE(CreateSubscriptionStmt, put(words, s->subname));
			CASE(AlterSubscriptionStmt, put(words, s->subname));
			CASE(DropSubscriptionStmt, put(words, s->subname));
			CASE(CreateForeignServerStmt, put(words, s->servername));
			CASE(AlterForeignServerStmt, put(words, s->servername));
		case T_CreateForeignTableStmt:
			put_relation(words, ((const CreateForeignTableStmt *) statement)->base.relation);
			break;
		default:
			break;
	}
#undef CASE
}

void
statement_target(const Node *statement, char *target, Size size)
{
	Words		words = {.bytes = target, .size = size};

	target[0] = '\0';
	put_target(&words, statement);
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
