/*
 * changed_settings.h
 *	  Markers for settings of the server whose values change.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CHANGED_SETTINGS_H
#define TACHO_CHANGED_SETTINGS_H

/*
 * Reads all settings and puts a marker for each value that differs from the
 * last look: its name, both values, and as detail FILE:LINE. The first look
 * of a process compares with the last look of the process before it, even if
 * the server was restarted between them. Returns whether a setting of tacho
 * changed.
 */
extern bool changed_settings_look(void);

#endif							/* TACHO_CHANGED_SETTINGS_H */
