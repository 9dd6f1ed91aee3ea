/*
 * plan_ids.h
 *	  Gives each plan an id, which EXPLAIN, backend status and history show.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_IDS_H
#define TACHO_PLAN_IDS_H

#include "nodes/plannodes.h"

/* Hooks into the planner and, from 18 on, into EXPLAIN; for _PG_init(). */
extern void plan_ids_init(void);

/* The id of a plan, 0 if it was planned before plan_ids_init(). */
extern int64 plan_id_of(const PlannedStmt *stmt);

/* True if the plan was made for given values of its parameters. */
extern bool plan_is_for_values(const PlannedStmt *stmt);

#endif							/* TACHO_PLAN_IDS_H */
