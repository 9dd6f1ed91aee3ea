/*
 * server_settings.h
 *	  The server's settings, as a new session would have them.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SERVER_SETTINGS_H
#define TACHO_SERVER_SETTINGS_H

/* A setting; its strings live as long as the context of the reading. */
typedef struct ServerSetting
{
	const char *name;
	const char *value;			/* as SHOW prints it, or as the file has it */
	const char *file;			/* where it is set, NULL = in no file */
	int			line;
	bool		shown;			/* its value cannot be a secret */
	bool		placeholder;	/* no library has defined it */
} ServerSetting;

/*
 * Reads all settings that a file or a command can change, in the current
 * memory context, and returns their number. Raises only when memory is short.
 */
extern int	server_settings_read(ServerSetting **settings);

#endif							/* TACHO_SERVER_SETTINGS_H */
