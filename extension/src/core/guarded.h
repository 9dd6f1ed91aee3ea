/*
 * guarded.h
 *	  Steps of the sampler that may raise an error.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_GUARDED_H
#define TACHO_GUARDED_H

/*
 * Runs a step in a transaction of its own. An error ends only the step: locks
 * are released, memory is freed, and false is returned.
 */
extern bool guarded_run(void (*step) (void));

#endif							/* TACHO_GUARDED_H */
