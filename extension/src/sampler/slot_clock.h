/*
 * slot_clock.h
 *	  When ticks are taken and what number they get.
 *
 * Wall time is divided into slots of one interval: slot = floor(wall ÷
 * interval). One tick is taken at a random moment of each slot. A slot that
 * went by without one leaves a hole in the tick numbers; two ticks in one slot
 * never happen. Numbers follow the wall clock while it runs evenly, and
 * CLOCK_BOOTTIME across a step of it.
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
	int64		slot;			/* planned next */
	int64		planned_us;		/* wall time of it, within the slot */
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
	int64		elapsed_ms;		/* since the previous tick, 0 = first */
	bool		late;			/* much later than planned */
	int64		step_us;		/* the wall clock went forward by, 0 = evenly */
} SlotTick;

/* Starts with the first slot that begins at or after `wall_us`. */
extern void slot_clock_init(SlotClock *clock, int64 interval_us,
							int64 wall_us, double random);

/* Another interval from now on; tick numbers go on without a hole. */
extern void slot_clock_set_interval(SlotClock *clock, int64 interval_us,
									int64 wall_us, double random);

/*
 * Microseconds until the planned tick, 0 when it is due. A wall clock that
 * was set back by more than a step makes it plan anew.
 */
extern int64 slot_clock_wait_us(SlotClock *clock, int64 wall_us);

/*
 * Takes the due tick and plans the next: `random` in [0, 1) is where in its
 * slot it will stand; 0 = at the begin.
 */
extern SlotTick slot_clock_take(SlotClock *clock, int64 wall_us,
								int64 boot_us, double random);

#endif							/* TACHO_SLOT_CLOCK_H */
