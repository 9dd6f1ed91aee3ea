/*
 * plan_expression.h
 *	  Prints conditions and keys of plans, without any value.
 *
 * Nothing here raises an error, allocates memory, takes a lock, or looks
 * anything up in a catalog. No code here reads the value of a constant: each
 * one is printed as a question mark.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_EXPRESSION_H
#define TACHO_PLAN_EXPRESSION_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "plans/plan_column.h"
#include "plans/plan_text.h"

/* A node of the plan and the way to it from the root. */
typedef struct PlanNode
{
	const Plan *plan;
	const struct PlanNode *above;	/* NULL for the root */
	const SubPlan *use;			/* the node is the root of this subplan */
} PlanNode;

/* Adds an expression of `node`. */
extern void plan_text_expression(PlanText *text, PlanNames *names,
								 const PlanNode *node, const Node *expression);

/* Adds a list of conditions joined with `word`: "AND" or "OR". */
extern void plan_text_conditions(PlanText *text, PlanNames *names, const PlanNode *node,
								 const List *conditions, const char *word);

/* Adds a list of expressions, separated by commas. */
extern void plan_text_list(PlanText *text, PlanNames *names, const PlanNode *node,
						   const List *expressions);

/*
 * Adds the output columns of `node` with these numbers. `operators` and
 * `nulls_first` give the order; NULL for keys without one.
 */
extern void plan_text_columns(PlanText *text, PlanNames *names, const PlanNode *node,
							  int count, const AttrNumber *columns,
							  const Oid *operators, const bool *nulls_first);

#endif							/* TACHO_PLAN_EXPRESSION_H */
