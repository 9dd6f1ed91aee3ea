/*
 * planner_settings.c
 *	  The settings that the planner heeds, as far as they are not the default.
 *
 * These are the server's own settings that EXPLAIN (SETTINGS) prints. A string
 * is left out (search_path): it decides what a name means, not how a query is
 * planned. A setting of another extension is left out, too, because the
 * extension may replace it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/compat.h"
#include "plans/planner_settings.h"

#define MOST 128				/* PostgreSQL 19 has 63 */

static const struct config_generic *settings[MOST];
static int	count = 0;

static bool
is_planners(const struct config_generic *setting)
{
	return (setting->flags & GUC_EXPLAIN) != 0 && setting->vartype != PGC_STRING &&
		strchr(setting->name, '.') == NULL;
}

void
planner_settings_init(void)
{
	int			all;
	struct config_generic **every = compat_settings(&all);

	count = 0;
	for (int i = 0; i < all && count < MOST; i++)
		if (is_planners(every[i]))
			settings[count++] = every[i];
}

int
planner_settings_count(void)
{
	return count;
}

static bool
is_default(const struct config_generic *setting)
{
	switch (setting->vartype)
	{
		case PGC_BOOL:
			return *COMPAT_SETTING(setting, bool)->variable == COMPAT_SETTING(setting, bool)->boot_val;
		case PGC_INT:
			return *COMPAT_SETTING(setting, int)->variable == COMPAT_SETTING(setting, int)->boot_val;
		case PGC_REAL:
			return *COMPAT_SETTING(setting, real)->variable == COMPAT_SETTING(setting, real)->boot_val;
		case PGC_ENUM:
			return *COMPAT_SETTING(setting, enum)->variable == COMPAT_SETTING(setting, enum)->boot_val;
		default:
			return true;
	}
}

/* Adds a size in the largest unit that divides it, as SHOW does. */
static void
add_kilobytes(PlanText *text, int64 kb)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};
	int			unit = 0;

	while (kb != 0 && kb % 1024 == 0 && unit < lengthof(units) - 1)
	{
		kb /= 1024;
		unit++;
	}
	plan_text_number(text, kb);
	plan_text_add(text, units[unit]);
}

static void
add_int(PlanText *text, const struct config_generic *setting)
{
	int64		value = *COMPAT_SETTING(setting, int)->variable;
	int			unit = setting->flags & GUC_UNIT;

	if (value < 0)
	{
		plan_text_char(text, '-');
		value = -value;
	}
	if (value > 0 && unit == GUC_UNIT_KB)
		add_kilobytes(text, value);
	else if (value > 0 && unit == GUC_UNIT_BLOCKS)
		add_kilobytes(text, value * (BLCKSZ / 1024));
	else
		plan_text_number(text, value);
}

static void
add_real(PlanText *text, double value)
{
	char		digits[32];

	snprintf(digits, sizeof(digits), "%g", value);
	plan_text_add(text, digits);
}

static void
add_enum(PlanText *text, const struct config_enum *setting)
{
	for (const struct config_enum_entry *entry = setting->options; entry->name != NULL; entry++)
		if (entry->val == *setting->variable)
		{
			plan_text_add(text, entry->name);
			return;
		}
}

bool
planner_setting_add(PlanText *text, int i)
{
	const struct config_generic *setting = settings[i];

	if (is_default(setting))
		return false;
	plan_text_add(text, setting->name);
	plan_text_add(text, " = ");
	if (setting->vartype == PGC_BOOL)
		plan_text_add(text, *COMPAT_SETTING(setting, bool)->variable ? "on" : "off");
	else if (setting->vartype == PGC_INT)
		add_int(text, setting);
	else if (setting->vartype == PGC_REAL)
		add_real(text, *COMPAT_SETTING(setting, real)->variable);
	else
		add_enum(text, COMPAT_SETTING(setting, enum));
	return true;
}
