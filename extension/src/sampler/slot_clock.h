/*
 * slot_clock.h
 *	  Times and numbers of ticks.
 *
 * Wall time is divided into slots of one interval: slot = floor(wall ÷
 * interval). Each slot has one tick at a random moment. A slot that passed
 * without a tick leaves a hole in the tick numbers; a slot never has two
 * ticks. While the wall clock runs evenly, the numbers follow it; across a
 * step they follow CLOCK_BOOTTIME.
 *
 * Pure: time and randomness come from the caller.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SLOT_CLOCK_H
#define TACHO_SLOT_CLOCK_H

#include "core/tacho.h"

/* a larger difference between the clocks is a step */
#define CLOCK_STEP_US	1000000

typedef struct SlotClock
{
	int64		interval_us;
	int64		slot;			/* of the planned tick */
	int64		planned_us;		/* wall time of the planned tick */
	uint64		tick;			/* number of the last tick, 0 = none */
	int64		last_slot;		/* of the last tick */
	int64		last_wall_us;	/* of the last tick */
	int64		last_boot_us;
	bool		interval_changed;	/* since the last tick */
} SlotClock;

/* A tick that is due. */
typedef struct SlotTick
{
	uint64		tick;
	UnixMs		slot_time;
	int64		missed;			/* slots without a tick before this one */
	int64		elapsed_ms;		/* since the last tick, 0 = first */
	bool		late;			/* much later than planned */
	int64		step_us;		/* step of the wall clock, 0 = none */
} SlotTick;

/* Plans the first tick in the first slot that begins at or after `wall_us`. */
extern void slot_clock_init(SlotClock *clock, int64 interval_us,
							int64 wall_us, double random);

/* Changes the interval; the tick numbers continue without a hole. */
extern void slot_clock_set_interval(SlotClock *clock, int64 interval_us,
									int64 wall_us, double random);

/*
 * Microseconds until the planned tick, 0 if it is due. Plans again if the
 * wall clock was set back by more than a step.
 */
extern int64 slot_clock_wait_us(SlotClock *clock, int64 wall_us);

/*
 * Takes the due tick and plans the next. `random` in [0, 1) is the next
 * tick's position in its slot; 0 = at the begin.
 */
extern SlotTick slot_clock_take(SlotClock *clock, int64 wall_us,
								int64 boot_us, double random);

#endif							/* TACHO_SLOT_CLOCK_H */
