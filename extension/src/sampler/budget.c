/*
 * budget.c
 *	  Keeps the sampler's use of a CPU below tacho.max_cpu.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "sampler/budget.h"

#define WINDOW_US			1000000
#define LONGEST_MS			60000

/*
 * share of the limit below which the interval is halved without exceeding it
 * again
 */
#define CALM_SHARE			0.4

void
budget_init(Budget *budget)
{
	memset(budget, 0, sizeof(*budget));
	budget->factor = 1;
}

int
budget_interval_ms(const Budget *budget, int interval_ms)
{
	return (int) Min((int64) interval_ms * budget->factor, LONGEST_MS);
}

static void
start_over(Budget *budget, int64 boot_us, int64 cpu_us)
{
	budget->windows = 0;
	budget->wall_us[0] = boot_us;
	budget->cpu_us[0] = cpu_us;
}

/*
 * Computes the sampler's share of one CPU since the oldest reading in the
 * ring, in percent.
 */
static void
measure(Budget *budget, int newest)
{
	int			oldest = budget->windows < BUDGET_WINDOWS ? 0 :
		(newest + 1) % (BUDGET_WINDOWS + 1);
	int64		wall = budget->wall_us[newest] - budget->wall_us[oldest];

	budget->share = wall <= 0 ? 0 :
		100.0 * (budget->cpu_us[newest] - budget->cpu_us[oldest]) / wall;
}

bool
budget_read(Budget *budget, int64 boot_us, int64 cpu_us, double limit,
			int interval_ms)
{
	int			newest = budget->windows % (BUDGET_WINDOWS + 1);
	int			before = budget->factor;

	if (budget->wall_us[0] == 0)
		start_over(budget, boot_us, cpu_us);
	if (boot_us - budget->wall_us[newest] < WINDOW_US)
		return false;
	budget->windows++;
	newest = budget->windows % (BUDGET_WINDOWS + 1);
	budget->wall_us[newest] = boot_us;
	budget->cpu_us[newest] = cpu_us;
	measure(budget, newest);
	if (limit <= 0)
		budget->factor = 1;
	else if (budget->windows >= BUDGET_WINDOWS && budget->share > limit &&
			 budget_interval_ms(budget, interval_ms) < LONGEST_MS)
		budget->factor *= 2;
	else if (budget->windows >= BUDGET_CALM_WINDOWS && budget->factor > 1 &&
			 budget->share < limit * CALM_SHARE)
		budget->factor /= 2;
	if (budget->factor == before)
		return false;
	start_over(budget, boot_us, cpu_us);
	return true;
}
