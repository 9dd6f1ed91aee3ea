/*
 * logins.h
 *	  Counts connections that end before they have become sessions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_LOGINS_H
#define TACHO_LOGINS_H

/* Installs the hook that sees why a connection ends. */
extern void logins_init(void);

#endif							/* TACHO_LOGINS_H */
