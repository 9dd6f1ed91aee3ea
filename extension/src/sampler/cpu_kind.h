/*
 * cpu_kind.h
 *	  What a session that is active without a wait event does: it runs, it
 *	  waits for a CPU, or it sleeps in code that reports no wait.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CPU_KIND_H
#define TACHO_CPU_KIND_H

#include "sampler/session_scan.h"

/* Room for so many slots, in the current memory context. */
extern void cpu_kind_init(int slots);

/*
 * Sets the `cpu` of every row that is active without a wait event; what could
 * not be read is CPU_NOT_KNOWN. Reads files of /proc that stay open, for at
 * most a part of the interval. Raises no error, takes no lock.
 */
extern void cpu_kind_read(SessionScan *scan, int interval_ms);

/* Why kinds cannot be told; "" if they can, or nobody asked for them. */
extern const char *cpu_kind_trouble(void);

#endif							/* TACHO_CPU_KIND_H */
