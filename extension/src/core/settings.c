/*
 * settings.c
 *	  Defines the settings of catalog/settings.h and checks their values.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "port.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "core/hot.h"
#include "core/settings.h"
#include "core/tacho.h"
#include "core/tag_keys.h"

#define BOOL_SETTING(name, variable, value, context, brief, more) \
	HOT_DATA bool variable = value;
#define INT_SETTING(name, variable, value, low, high, unit, context, brief, more) \
	HOT_DATA int variable = value;
#define REAL_SETTING(name, variable, value, low, high, context, brief, more) \
	double		variable = value;
#define STRING_SETTING(name, variable, value, context, brief, more) \
	HOT_DATA char *variable = NULL;
#define ENUM_SETTING(name, variable, value, options, context, brief, more) \
	HOT_DATA int variable = value;
#define OPTION(options, label, value)
#include "../../../catalog/settings.h"
#undef BOOL_SETTING
#undef INT_SETTING
#undef REAL_SETTING
#undef STRING_SETTING
#undef ENUM_SETTING
#undef OPTION

/* the labels of all enumerations, in the order of the catalog */
static const struct
{
	const char *options;
	struct config_enum_entry entry;
}			labels[] = {
#define BOOL_SETTING(name, variable, value, context, brief, more)
#define INT_SETTING(name, variable, value, low, high, unit, context, brief, more)
#define REAL_SETTING(name, variable, value, low, high, context, brief, more)
#define STRING_SETTING(name, variable, value, context, brief, more)
#define ENUM_SETTING(name, variable, value, options, context, brief, more)
#define OPTION(options, label, value) {#options, {label, value, false}},
#include "../../../catalog/settings.h"
#undef BOOL_SETTING
#undef INT_SETTING
#undef REAL_SETTING
#undef STRING_SETTING
#undef ENUM_SETTING
#undef OPTION
};

/* names of files in the history directory are shorter than this, in bytes */
#define LONGEST_NAME	64

#define UNIT_NONE	0
#define UNIT_MS		GUC_UNIT_MS
#define UNIT_S		GUC_UNIT_S
#define UNIT_MB		GUC_UNIT_MB
#define UNIT_KB		GUC_UNIT_KB

/* directories of the server that history must not be mixed with */
static const char *const refused_directories[] = {
	"base", "global", "pg_commit_ts", "pg_dynshmem", "pg_logical",
	"pg_multixact", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots",
	"pg_stat", "pg_stat_tmp", "pg_subtrans", "pg_tblspc", "pg_twophase",
	"pg_wal", "pg_xact"
};

static bool startup_done = false;
static char refusal[MAXPGPATH + 100] = "";
static char directory_path[MAXPGPATH] = "";
static char program_path[MAXPGPATH] = "";

/* Writes the absolute, canonical form of a path into `result`. */
static void
absolute_path(const char *path, char *result)
{
	if (is_absolute_path(path) || DataDir == NULL)
		strlcpy(result, path, MAXPGPATH);
	else
		snprintf(result, MAXPGPATH, "%s/%s", DataDir, path);
	canonicalize_path(result);
}

/*
 * Same as absolute_path(), but follows symbolic links in the part of the path
 * that exists. The history directory may not exist yet.
 */
static void
real_path(const char *path, char *result)
{
	char		absolute[MAXPGPATH];
	int			known;

	absolute_path(path, absolute);
	strlcpy(result, absolute, MAXPGPATH);
	for (known = strlen(absolute); known > 0; known--)
	{
		char		begin[MAXPGPATH];
		char	   *real;

		if (absolute[known] != '/' && absolute[known] != '\0')
			continue;
		strlcpy(begin, absolute, known + 1);
		real = realpath(begin, NULL);
		if (real == NULL)
			continue;
		snprintf(result, MAXPGPATH, "%s%s", real, absolute + known);
		free(real);
		return;
	}
}

/*
 * True if a path is in the directory of a tablespace. The path must be real
 * and absolute.
 */
static bool
is_in_tablespace(const char *absolute)
{
	char		name[MAXPGPATH];
	char		target[MAXPGPATH];
	DIR		   *links;
	struct dirent *link;
	bool		found = false;

	absolute_path("pg_tblspc", name);
	links = opendir(name);
	if (links == NULL)
		return false;
	while (!found && (link = readdir(links)) != NULL)
	{
		if (link->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "pg_tblspc/%s", link->d_name);
		real_path(name, target);
		found = strcmp(absolute, target) == 0 ||
			path_is_prefix_of_path(target, absolute);
	}
	closedir(links);
	return found;
}

/* Name of the refused directory that `path` is or lies in, or NULL. */
static const char *
refused_directory(const char *path)
{
	char		absolute[MAXPGPATH];
	char		refused[MAXPGPATH];

	if (DataDir == NULL)
		return NULL;
	real_path(path, absolute);
	if (is_in_tablespace(absolute))
		return "a tablespace";
	for (int i = 0; i < lengthof(refused_directories); i++)
	{
		real_path(refused_directories[i], refused);
		if (strcmp(absolute, refused) == 0 ||
			path_is_prefix_of_path(refused, absolute))
			return refused_directories[i];
	}
	real_path(".", refused);
	return strcmp(absolute, refused) == 0 ? "the data directory itself" : NULL;
}

/*
 * Refuses the value of a setting if the path is so long that it would be cut.
 */
