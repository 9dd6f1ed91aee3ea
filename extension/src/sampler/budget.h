/*
 * budget.h
 *	  Keeps the sampler's use of a CPU below tacho.max_cpu.
 *
 * Beyond the limit the interval is doubled, up to a minute; far below it is
 * halved again until it is what the setting says. Pure: times come from the
 * caller.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_BUDGET_H
#define TACHO_BUDGET_H

#define BUDGET_WINDOWS		10	/* one second each */
#define BUDGET_CALM_WINDOWS	60	/* before the interval is halved again */

typedef struct Budget
{
	int			factor;			/* of the interval: 1, 2, 4 … */
	int			windows;		/* filled so far, since the last change */
	int64		wall_us[BUDGET_WINDOWS + 1];	/* ring of readings */
	int64		cpu_us[BUDGET_WINDOWS + 1];
	double		share;			/* of one CPU, in percent */
} Budget;

extern void budget_init(Budget *budget);

/*
 * A reading, to be called often. Returns true when the factor has changed.
 * `limit` in percent of a CPU, 0 = none.
 */
extern bool budget_read(Budget *budget, int64 boot_us, int64 cpu_us,
						double limit, int interval_ms);

/* The interval in force, at most a minute. */
extern int	budget_interval_ms(const Budget *budget, int interval_ms);

#endif							/* TACHO_BUDGET_H */
