/*
 * planner_settings.h
 *	  The settings that the planner heeds, as far as they are not the default.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PLANNER_SETTINGS_H
#define TACHO_PLANNER_SETTINGS_H

#include "plans/plan_text.h"

/*
 * Finds the settings. For _PG_init(): it allocates memory, and all that follows
 * allocates none.
 */
extern void planner_settings_init(void);

/* The number of settings. */
extern int	planner_settings_count(void);

/*
 * Adds "name = value" to the text if setting `i` has another value in this
 * session than the server's built-in one. Sizes have the unit of SHOW, such as
 * "work_mem = 64MB". Returns whether it differs. Raises no error.
 */
extern bool planner_setting_add(PlanText *text, int i);

#endif							/* TACHO_PLANNER_SETTINGS_H */
