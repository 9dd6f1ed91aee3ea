/*
 * plan_column.h
 *	  Finds the columns that Vars of a plan stand for, and their names.
 *
 * Nothing here raises an error, allocates memory, or looks anything up in a
 * catalog.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_COLUMN_H
#define TACHO_PLAN_COLUMN_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "plans/plan_text.h"

/* Names and limits that all expressions of a plan share. */
typedef struct PlanNames
{
	const PlannedStmt *stmt;
	const EState *estate;		/* its open relations have the names */

	/*
	 * By place in the range table, if it has at most `numbered` entries: the
	 * number that makes the alias unique, 0 = none.
	 */
	const uint16 *numbers;
	int			numbered;

	bool		prefix;			/* columns have the alias before them */
	bool		has_parameter;	/* a parameter of the query was printed */

	/* output columns that may still be visited to find the names of Vars */
	int			steps;
} PlanNames;

/* The open relation of a range table entry, or NULL. */
extern Relation plan_relation(const PlanNames *names, Index relation);

/* Adds the alias of a range table entry, with its number. */
extern void plan_text_alias(PlanText *text, const PlanNames *names, Index relation);

/*
 * The alias as the query has it, without the number that makes it unique. Sets
 * *numbered if it has a number.
 */
extern const char *plan_query_alias(const PlanNames *names, Index relation, bool *numbered);

/*
 * True if the relation is a partition in this plan. `*place` is where the
 * search begins, at first 0. Partitions are visited in the order of the list,
 * so the search goes on at the last one.
 */
extern bool plan_is_partition(const PlanNames *names, Index relation, int *place);

/* Adds a column of a range table entry. */
extern void plan_text_column(PlanText *text, const PlanNames *names, const Var *var);

/* The output column with a number; NULL if there is none. */
extern const TargetEntry *plan_output_column(PlanNames *names, const List *columns,
											 AttrNumber number);

/* True if the Var is a column of a node below, or of an index. */
extern bool plan_is_special(const Var *var);

/*
 * The expression that a special Var stands for: an output column of a node
 * below. Sets *below to that node. NULL if there is no such column.
 */
extern const Node *plan_behind(PlanNames *names, const Plan *plan, const Var *var,
							   const Plan **below);

#endif							/* TACHO_PLAN_COLUMN_H */
