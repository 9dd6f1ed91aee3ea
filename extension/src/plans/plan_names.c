/*
 * plan_names.c
 *	  Names of functions, operators, types and schemas, without a lookup in
 *	  the catalogs.
 *
 * A lookup may read a table, so it may fail with an error or wait for a lock.
 * Trees of plans are made where neither may happen. PostgreSQL's own objects
 * keep their OIDs for ever, so their names come from lists in this library.
 * Each list is one structure with a member for each name. So the library has
 * no pointers that the dynamic linker must adjust.
 *
 * Schemas have no fixed OIDs. After planning a scan of a relation, the planner
 * hook looks up the name of its schema and keeps it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "catalog/pg_namespace.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/compat.h"
#include "plans/plan_names.h"

#define KEPT_SCHEMAS 64			/* power of two; 4 kB once used */

typedef struct BuiltinName
{
	uint16		oid;
	uint16		place;			/* in its list of names */
} BuiltinName;

typedef struct KeptSchema
{
	Oid			oid;			/* InvalidOid = empty */
	NameData	name;
} KeptSchema;

static KeptSchema kept[KEPT_SCHEMAS];

#define NAME(oid, name) char of_##oid[sizeof(name)];
typedef struct FunctionNames
{
#include "plans/builtin_functions.h"
} FunctionNames;

typedef struct OperatorNames
{
#include "plans/builtin_operators.h"
} OperatorNames;

typedef struct TypeNames
{
#include "plans/builtin_types.h"
} TypeNames;
#undef NAME

#define NAME(oid, name) name,
static const FunctionNames function_names = {
#include "plans/builtin_functions.h"
};

static const OperatorNames operator_names = {
#include "plans/builtin_operators.h"
};

static const TypeNames type_names = {
#include "plans/builtin_types.h"
};
#undef NAME

#define NAME(oid, name) {oid, offsetof(FunctionNames, of_##oid)},
static const BuiltinName functions[] = {
#include "plans/builtin_functions.h"
};
#undef NAME

#define NAME(oid, name) {oid, offsetof(OperatorNames, of_##oid)},
static const BuiltinName operators[] = {
#include "plans/builtin_operators.h"
};
#undef NAME

#define NAME(oid, name) {oid, offsetof(TypeNames, of_##oid)},
static const BuiltinName types[] = {
#include "plans/builtin_types.h"
};
#undef NAME

StaticAssertDecl(sizeof(FunctionNames) <= PG_UINT16_MAX, "places of names must fit");

/* The lists are sorted by OID. */
static const char *
find(const BuiltinName *list, int count, const void *names, Oid oid)
{
	int			low = 0;
	int			high = count - 1;

	while (low <= high)
	{
		int			middle = (low + high) / 2;

		if (list[middle].oid == oid)
			return (const char *) names + list[middle].place;
		if (list[middle].oid < oid)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return NULL;
}

const char *
builtin_function(Oid function)
{
	return find(functions, lengthof(functions), &function_names, function);
}

const char *
builtin_operator(Oid operator)
{
	return find(operators, lengthof(operators), &operator_names, operator);
}

const char *
builtin_type(Oid type)
{
	return find(types, lengthof(types), &type_names, type);
}

static inline KeptSchema *
place_of(Oid schema)
{
	return &kept[schema & (KEPT_SCHEMAS - 1)];
}

/* A schema was renamed or dropped; `hash` does not tell which one. */
static void
forget_schemas(Datum argument, int cache, uint32 hash)
{
	memset(kept, 0, sizeof(kept));
}

void
schema_name_keep(Oid schema)
{
	static bool registered = false;
	KeptSchema *place = place_of(schema);
	char	   *name;

	if (place->oid == schema)
		return;
	if (!registered)
	{
		CacheRegisterSyscacheCallback(NAMESPACEOID, forget_schemas, (Datum) 0);
		registered = true;
	}
	name = get_namespace_name(schema);
	if (name == NULL)
		return;
	namestrcpy(&place->name, name);
	place->oid = schema;
	pfree(name);
}

const char *
schema_name(Oid schema)
{
	const KeptSchema *place = place_of(schema);

	if (schema == PG_CATALOG_NAMESPACE)
		return "pg_catalog";
	if (schema == PG_TOAST_NAMESPACE)
		return "pg_toast";
	return OidIsValid(schema) && place->oid == schema ? NameStr(place->name) : NULL;
}