static bool
check_length(const char *value, const char *setting)
{
	int			room = MAXPGPATH - LONGEST_NAME - 1;
	int			length = strlen(value);

	if (!is_absolute_path(value) && DataDir != NULL)
		length += strlen(DataDir) + 1;
	if (length <= room)
		return true;
	if (!startup_done)
		snprintf(refusal, sizeof(refusal), "the path in \"%s.%s\" is too long",
				 TACHO_PREFIX, setting);
	GUC_check_errmsg("the path in \"%s.%s\" is too long", TACHO_PREFIX,
					 setting);
	GUC_check_errdetail("It has %d bytes; at most %d are allowed.", length,
						room);
	return false;
}

static bool
check_directory(char **value, void **extra, GucSource source)
{
	const char *refused;

	if ((*value)[0] == '\0')
	{
		GUC_check_errmsg("\"%s.directory\" must not be empty", TACHO_PREFIX);
		return false;
	}
	if (!check_length(*value, "directory"))
		return false;
	refused = refused_directory(*value);
	if (refused == NULL)
		return true;
	if (!startup_done)
		snprintf(refusal, sizeof(refusal),
				 "directory \"%s\" is refused: it belongs to the server (%s)",
				 *value, refused);
	GUC_check_errmsg("directory \"%s\" cannot be used for \"%s.directory\"",
					 *value, TACHO_PREFIX);
	GUC_check_errdetail("It belongs to the server (%s).", refused);
	GUC_check_errhint("Use a separate directory, inside or outside the data directory.");
	return false;
}

static bool
check_program(char **value, void **extra, GucSource source)
{
	if ((*value)[0] == '\0' || is_absolute_path(*value))
		return check_length(*value, "program");
	GUC_check_errmsg("\"%s.program\" must be an absolute path or empty",
					 TACHO_PREFIX);
	return false;
}

static bool
check_comment_tags(char **value, void **extra, GucSource source)
{
	const char *problem = tag_keys_problem(*value);

	if (problem == NULL)
		return true;
	GUC_check_errmsg("\"%s.comment_tags\" must be a list of keys", TACHO_PREFIX);
	GUC_check_errdetail("%s", problem);
	return false;
}

/* Returns the check hook of a string setting, NULL if it has none. */
static GucStringCheckHook
string_check(char **variable)
{
	if (variable == &tacho_directory)
		return check_directory;
	if (variable == &tacho_program)
		return check_program;
	if (variable == &tacho_comment_tags)
		return check_comment_tags;
	return NULL;
}

/* Remembers the paths: they cannot change while the server runs. */
static void
settings_remember_paths(void)
{
	absolute_path(tacho_directory, directory_path);
	if (tacho_program[0] != '\0')
		strlcpy(program_path, tacho_program, sizeof(program_path));
	else
	{
		strlcpy(program_path, my_exec_path, sizeof(program_path));
		get_parent_directory(program_path);
		join_path_components(program_path, program_path, TACHO_PREFIX);
	}
	canonicalize_path(program_path);
}

/* The labels of one enumeration, in memory that stays. */
static const struct config_enum_entry *
enumeration(const char *options)
{
	struct config_enum_entry *entries;
	int			n = 0;

	entries = MemoryContextAllocZero(TopMemoryContext,
									 (lengthof(labels) + 1) * sizeof(*entries));
	for (int i = 0; i < lengthof(labels); i++)
		if (strcmp(labels[i].options, options) == 0)
			entries[n++] = labels[i].entry;
	return entries;
}

void
settings_init(void)
{
#define BOOL_SETTING(name, variable, value, context, brief, more) \
	DefineCustomBoolVariable(TACHO_PREFIX "." #name, brief, more, &variable, \
							 value, PGC_##context, 0, NULL, NULL, NULL);
#define INT_SETTING(name, variable, value, low, high, unit, context, brief, more) \
	DefineCustomIntVariable(TACHO_PREFIX "." #name, brief, more, &variable, \
							value, low, high, PGC_##context, UNIT_##unit, \
							NULL, NULL, NULL);
#define REAL_SETTING(name, variable, value, low, high, context, brief, more) \
	DefineCustomRealVariable(TACHO_PREFIX "." #name, brief, more, &variable, \
							 value, low, high, PGC_##context, 0, \
							 NULL, NULL, NULL);
#define STRING_SETTING(name, variable, value, context, brief, more) \
	DefineCustomStringVariable(TACHO_PREFIX "." #name, brief, more, \
							   &variable, value, PGC_##context, 0, \
							   string_check(&variable), NULL, NULL);
#define ENUM_SETTING(name, variable, value, options, context, brief, more) \
	DefineCustomEnumVariable(TACHO_PREFIX "." #name, brief, more, &variable, \
							 value, enumeration(#options), PGC_##context, 0, \
							 NULL, NULL, NULL);
#define OPTION(options, label, value)
#include "../../../catalog/settings.h"
#undef BOOL_SETTING
#undef INT_SETTING
#undef REAL_SETTING
#undef STRING_SETTING
#undef ENUM_SETTING
#undef OPTION
	MarkGUCPrefixReserved(TACHO_PREFIX);
	settings_remember_paths();
	startup_done = true;
}

const char *
tacho_directory_path(void)
{
	return directory_path;
}

const char *
tacho_program_path(void)
{
	return program_path;
}

const char *
settings_refusal(void)
{
	return refusal[0] != '\0' ? refusal : NULL;
}
