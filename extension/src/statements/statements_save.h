/*
 * statements_save.h
 *	  Statistics of statements across restarts.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_SAVE_H
#define TACHO_STATEMENTS_SAVE_H

/* Registers the saver; while preloaded libraries are loaded. */
extern void statements_save_init(void);

/*
 * Loads what the last life of the server has left, and arranges for the dump
 * at shutdown. Called by the postmaster when it has made the shared memory.
 */
extern void statements_save_startup(void);

/*
 * Removes what was saved: while nothing is counted or saved it grows old, and
 * must not be loaded by the start of a later day.
 */
extern void statements_save_forget(void);

extern PGDLLEXPORT void statements_saver_main(Datum arg);

#endif							/* TACHO_STATEMENTS_SAVE_H */
