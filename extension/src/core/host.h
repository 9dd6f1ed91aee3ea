/*
 * host.h
 *	  Figures of the machine and the cgroup, from the operating system.
 *
 * Reads a few small files of /proc and /sys: no lock, no allocation, no
 * error. `root` is put before every path; it is "" except in tests. A figure
 * that is missing or cannot be read is HOST_NOT_KNOWN.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HOST_H
#define TACHO_HOST_H

#include "core/tacho.h"

#define HOST_NOT_KNOWN	(-1)

typedef struct Host
{
	int64		load_1;			/* load averages, in hundredths */
	int64		load_5;
	int64		load_15;
	int64		tasks_runnable;
	int64		cpu_user;		/* ms since the machine was started */
	int64		cpu_system;
	int64		cpu_iowait;
	int64		cpu_idle;
	int64		cpu_steal;
	int64		cpu_throttled;	/* us, of the cgroup */
	int64		memory_total;	/* bytes */
	int64		memory_available;
	int64		swap_used;
	/* us in which some or all tasks waited */
	int64		pressure_cpu_some;
	int64		pressure_memory_some;
	int64		pressure_memory_full;
	int64		pressure_io_some;
	int64		pressure_io_full;
} Host;

extern void host_read(const char *root, Host *host);

/*
 * CPUs in hundredths: the least quota of this process's cgroup and the groups
 * above it (cgroup version 2 or 1). HOST_NOT_KNOWN if none has a quota.
 */
extern int64 host_cpu_quota_x100(const char *root);

/* Resources that a process has used so far. */
typedef struct HostProcess
{
	int64		cpu_us;
	int64		memory;			/* bytes resident */
	int64		written;		/* bytes it caused to be written to disk */
} HostProcess;

extern void host_read_process(const char *root, int pid, HostProcess *process);

#endif							/* TACHO_HOST_H */
