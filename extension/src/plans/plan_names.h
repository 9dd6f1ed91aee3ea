/*
 * plan_names.h
 *	  Names of functions, operators, types and schemas, without a lookup in
 *	  the catalogs.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_NAMES_H
#define TACHO_PLAN_NAMES_H

/*
 * The name of a function, an operator or a type of PostgreSQL itself. NULL for
 * one that a user or an extension has made.
 */
extern const char *builtin_function(Oid function);
extern const char *builtin_operator(Oid operator);
extern const char *builtin_type(Oid type);

/*
 * Looks up the name of a schema and keeps it for schema_name(). For the
 * planner, which looks up names itself: may raise an error.
 */
extern void schema_name_keep(Oid schema);

/*
 * The name of a schema that schema_name_keep() has kept; NULL if it has not,
 * or if the schema may have a new name. Never raises an error.
 */
extern const char *schema_name(Oid schema);

#endif							/* TACHO_PLAN_NAMES_H */
