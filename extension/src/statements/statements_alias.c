/*
 * statements_alias.c
 *	  The settings of pg_stat_statements, which tacho defines in its place.
 *
 * A setting of pg_stat_statements overrides tacho's setting if it has been
 * set, not while it has its default. Only the check hook learns the source of
 * a value. It passes this to the assign hook as `extra`. The server keeps
 * `extra` with the value, for the end of a transaction that restores the
 * value.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/varlena.h"

#include "core/compat.h"
#include "core/hot.h"
#include "statements/statements_alias.h"

#define CONTRIB "pg_stat_statements"

HOT_DATA StatementsAlias statements_alias = {0};

/*
 * the server stores the values here; statements_alias has them, too, and says
 * which of them were set
 */
static int	max_value;
static int	track_value;
static bool utility_value;
static bool planning_value;
static bool save_value;

static const struct config_enum_entry track_labels[] = {
	{"none", STATEMENTS_TRACK_NONE, false},
	{"top", STATEMENTS_TRACK_TOP, false},
	{"all", STATEMENTS_TRACK_ALL, false},
	{NULL, 0, false}
};

/* Makes a non-null *extra for a value that has been set. */
static bool
note_source(void **extra, GucSource source)
{
	if (source <= PGC_S_DYNAMIC_DEFAULT)
		return true;
	*extra = compat_guc_malloc(1);
	return *extra != NULL;
}

static bool
check_int(int *value, void **extra, GucSource source)
{
	return note_source(extra, source);
}

static bool
check_bool(bool *value, void **extra, GucSource source)
{
	return note_source(extra, source);
}

#define ASSIGN(name, ctype, member) \
static void \
assign_##name(ctype value, void *extra) \
{ \
	statements_alias.member = value; \
	statements_alias.name##_set = extra != NULL; \
}

ASSIGN(max, int, max)
ASSIGN(track, int, track)
ASSIGN(utility, bool, utility)
ASSIGN(planning, bool, planning)
ASSIGN(save, bool, save)

/* True if the path made from `format` is a file; fills *it. */
static bool
found(struct stat *it, const char *format, ...) pg_attribute_printf(2, 3);

static bool
found(struct stat *it, const char *format, ...)
{
	char		path[MAXPGPATH];
	va_list		parts;
	int			length;

	va_start(parts, format);
	length = vsnprintf(path, sizeof(path), format, parts);
	va_end(parts);
	return length < (int) sizeof(path) && stat(path, it) == 0 &&
		!S_ISDIR(it->st_mode);
}

/*
 * Splits a path that may begin with $libdir: returns the directory and moves
 * *path to the rest.
 */
static const char *
libdir(const char **path, int *length)
{
	if (*length < 7 || strncmp(*path, "$libdir", 7) != 0)
		return "";
	*path += 7;
	*length -= 7;
	return pkglib_path;
}

/* Searches the directories of dynamic_library_path for a bare name. */
static bool
found_in_path(struct stat *it, const char *name, const char *suffix)
{
	const char *at = Dynamic_library_path;

	while (at && *at)
	{
		int			length = (int) strcspn(at, ":");
		const char *rest = at;
		int			rest_length = length;
		const char *begin = libdir(&rest, &rest_length);

		if (found(it, "%s%.*s/%s%s", begin, rest_length, rest, name, suffix))
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

/* Finds the file of a library in the same way as the server. */
static bool
found_library(struct stat *it, const char *name, const char *suffix)
{
	int			length = (int) strlen(name);
	const char *begin;

	if (strchr(name, '/') == NULL)
		return found_in_path(it, name, suffix);
	begin = libdir(&name, &length);
	return found(it, "%s%s%s", begin, name, suffix);
}

bool
statements_is_contrib(const char *name)
{
	const char *base = last_dir_separator(name) ? last_dir_separator(name) + 1 : name;
	Size		length = strlen(CONTRIB);
	struct stat it;
	struct stat us;
	Dl_info		info;

	if (strncmp(base, CONTRIB, length) != 0 ||
		(base[length] != '\0' && strcmp(base + length, DLSUFFIX) != 0))
		return false;
	return (!found_library(&it, name, "") && !found_library(&it, name, DLSUFFIX)) ||
		!dladdr((void *) statements_alias_init, &info) ||
		stat(info.dli_fname, &us) != 0 ||
		it.st_dev != us.st_dev || it.st_ino != us.st_ino;
}

bool
statements_contrib_preloaded(void)
{
	char	   *names = pstrdup(shared_preload_libraries_string ?
								shared_preload_libraries_string : "");
	List	   *list = NIL;
	ListCell   *cell;
	bool		found = false;

	if (SplitDirectoriesString(names, ',', &list))
		foreach(cell, list)
			found = found || statements_is_contrib(lfirst(cell));
	list_free_deep(list);
	pfree(names);
	return found;
}

static void
define_settings(void)
{
	DefineCustomIntVariable(CONTRIB ".max",
							"Sets the maximum number of statements tracked by pg_stat_statements.",
							"Another name of tacho.statements_max.",
							&max_value, tacho_statements_max, 100, INT_MAX / 2,
							PGC_POSTMASTER, 0, check_int, assign_max, NULL);
	DefineCustomEnumVariable(CONTRIB ".track",
							 "Selects which statements are tracked by pg_stat_statements.",
							 "Another name of tacho.statements_track.",
							 &track_value, STATEMENTS_TRACK_TOP, track_labels,
							 PGC_SUSET, 0, check_int, assign_track, NULL);
	DefineCustomBoolVariable(CONTRIB ".track_utility",
							 "Selects whether utility commands are tracked by pg_stat_statements.",
							 "Another name of tacho.statements_track_utility.",
							 &utility_value, true,
							 PGC_SUSET, 0, check_bool, assign_utility, NULL);
	DefineCustomBoolVariable(CONTRIB ".track_planning",
							 "Selects whether planning duration is tracked by pg_stat_statements.",
							 "Another name of tacho.statements_track_planning.",
							 &planning_value, false,
							 PGC_SUSET, 0, check_bool, assign_planning, NULL);
	DefineCustomBoolVariable(CONTRIB ".save",
							 "Save pg_stat_statements statistics across server shutdowns.",
							 "Another name of tacho.statements_save.",
							 &save_value, true,
							 PGC_SIGHUP, 0, check_bool, assign_save, NULL);
	MarkGUCPrefixReserved(CONTRIB);
}

void
statements_alias_init(void)
{
	if (!tacho_pg_stat_statements)
		return;
	if (statements_contrib_preloaded())
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("tacho does not replace pg_stat_statements because it is preloaded as well"),
				 errhint("Remove pg_stat_statements from \"shared_preload_libraries\".")));
	else
		define_settings();
}
