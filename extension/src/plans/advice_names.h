/*
 * advice_names.h
 *	  The names of relations in pg_plan_advice (PostgreSQL 19).
 *
 * The name has the alias, a number and the name of the query level, such as
 * "o#2@expr_1": the second relation with the alias o in the level expr_1.
 * Older majors have no such names.
 *
 * Nothing here raises an error, allocates memory, or looks anything up in a
 * catalog.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ADVICE_NAMES_H
#define TACHO_ADVICE_NAMES_H

#include "nodes/plannodes.h"

#include "plans/plan_text.h"

/* Begin with all bytes 0 but `stmt`. */
typedef struct AdviceNames
{
	const PlannedStmt *stmt;
	int			steps;			/* entries of lists that were visited */
	bool		unknown;		/* a name was not found */
	int			place;			/* in appendRelations, of the last child */
	Index		parent;			/* of the last relation; 0 = none */
	int			occurrence;		/* number of the last relation */
} AdviceNames;

/* False if a name was not found: after too many steps, or too long a name. */
extern bool advice_names_are_known(const AdviceNames *names);

/*
 * The number of a relation among the relations of its query level with the
 * same alias, from 1. A partition has the number of its table.
 */
extern int	advice_occurrence(AdviceNames *names, Index relation);

/* The name of the query level of a relation; NULL for the query itself. */
extern const char *advice_query_level(const AdviceNames *names, Index relation);

/* Adds the whole name of a relation. */
extern void advice_name(PlanText *text, AdviceNames *names, Index relation);

/* The next of `relations` that advice can name, after `relation`; -1 = none. */
extern int	advice_next(const AdviceNames *names, const Bitmapset *relations, int relation);

/*
 * The relation that was scanned above a node by a scan that the planner left
 * out: a subquery. Finds the next one from *place on, the lowest first. NULL
 * after the last one.
 */
extern const Bitmapset *advice_elided(AdviceNames *names, const Plan *plan, int *place);

#endif							/* TACHO_ADVICE_NAMES_H */
