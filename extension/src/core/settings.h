/*
 * settings.h
 *	  The settings of catalog/settings.h as variables.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SETTINGS_H
#define TACHO_SETTINGS_H

typedef enum QueryTextMode
{
	QUERY_TEXT_NORMALIZED,
	QUERY_TEXT_RAW,
	QUERY_TEXT_OFF
} QueryTextMode;

typedef enum StatementsTrack
{
	STATEMENTS_TRACK_NONE,
	STATEMENTS_TRACK_TOP,
	STATEMENTS_TRACK_ALL
} StatementsTrack;

typedef enum StatementsCpu
{
	STATEMENTS_CPU_OFF,
	STATEMENTS_CPU_SAMPLED,
	STATEMENTS_CPU_ALWAYS
} StatementsCpu;

#define BOOL_SETTING(name, variable, value, context, brief, more) \
	extern bool variable;
#define INT_SETTING(name, variable, value, low, high, unit, context, brief, more) \
	extern int variable;
#define REAL_SETTING(name, variable, value, low, high, context, brief, more) \
	extern double variable;
#define STRING_SETTING(name, variable, value, context, brief, more) \
	extern char *variable;
#define ENUM_SETTING(name, variable, value, options, context, brief, more) \
	extern int variable;
#define OPTION(options, label, value)
#include "../../../catalog/settings.h"
#undef BOOL_SETTING
#undef INT_SETTING
#undef REAL_SETTING
#undef STRING_SETTING
#undef ENUM_SETTING
#undef OPTION

/* Defines all settings. To be called while preloaded libraries are loaded. */
extern void settings_init(void);

/*
 * Absolute paths of the history directory and of the tacho program. They stay
 * valid and unchanged for the life of the process. Only after settings_init().
 */
extern const char *tacho_directory_path(void);
extern const char *tacho_program_path(void);

/*
 * Why the configured directory is refused, or NULL. The server starts without
 * history then, instead of writing it somewhere else.
 */
extern const char *settings_refusal(void);

#endif							/* TACHO_SETTINGS_H */
