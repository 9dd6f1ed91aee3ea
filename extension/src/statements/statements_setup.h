/*
 * statements_setup.h
 *	  Sets up the statistics of statements while the server starts.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_SETUP_H
#define TACHO_STATEMENTS_SETUP_H

/*
 * Reserves shared memory for the statistics of statements and installs their
 * hooks, unless tacho.statements is off. Called once while the server loads
 * preloaded libraries, after settings_init().
 */
extern void statements_setup(void);

#endif							/* TACHO_STATEMENTS_SETUP_H */
