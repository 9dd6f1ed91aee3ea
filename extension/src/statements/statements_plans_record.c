/*
 * statements_plans_record.c
 *	  The plans of a row of the history, with the increase of their counters.
 *
 * The plans of a row add up to the row, in every interval. Each plan gets what
 * its counters have grown by, as far as the row has that much left; the first
 * plan, or none once a plan has made room for another, gets the remainder.
 *
 * Example: the entry has 10 calls since its last row, plan B has counted 4 more.
 * The rows are B: 4 and the first plan, A: 6.
 *
 * A plan can be ahead of the row by an execution that was counted between two
 * looks, at the entry and at its plans. It gets that with the next row.
 *
 * The memory of the sampler keeps how much of each plan the history has. A
 * sampler that starts again does not know that for plans it finds: then one
 * interval has a remainder without a plan.
 *
 * Locking rules: statements_shared.h. Nothing here raises an error; only
 * plans_record_reserve() allocates.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "statements/statements_shared.h"

/* A plan of a set, as CountedPlan. */
typedef struct RecordedPlan
{
	int64		plan_id;
	TimestampTz since;
	double		max_exec_time;	/* of executions that the history lacks */
	PlanValues	values;
} RecordedPlan;

/* Of the set with that number, while it belongs to that entry. */
typedef struct RecordedSet
{
	uint64		generation;
	RecordedPlan plan[PLANS_AT_ONCE];
} RecordedSet;

static RecordedSet *recorded_sets = NULL;
static uint32 recorded_sets_n = 0;

/* ---- values ---- */

#define FOR_EACH_VALUE(at) \
	for (int at = 0; at < sizeof(PlanValues) / sizeof(int64); at++)

static PlanValues
plan_values(const PlanCounters *counters)
{
	return (PlanValues) {
		.calls = counters->calls,
		.total_exec_time = history_time(counters->total_exec_time),
		.rows = counters->rows,
		.shared_blks_hit = counters->shared_blks_hit,
		.shared_blks_read = counters->shared_blks_read,
		.temp_blks_written = counters->temp_blks_written,
	};
}

/* The same counters of a row of the history. */
static PlanValues
row_values(const int64 *values)
{
	return (PlanValues) {
		.calls = values[HISTORY_AT(calls)],
		.total_exec_time = values[HISTORY_AT(total_exec_time)],
		.rows = values[HISTORY_AT(rows)],
		.shared_blks_hit = values[HISTORY_AT(shared_blks_hit)],
		.shared_blks_read = values[HISTORY_AT(shared_blks_read)],
		.temp_blks_written = values[HISTORY_AT(temp_blks_written)],
	};
}

static void
values_add(PlanValues *to, const PlanValues *from, int sign)
{
	FOR_EACH_VALUE(i)
		((int64 *) to)[i] += sign * ((const int64 *) from)[i];
}

static bool
values_any(const PlanValues *values)
{
	int64		any = 0;

	FOR_EACH_VALUE(i)
		any |= ((const int64 *) values)[i];
	return any != 0;
}

/* Takes from `left` what `now` is more than `had`, and returns that. */
static PlanValues
values_grown(const PlanValues *now, const PlanValues *had, PlanValues *left)
{
	PlanValues	grown;

	FOR_EACH_VALUE(i)
	{
		int64		more = ((const int64 *) now)[i] - ((const int64 *) had)[i];

		((int64 *) &grown)[i] = Min(Max(more, 0), ((int64 *) left)[i]);
	}
	values_add(left, &grown, -1);
	return grown;
}

/* ---- what the history has ---- */

/*
 * Makes room for all sets that have been used, and a few more. Without memory
 * their plans are not known.
 */
void
plans_record_reserve(void)
{
	uint32		used = pg_atomic_read_u32(&statements_memory.shared->plan_sets.untouched);
	uint32		n = used + used / 2 + 64;
	RecordedSet *more;

	if (used < recorded_sets_n)
		return;
	more = MemoryContextAllocExtended(TopMemoryContext, n * sizeof(RecordedSet),
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM |
									  MCXT_ALLOC_ZERO);
	if (more == NULL)
		return;
	if (recorded_sets != NULL)
	{
		memcpy(more, recorded_sets, recorded_sets_n * sizeof(RecordedSet));
		pfree(recorded_sets);
	}
	recorded_sets = more;
	recorded_sets_n = n;
}

/* NULL = there is no memory for it. */
static RecordedSet *
recorded_set_get(uint32 number, uint64 generation)
{
	RecordedSet *set;

	if (number > recorded_sets_n)
		return NULL;
	set = &recorded_sets[number - 1];
	if (set->generation != generation)
	{
		memset(set, 0, sizeof(*set));
		set->generation = generation;
	}
	return set;
}

static bool
is_same(const RecordedPlan *recorded, int64 plan_id, TimestampTz since)
{
	return recorded->plan_id == plan_id && recorded->since == since;
}

/*
 * The plan at a place of the set. One that is new there has nothing in the
 * history, unless it was there before this sampler: false, it is not known.
 */
static bool
recorded_plan_begin(RecordedPlan *recorded, const CountedPlan *plan)
{
	if (is_same(recorded, plan->plan_id, plan->since))
		return true;
	*recorded = (RecordedPlan) {plan->plan_id, plan->since};
	if (plan->since >= MyStartTimestamp)
		return true;
	recorded->values = plan_values(&plan->counters);
	return false;
}

