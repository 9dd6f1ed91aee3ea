/*
 * hooks.h
 *	  The hooks through which statements are measured.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HOOKS_H
#define TACHO_HOOKS_H

/*
 * Sets up statistics of statements, unless they are switched off. To be
 * called once while preloaded libraries are loaded, after settings_init().
 */
extern void hooks_init(void);

/* Whether the statement being analysed is the client's own. */
extern bool hooks_at_toplevel(void);

#endif							/* TACHO_HOOKS_H */
