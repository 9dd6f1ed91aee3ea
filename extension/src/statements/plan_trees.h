/*
 * plan_trees.h
 *	  Offers the tree of each plan to the history, once a day.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_TREES_H
#define TACHO_PLAN_TREES_H

#include "executor/execdesc.h"

#include "statements/tree_offer.h"

/*
 * Offers the tree of an execution that has just been started, if the history
 * lacks it. `eflags` is the argument of ExecutorStart. `followed`: the end of the
 * execution will be reported to plan_measures_end(), so its rows may be counted.
 * Raises no error, and waits for nothing.
 */
extern void plan_trees_see(const QueryDesc *query, int64 plan_id, int eflags, bool followed);

/*
 * Sampler: calls `take` for the plans whose trees were left out last.
 * plan_trees_forget_left_out() makes backends report them again.
 */
extern void plan_trees_left_out(void (*take) (int64 plan_id, TreeLeftOut reason));
extern void plan_trees_forget_left_out(void);

#endif							/* TACHO_PLAN_TREES_H */
