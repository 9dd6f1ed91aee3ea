/*
 * plan_shape.h
 *	  The id of a plan: a hash of its shape.
 *
 * Two plans have the same id when they do the same steps on the same
 * relations. Constants, costs, estimated rows, the number of workers, and the
 * number of partitions do not matter. Example: two plans scan the same index
 * of a partitioned table, one in twelve partitions (Append), one in the
 * single partition left after pruning. Both have the same id.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_SHAPE_H
#define TACHO_PLAN_SHAPE_H

#include "nodes/plannodes.h"

/*
 * The id of a plan, above 0. Its relations must be locked, as they are after
 * planning and while the plan is executed: names of indexes' columns are read
 * from the relation cache. A plan of more than 2,000 different nodes has an
 * id of the first 2,000. May raise an error when memory is exhausted.
 */
extern int64 plan_shape_id(const PlannedStmt *stmt);

#endif							/* TACHO_PLAN_SHAPE_H */
