/*
 * slot_clock.c
 *	  Times and numbers of ticks.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "sampler/slot_clock.h"

/*
 * Length of the first part of a slot, in us. Ticks are planned only there, so
 * that a tick that wakes up a little late is still in its slot. The rest of
 * the slot is a fifth of it, at most two milliseconds.
 */
static int64
usable_us(int64 interval_us)
{
	return interval_us - Min(interval_us / 5, 2000);
}

static void
plan(SlotClock *clock, int64 slot, double random)
{
	clock->slot = slot;
	clock->planned_us = slot * clock->interval_us +
		(int64) (random * usable_us(clock->interval_us));
}

void
slot_clock_init(SlotClock *clock, int64 interval_us, int64 wall_us,
				double random)
{
	memset(clock, 0, sizeof(*clock));
	clock->interval_us = interval_us;
	plan(clock, (wall_us + interval_us - 1) / interval_us, random);
}

void
slot_clock_set_interval(SlotClock *clock, int64 interval_us, int64 wall_us,
						double random)
{
	clock->interval_us = interval_us;
	clock->interval_changed = true;
	plan(clock, wall_us / interval_us + 1, random);
}

int64
slot_clock_wait_us(SlotClock *clock, int64 wall_us)
{
	int64		wait = clock->planned_us - wall_us;

	if (wait > 2 * clock->interval_us + CLOCK_STEP_US)
	{
		/* the clock was set back: plan again from its new time */
		int64		offset = clock->planned_us - clock->slot * clock->interval_us;

		clock->slot = wall_us / clock->interval_us + 1;
		clock->planned_us = clock->slot * clock->interval_us + offset;
		wait = clock->planned_us - wall_us;
	}
	return Max(wait, 0);
}

/* Number of slots without a tick between the last tick and this one. */
static int64
missed_slots(const SlotClock *clock, int64 slot, int64 boot_us, int64 step_us)
{
	int64		slots;

	if (clock->tick == 0)
		return 0;
	if (clock->interval_changed || step_us != 0)
		slots = (boot_us - clock->last_boot_us) / clock->interval_us;
	else
		slots = slot - clock->last_slot;
	return Max(slots - 1, 0);
}

SlotTick
slot_clock_take(SlotClock *clock, int64 wall_us, int64 boot_us, double random)
{
	SlotTick	due = {0};
	int64		slot = wall_us / clock->interval_us;

	if (clock->tick != 0)
	{
		int64		step = (wall_us - clock->last_wall_us) -
			(boot_us - clock->last_boot_us);

		if (step > CLOCK_STEP_US || step < -CLOCK_STEP_US)
			due.step_us = step;
		due.elapsed_ms = (boot_us - clock->last_boot_us) / 1000;
	}
	due.missed = missed_slots(clock, slot, boot_us, due.step_us);
	due.late = due.step_us == 0 &&
		(slot > clock->slot ||
		 wall_us - clock->planned_us > clock->interval_us / 2);
	due.tick = clock->tick += due.missed + 1;
	due.slot_time = slot * clock->interval_us / 1000;
	clock->last_slot = slot;
	clock->last_wall_us = wall_us;
	clock->last_boot_us = boot_us;
	clock->interval_changed = false;
	plan(clock, slot + 1, random);
	return due;
}
