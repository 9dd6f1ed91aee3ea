/*
 * plan_trees.h
 *	  Offers the tree of each plan to the history, once a day.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_TREES_H
#define TACHO_PLAN_TREES_H

#include "executor/execdesc.h"

/*
 * Why a plan has no tree: the labels "left_out" of catalog/samples.h. There is
 * no room if the ring is full or busy, or if another process took the last
 * turn.
 */
typedef enum TreeLeftOut
{
	TREE_KEPT = 0, TREE_OFF, TREE_LIMIT_OF_DATABASE, TREE_LIMIT_OF_SERVER,
	TREE_SHARE_OF_DAY, TREE_NO_ROOM, TREE_NO_MEMORY
} TreeLeftOut;

/*
 * Offers the tree of an execution that has just been started, if the history
 * lacks it. `eflags` is the argument of ExecutorStart; `for_values` is of
 * plan_is_for_values(). Raises no error, and waits for nothing.
 */
extern void plan_trees_see(const QueryDesc *query, int64 plan_id, int eflags, bool for_values);

/*
 * Sampler: calls `take` for the plans whose trees were left out last.
 * plan_trees_forget_left_out() makes backends report them again.
 */
extern void plan_trees_left_out(void (*take) (int64 plan_id, TreeLeftOut reason));
extern void plan_trees_forget_left_out(void);

#endif							/* TACHO_PLAN_TREES_H */
