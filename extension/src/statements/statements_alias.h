/*
 * statements_alias.h
 *	  The settings of statements, which pg_stat_statements.* may override.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_ALIAS_H
#define TACHO_STATEMENTS_ALIAS_H

#include "core/settings.h"

/* Settings of pg_stat_statements. A value is valid while its _set is true. */
typedef struct StatementsAlias
{
	bool		max_set;
	bool		track_set;
	bool		utility_set;
	bool		planning_set;
	bool		save_set;
	int			max;
	int			track;
	bool		utility;
	bool		planning;
	bool		save;
} StatementsAlias;

extern StatementsAlias statements_alias;

static inline int
setting_max(void)
{
	return statements_alias.max_set ? statements_alias.max
		: tacho_statements_max;
}

static inline int
setting_track(void)
{
	return statements_alias.track_set ? statements_alias.track
		: tacho_statements_track;
}

static inline bool
setting_track_utility(void)
{
	return statements_alias.utility_set ? statements_alias.utility
		: tacho_statements_track_utility;
}

static inline bool
setting_track_planning(void)
{
	return statements_alias.planning_set ? statements_alias.planning
		: tacho_statements_track_planning;
}

static inline bool
setting_save(void)
{
	return statements_alias.save_set ? statements_alias.save
		: tacho_statements_save;
}

/*
 * Defines the settings of pg_stat_statements, unless tacho.pg_stat_statements
 * is off or contrib's library is preloaded too. Only while libraries are
 * preloaded, after settings_init().
 */
extern void statements_alias_init(void);

/*
 * True if a library name from a setting is contrib's own library. False for a
 * link with contrib's name to this library, wherever the server finds the
 * link.
 */
extern bool statements_is_contrib(const char *name);

/* True if contrib's own library is preloaded. */
extern bool statements_contrib_preloaded(void);

#endif							/* TACHO_STATEMENTS_ALIAS_H */
