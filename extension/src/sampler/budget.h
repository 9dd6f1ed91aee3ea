/*
 * budget.h
 *	  Keeps the sampler's use of a CPU below tacho.max_cpu.
 *
 * If the sampler uses more CPU than the limit, the interval is doubled, up to
 * a minute. If it uses far less, the interval is halved again, down to the
 * setting. Pure: the caller passes the times.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_BUDGET_H
#define TACHO_BUDGET_H

#define BUDGET_WINDOWS		10	/* one second each */
#define BUDGET_CALM_WINDOWS	60	/* before the interval is halved */

typedef struct Budget
{
	/* the interval is this many times the setting: 1, 2, 4 … */
	int			factor;
	int			windows;		/* readings since the last change */
	int64		wall_us[BUDGET_WINDOWS + 1];	/* ring of readings */
	int64		cpu_us[BUDGET_WINDOWS + 1];
	double		share;			/* of one CPU, in percent */
} Budget;

extern void budget_init(Budget *budget);

/*
 * Takes a reading; call it often. `limit` is in percent of one CPU, 0 = no
 * limit. Returns true if the factor has changed.
 */
extern bool budget_read(Budget *budget, int64 boot_us, int64 cpu_us,
						double limit, int interval_ms);

/* The interval in use, at most a minute. */
extern int	budget_interval_ms(const Budget *budget, int interval_ms);

#endif							/* TACHO_BUDGET_H */
