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
 * Offers the tree of an execution that has just been started, if the history
 * lacks it. `eflags` is the argument of ExecutorStart. Raises no error, and
 * waits for nothing.
 */
extern void plan_trees_see(const QueryDesc *query, int64 plan_id, int eflags);

#endif							/* TACHO_PLAN_TREES_H */
