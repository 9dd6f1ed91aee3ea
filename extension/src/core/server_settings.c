/*
 * server_settings.c
 *	  The server's settings, as a new session would have them.
 *
 * A running process ignores a change to a setting of new sessions, such as
 * log_connections. It may also have set a value itself, as the sampler does
 * with lock_timeout. The values of such settings are read from the
 * configuration files, where the last line counts.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/guc.h"

#include "core/compat.h"
#include "core/server_settings.h"
#include "core/tacho.h"

#define AUTO_FILE	"postgresql.auto.conf"	/* in the data directory */

/* settings of type string whose values are shown */
static const char *const shown_strings[] = {
#define SHOWN_SETTING(name) #name,
#include "../../../catalog/shown_settings.h"
#undef SHOWN_SETTING
};

/* settings of one transaction, which no file can change */
static const char *const of_transaction[] = {
	"transaction_isolation", "transaction_read_only", "transaction_deferrable"
};

/*
 * True if markers may show the value, by the rule of catalog/shown_settings.h.
 */
static bool
is_shown(const struct config_generic *setting)
{
	if (strchr(setting->name, '.') != NULL &&
		strncmp(setting->name, TACHO_PREFIX ".", strlen(TACHO_PREFIX ".")) != 0)
		return false;
	if (setting->vartype != PGC_STRING)
		return true;
	for (int i = 0; i < lengthof(shown_strings); i++)
		if (strcmp(setting->name, shown_strings[i]) == 0)
			return true;
	return false;
}

/*
 * True if a file or a command can change the setting for longer than a
 * transaction.
 */
static bool
is_servers(const struct config_generic *setting)
{
	if (setting->context == PGC_INTERNAL)
		return false;
	for (int i = 0; i < lengthof(of_transaction); i++)
		if (strcmp(setting->name, of_transaction[i]) == 0)
			return false;
	return (setting->flags & GUC_NO_SHOW_ALL) == 0 ||
		(setting->flags & GUC_CUSTOM_PLACEHOLDER) != 0;
}

/* True if a new session may have another value than this process. */
static bool
is_of_this_process(const struct config_generic *setting)
{
	if (setting->source == PGC_S_ARGV)
		return false;
	return setting->context == PGC_BACKEND || setting->context == PGC_SU_BACKEND ||
		(setting->source >= PGC_S_OVERRIDE && setting->context >= PGC_SUSET);
}

/*
 * The value as SHOW prints it. Settings for superusers, which have no units,
 * are read without the catalog lookup for the rights of this process.
 */
static const char *
value_of(const struct config_generic *setting)
{
	const char *value;

	if ((setting->flags & GUC_SUPERUSER_ONLY) == 0)
		return GetConfigOptionByName(setting->name, NULL, true);
	value = GetConfigOption(setting->name, true, false);
	return value != NULL ? pstrdup(value) : "";
}

/* The lines of the configuration files, in order, without invalid ones. */
static const ConfigVariable *
read_files(void)
{
	ConfigVariable *first = NULL;
	ConfigVariable *last = NULL;

	(void) ParseConfigFile(ConfigFileName, false, NULL, 0, 0, DEBUG1, &first, &last);
	(void) ParseConfigFile(AUTO_FILE, false, NULL, 0, 0, DEBUG1, &first, &last);
	return first;
}

static void
take_from_files(ServerSetting *setting, const ConfigVariable *line)
{
	setting->value = "(default)";
	setting->file = NULL;
	for (; line != NULL; line = line->next)
	{
		if (line->name == NULL || line->errmsg != NULL ||
			pg_strcasecmp(line->name, setting->name) != 0)
			continue;
		setting->value = line->value;
		setting->file = line->filename;
		setting->line = line->sourceline;
	}
}

int
server_settings_read(ServerSetting **settings)
{
	int			n = 0;
	int			count;
	struct config_generic **all = compat_settings(&count);
	const ConfigVariable *files = read_files();

	*settings = palloc(count * sizeof(ServerSetting));
	for (int i = 0; i < count; i++)
	{
		ServerSetting *setting = &(*settings)[n];

		if (!is_servers(all[i]))
			continue;
		n++;
		*setting = (ServerSetting) {
			.name = all[i]->name,
			.value = value_of(all[i]),
			.file = all[i]->sourcefile,
			.line = all[i]->sourceline,
			.shown = is_shown(all[i]),
			.placeholder = (all[i]->flags & GUC_CUSTOM_PLACEHOLDER) != 0,
		};
		if (is_of_this_process(all[i]))
			take_from_files(setting, files);
	}
	return n;
}