/* ---- a row ---- */

static PlanIncrease *
row_append(StatementRow *row, int64 plan_id, TimestampTz since)
{
	PlanIncrease *plan = &row->plan[row->plans++];

	*plan = (PlanIncrease) {.plan_id = plan_id, .since = since};
	return plan;
}

/* The plan was there before all others of the set. */
static bool
is_first(const PlanPlace *place, const CountedPlan *plan)
{
	return plan->since == place->since && (uint64) plan->plan_id ==
		pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &place->first));
}

/* Gives a plan of the set its increase, as far as the row has that left. */
static void
record_plan(StatementRow *row, const CountedPlan *plan, RecordedPlan *recorded,
			PlanValues *left)
{
	PlanValues	now = plan_values(&plan->counters);
	PlanValues	grown = values_grown(&now, &recorded->values, left);
	double		longest = Max(plan->recent_max, recorded->max_exec_time);
	PlanIncrease *increase;

	values_add(&recorded->values, &grown, 1);
	recorded->max_exec_time = recorded->values.calls < now.calls ? longest : 0;
	if (!values_any(&grown))
		return;
	increase = row_append(row, plan->plan_id, plan->since);
	increase->values = grown;
	increase->max_exec_time = history_time(longest);
}

/* The increase of a plan in a row, which is made when it is missing. */
static PlanIncrease *
increase_of(StatementRow *row, int64 plan_id, TimestampTz since)
{
	for (int i = 0; i < row->plans; i++)
		if (row->plan[i].plan_id == plan_id && row->plan[i].since == since)
			return &row->plan[i];
	return row_append(row, plan_id, since);
}

/*
 * Adds what is left to a plan. Times without an execution are of rounding: they
 * make no row.
 */
static void
record_left(StatementRow *row, int64 plan_id, TimestampTz since,
			const PlanValues *left)
{
	PlanIncrease *increase;

	if (!values_any(left))
		return;
	if (left->calls == 0 && row->plans > 0)
		increase = &row->plan[0];
	else
		increase = increase_of(row, plan_id, since);
	values_add(&increase->values, left, 1);
	if (left->calls > 0)
		increase->max_exec_time = 0;
}

/* The plans of a set. False: it is not known which plan the remainder is of. */
static bool
record_set(StatementRow *row, const PlanPlace *place, const PlanSet *set,
		   RecordedSet *recorded, PlanValues *left)
{
	bool		known = recorded != NULL && !place->replaced;

	for (int i = 0; i < PLANS_AT_ONCE && recorded != NULL; i++)
	{
		const CountedPlan *plan = &set->plan[i];

		if (plan->plan_id == 0)
			continue;
		known &= recorded_plan_begin(&recorded->plan[i], plan) ||
			is_first(place, plan);
		record_plan(row, plan, &recorded->plan[i], left);
	}
	return known;
}

/* Gives no plan the executions of an earlier life of the server that the history lacks. */
static void
record_before(StatementRow *row, const PlanPlace *place, const int64 *recorded,
			  PlanValues *left)
{
	PlanValues	before = plan_values(&place->before);
	PlanValues	had = row_values(recorded);
	PlanValues	lacked = values_grown(&before, &had, left);

	record_left(row, 0, 0, &lacked);
}

bool
plans_record(StatementEntry *entry, StatementRow *row, const int64 *recorded)
{
	PlanValues	left = row_values(row->values);
	int64		first;
	bool		known = false;
	PlanPlace	place;
	PlanSet		set;
	uint32		number;

	row->plans = 0;
	if (plans_has_one(entry))
		return true;
	if (!plans_take(entry, &place, &set))
		return false;
	number = pg_atomic_read_u32(&place.set);
	if (pg_atomic_read_u64(&place.generation) != row->generation)
		return true;
	if (number != 0)
		known = record_set(row, &place, &set,
						   recorded_set_get(number, row->generation), &left);
	else if (!place.replaced)
	{
		/* the first row of a restored entry tells this life from the one before */
		if (place.before.calls == 0 ||
			recorded[HISTORY_AT(calls)] > place.before.calls)
			return true;
		known = true;
	}
	record_before(row, &place, recorded, &left);
	first = (int64) pg_atomic_read_u64(&place.first);
	record_left(row, known ? first : 0, known ? place.since : 0, &left);
	for (int i = 0; i < row->plans; i++)
		row->plan[i].first = row->plan[i].plan_id == first &&
			row->plan[i].since == place.since;
	return true;
}

void
plans_give_back(const StatementEntry *entry, const StatementRow *row)
{
	PlanPlace  *place = &statements_memory.plans[entry - statements_memory.entries];
	uint32		number = pg_atomic_read_u32(&place->set);
	RecordedSet *set;

	if (row->plans == 0 || number == 0 ||
		pg_atomic_read_u64(&place->generation) != row->generation)
		return;
	set = recorded_set_get(number, row->generation);
	for (int i = 0; i < row->plans && set != NULL; i++)
	{
		const PlanIncrease *plan = &row->plan[i];

		for (int j = 0; j < PLANS_AT_ONCE; j++)
		{
			if (plan->plan_id == 0 ||
				!is_same(&set->plan[j], plan->plan_id, plan->since))
				continue;
			values_add(&set->plan[j].values, &plan->values, -1);
			set->plan[j].max_exec_time = Max(set->plan[j].max_exec_time,
											 plan->max_exec_time / 100.0);
		}
	}
}
