/*
 * cpu_kind.h
 *	  Divides sessions that are active without a wait event: running, waiting
 *	  for a CPU, or sleeping in code that reports no wait.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CPU_KIND_H
#define TACHO_CPU_KIND_H

#include "sampler/session_scan.h"

/* Allocates room for `slots` slots in the current memory context. */
extern void cpu_kind_init(int slots);

/*
 * Sets the `cpu` of every row that is active without a wait event. A kind
 * that could not be read is CPU_NOT_KNOWN. Reads files of /proc, which it
 * keeps open, for at most a part of the interval. Raises no error, takes no
 * lock.
 */
extern void cpu_kind_read(SessionScan *scan, int interval_ms);

/* Why kinds cannot be read; "" if they can, or if tacho.cpu_kind is off. */
extern const char *cpu_kind_trouble(void);

#endif							/* TACHO_CPU_KIND_H */
