/*
 * server_metrics.h
 *	  Measurements of the server as a whole.
 *
 * A counter is recorded as its increase since the last reading. A reset of
 * the server's statistics makes no negative increase and sets a marker. Used
 * by the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SERVER_METRICS_H
#define TACHO_SERVER_METRICS_H

#include "core/status.h"
#include "sampler/session_scan.h"

/* Allocates the state in the current memory context. */
extern void server_init(void);

/* True if tacho.server_interval has passed. */
extern bool server_is_due(int64 boot_us);

/*
 * Measures, and adds rows and markers to the open frame. `scan` is the last
 * scan, which has the names of replicas. Raises no error except out of
 * memory.
 */
extern void server_measure(const SessionScan *scan, int64 wall_us,
						   int64 boot_us, TachoStatus *status);

#endif							/* TACHO_SERVER_METRICS_H */
