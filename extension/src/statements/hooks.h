/*
 * hooks.h
 *	  The hooks through which statements are measured.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HOOKS_H
#define TACHO_HOOKS_H

/*
 * Sets statistics of statements up, unless they are switched off. To be called
 * once while preloaded libraries are loaded, after settings_init().
 */
extern void hooks_init(void);

/* Whether what is analysed now is what the client sent. */
extern bool hooks_at_toplevel(void);

#endif							/* TACHO_HOOKS_H */
