/*
 * plan_ids.h
 *	  Gives each plan of 18 and later an id, which activity and history show.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLAN_IDS_H
#define TACHO_PLAN_IDS_H

/*
 * Hooks into the planner and into EXPLAIN; for _PG_init(). Before 18 a plan has
 * no place for an id: does nothing.
 */
extern void plan_ids_init(void);

#endif							/* TACHO_PLAN_IDS_H */
