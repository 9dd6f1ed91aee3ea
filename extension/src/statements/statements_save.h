/*
 * statements_save.h
 *	  Saves and loads the statistics of statements, across restarts.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_SAVE_H
#define TACHO_STATEMENTS_SAVE_H

/* Registers the saver. Call it while preloaded libraries are loaded. */
extern void statements_save_init(void);

/*
 * Loads the statistics that the last life of the server saved, and arranges
 * for the dump at shutdown. The postmaster calls it after making the shared
 * memory.
 */
extern void statements_save_startup(void);

/*
 * Removes the saved files. While nothing is counted or saved they become
 * outdated, and a later start must not load them.
 */
extern void statements_save_forget(void);

extern PGDLLEXPORT void statements_saver_main(Datum arg);

#endif							/* TACHO_STATEMENTS_SAVE_H */
