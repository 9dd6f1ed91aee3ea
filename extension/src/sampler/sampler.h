/*
 * sampler.h
 *	  The background worker that samples all sessions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SAMPLER_H
#define TACHO_SAMPLER_H

/* Registers the worker. Call it while preloaded libraries are loaded. */
extern void sampler_init(void);

/* Entry point of the worker. */
extern PGDLLEXPORT void tacho_sampler_main(Datum argument);

#endif							/* TACHO_SAMPLER_H */
