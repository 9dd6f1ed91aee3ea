/*
 * clocks.h
 *	  The clocks of the sampler, in microseconds.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CLOCKS_H
#define TACHO_CLOCKS_H

#include <time.h>

static inline int64
clock_read_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Time since 1970 UTC in us. The clock can be set, so it may jump. */
#define clock_wall_us()		clock_read_us(CLOCK_REALTIME)

/*
 * Time in us since the machine was started, including the time that it was
 * asleep. This clock never goes back.
 */
#define clock_boot_us()		clock_read_us(CLOCK_BOOTTIME)

/* CPU time of this process, in us. */
#define clock_cpu_us()		clock_read_us(CLOCK_PROCESS_CPUTIME_ID)

#endif							/* TACHO_CLOCKS_H */
