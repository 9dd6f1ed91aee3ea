/*
 * statements_plans_record.c
 *	  The increase of each plan's counters, for a row of the history.
 *
 * In every interval the plans of a row add up to the row. Each plan gets the
 * growth of its own counters, but at most the part of the row that no other
 * plan has got. The remainder goes to the entry's first plan. It goes to no
 * plan if a plan has made room for another one, because the replaced plan may
 * have a part of it.
 *
 * Example: since its last row the entry has counted 10 calls, plan B has
 * counted 4. The row has 4 calls of B and 6 of A, the first plan.
 *
 * The entry and its plans are not read at the same moment. So a plan may have
 * counted an execution that the row does not have yet. The plan gets it with
 * the next row.
 *
 * The sampler keeps in its memory the counters of each plan that the history
 * has. A restarted sampler does not know these for the plans that it finds;
 * so one interval has a remainder without a plan.
 *
 * Locking rules: statements_shared.h. Nothing here raises an error; only
 * plans_record_reserve() allocates.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "statements/statements.h"
#include "statements/statements_shared.h"

/* The recorded state of a plan in a set (CountedPlan). */
typedef struct RecordedPlan
{
	int64		plan_id;
	TimestampTz since;
	/* longest execution that the history lacks, ms */
	double		max_exec_time;
	PlanValues	values;
} RecordedPlan;

/*
 * The recorded plans of a set. They belong to the entry with this generation;
 * sets are reused for other entries.
 */
typedef struct RecordedSet
{
	uint64		generation;
	bool		first_known;	/* a row says which plan was the first */
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
		.cpu_time = history_time(counters->cpu_time),
		.rows = counters->rows,
		.shared_blks_hit = counters->shared_blks_hit,
		.shared_blks_read = counters->shared_blks_read,
		.temp_blks_written = counters->temp_blks_written,
	};
}

/* The counters of PlanValues, taken from a row of the history. */
static PlanValues
row_values(const int64 *values)
{
	return (PlanValues) {
		.calls = values[HISTORY_AT(calls)],
		.total_exec_time = values[HISTORY_AT(total_exec_time)],
		.cpu_time = values[HISTORY_AT(user_time)] + values[HISTORY_AT(system_time)],
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

/*
 * Returns the growth from `had` to `now`, but at most `left`, and subtracts
 * it from `left`.
 */
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
 * Makes room for all sets that have been used, and a few more. If memory is
 * short, the remainder of the other sets goes to no plan.
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

/*
 * The recorded plans of a set; emptied if the set has a new entry. NULL if
 * there was no memory for it.
 */
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
 * Prepares the recorded state of a plan. A plan that is new at this place of
 * the set has nothing in the history. If it was there before this sampler
 * started, the history may have a part of it: then returns false, and its
 * present counters count as recorded.
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

/* True if this is the entry's first plan. */
static bool
is_first(const PlanPlace *place, const CountedPlan *plan)
{
	return plan->since == place->since && (uint64) plan->plan_id ==
		pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &place->first));
}

/*
 * Adds to the row the growth of a plan's counters since the last record, but
 * at most `left`, the rest of the statement's own counters. Adds no plan whose
 * counters have not grown.
 */
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

/* Finds a plan in the row; adds it if it is missing. */
static PlanIncrease *
increase_of(StatementRow *row, int64 plan_id, TimestampTz since)
{
	for (int i = 0; i < row->plans; i++)
		if (row->plan[i].plan_id == plan_id && row->plan[i].since == since)
			return &row->plan[i];
	return row_append(row, plan_id, since);
}

/*
 * Adds the remainder of the row to a plan. A remainder without a call goes to
 * the first plan of the row. It is a difference of rounding, or the CPU time
 * of parallel workers of a function's query, which no plan has counted. A
 * row without a plan would follow nearly each interval because of the
 * rounding. Readers would show it as one of unknown plans.
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

/*
 * Adds the plans of a set to the row. Returns false if it is not known which
 * plan the remainder belongs to.
 */
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

/*
 * Executions from before the server's start have no known plan. Adds those
 * that the history lacks to the row, without a plan.
 */
static void
record_before(StatementRow *row, const PlanPlace *place, const int64 *recorded,
			  PlanValues *left)
{
	PlanValues	before = plan_values(&place->before);
	PlanValues	had = row_values(recorded);
	PlanValues	lacked = values_grown(&before, &had, left);

	record_left(row, 0, 0, &lacked);
}

/*
 * Marks the entry's first plan in the row. The history must know it even if it
 * is never executed again: earlier rows of the entry have no plans, and belong
 * to it. So the first row with plans gets the first plan with no executions if
 * it has none.
 */
static void
record_first(StatementRow *row, const PlanPlace *place, RecordedSet *set)
{
	int64		first = (int64) pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &place->first));
	bool		found = false;

	for (int i = 0; i < row->plans; i++)
	{
		row->plan[i].first = row->plan[i].plan_id == first &&
			row->plan[i].since == place->since;
		found |= row->plan[i].first;
	}
	if (set == NULL || first == 0 || row->plans == 0)
		return;
	if (!found && !set->first_known && row->plans < lengthof(row->plan))
		found = row_append(row, first, place->since)->first = true;
	set->first_known |= found;
}

bool
plans_record(StatementEntry *entry, StatementRow *row, const int64 *recorded)
{
	PlanValues	left = row_values(row->values);
	int64		first;
	bool		known = false;
	PlanPlace	place;
	PlanSet		set;
	RecordedSet *recorded_set = NULL;
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
	{
		recorded_set = recorded_set_get(number, row->generation);
		known = record_set(row, &place, &set, recorded_set, &left);
	}
	else if (!place.replaced)
	{
		/*
		 * a restored entry: only its first row has executions of the earlier
		 * life
		 */
		if (place.before.calls == 0 ||
			recorded[HISTORY_AT(calls)] > place.before.calls)
			return true;
		known = true;
	}
	record_before(row, &place, recorded, &left);
	first = (int64) pg_atomic_read_u64(&place.first);
	record_left(row, known ? first : 0, known ? place.since : 0, &left);
	record_first(row, &place, recorded_set);
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

		set->first_known &= !plan->first;
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
