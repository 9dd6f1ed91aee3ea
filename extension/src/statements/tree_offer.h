/*
 * tree_offer.h
 *	  Offers the tree of an execution to the history.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TREE_OFFER_H
#define TACHO_TREE_OFFER_H

#include "executor/execdesc.h"

#include "plans/plan_actuals.h"

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
 * Makes the tree of an execution by the role `user` and puts it into the ring,
 * with counted rows unless `end` is PLAN_NOT_COUNTED (plan_tree.h). To be called
 * with held interrupts. Returns TREE_KEPT, TREE_NO_ROOM or TREE_NO_MEMORY.
 * Raises no error, and waits for nothing.
 */
extern TreeLeftOut tree_offer(const QueryDesc *query, int64 plan_id, Oid user, PlanEnd end);

#endif							/* TACHO_TREE_OFFER_H */
