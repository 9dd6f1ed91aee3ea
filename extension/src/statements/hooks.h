/*
 * hooks.h
 *	  The hooks through which statements are measured.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HOOKS_H
#define TACHO_HOOKS_H

/*
 * Installs the hooks, the first time it is called. Called when shared memory
 * is made, which is after all preloaded libraries have installed theirs.
 */
extern void hooks_install(void);

/* True if the statement being analysed is the client's own. */
extern bool hooks_at_toplevel(void);

#endif							/* TACHO_HOOKS_H */
