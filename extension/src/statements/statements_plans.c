/*
 * statements_plans.c
 *	  Counts the executions of each plan of a statement.
 *
 * Most statements have one plan for all their life. This file counts nothing
 * for them: plan and entry have the same counters. At its second plan an entry
 * gets a set, in which up to four plans have counters of their own. The rest
 * of the entry's counters, which no plan of the set has, belongs to the first
 * plan. So the plans always add up to the entry. The rest also has executions
 * that could not be counted for their plan, because its lock was busy or no
 * set was left.
 *
 * Example: 1,000 executions of plan A, then plan B once, then A twice. The
 * entry has 1,003, the set has B: 1 and A: 2. The view shows B: 1 and
 * A: 2 + (1,003 - 3).
 *
 * A fifth plan replaces the least recently executed one. Then the rest belongs
 * to the replaced plan and the first plan together, so the view shows the rest
 * without a plan.
 *
 * An entry that was saved before the server's start has counters of unknown
 * plans. They are stored apart at its next execution.
 *
 * The set of a removed entry stays with its slot. It is freed when the slot's
 * next entry counts a plan, or when another entry needs a set and the pool is
 * empty.
 *
 * Locking rules: statements_shared.h. Nothing here allocates or raises errors.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "statements/statements.h"
#include "statements/statements_shared.h"

#define LOOKS_FOR_A_SET 64		/* slots visited in one search */

static inline PlanPlace *
place_of(const StatementEntry *entry)
{
	return &statements_memory.plans[entry - statements_memory.entries];
}

/* The set with this number, NULL for number 0. */
static inline PlanSet *
set_of(uint32 number)
{
	return number == 0 ? NULL : &statements_memory.plan_sets[number - 1];
}

/*
 * Tries to lock the plans of an entry, as long as stripes are tried: 20
 * times, with pauses of 50 us between the last ten.
 */
static bool
place_lock(PlanPlace *place)
{
	for (int attempt = 0; attempt < 20; attempt++)
	{
		if (change_trylock(&place->change))
			return true;
		if (attempt < 10)
			pg_spin_delay();
		else
			pg_usleep(50);
	}
	return false;
}

/* ---- counters ---- */

static inline void
plan_counters_add(PlanCounters *to, const PlanCounters *from)
{
	to->calls += from->calls;
	to->total_exec_time += from->total_exec_time;
	to->cpu_time += from->cpu_time;
	to->rows += from->rows;
	to->shared_blks_hit += from->shared_blks_hit;
	to->shared_blks_read += from->shared_blks_read;
	to->temp_blks_written += from->temp_blks_written;
}

/*
 * Subtracts counters. None becomes negative: an execution that is being
 * counted may be in `part` and not yet in `from`.
 */
static inline void
plan_counters_take(PlanCounters *from, const PlanCounters *part)
{
	from->calls = Max(from->calls - part->calls, 0);
	from->total_exec_time = Max(from->total_exec_time - part->total_exec_time, 0);
	from->cpu_time = Max(from->cpu_time - part->cpu_time, 0);
	from->rows = Max(from->rows - part->rows, 0);
	from->shared_blks_hit = Max(from->shared_blks_hit - part->shared_blks_hit, 0);
	from->shared_blks_read = Max(from->shared_blks_read - part->shared_blks_read, 0);
	from->temp_blks_written = Max(from->temp_blks_written - part->temp_blks_written, 0);
}

/* A plan may have no call, but the time of parallel workers. */
static inline bool
plan_counters_any(const PlanCounters *counters)
{
	return counters->calls > 0 || counters->cpu_time > 0 ||
		counters->shared_blks_hit > 0 || counters->shared_blks_read > 0 ||
		counters->temp_blks_written > 0;
}

/*
 * Copies the counters that a plan has from Counters. Groups that are not in
 * `groups` may be unset; their counters become 0.
 */
static PlanCounters
plan_counters(const Counters *counters, uint32 groups)
{
	bool		exec = (groups & GROUP_exec) != 0;	/* not of a worker */
	bool		cpu = (groups & GROUP_cpu) != 0;
	bool		buffers = (groups & GROUP_buffers) != 0;
	bool		others = (groups & GROUP_other_blocks) != 0;

	return (PlanCounters) {
		.calls = exec ? counters->calls : 0,
		.total_exec_time = exec ? counters->total_exec_time : 0,
		.cpu_time = cpu ? counters->user_time + counters->system_time : 0,
		.rows = exec ? counters->rows : 0,
		.shared_blks_hit = buffers ? counters->shared_blks_hit : 0,
		.shared_blks_read = buffers ? counters->shared_blks_read : 0,
		.temp_blks_written = others ? counters->temp_blks_written : 0,
	};
}

/* Sums all counters of an entry, while other processes count. */
static void
entry_counters(StatementEntry *entry, Counters *counters)
{
	StripeGroup *group = entry_group(entry);

	counters_init(counters);
	for (int i = 0; i < stripe_count(group); i++)
		stripe_collect(counters, entry_stripe(entry, group, i),
					   entry_rare(entry, group, i));
}

/* ---- sets ---- */

/*
 * Takes the set of plans of a removed entry and returns its number. Looks at
 * LOOKS_FOR_A_SET slots; 0 if none of them has the set of a removed entry.
 */
static uint32
set_reclaim(const PlanPlace *mine)
{
	uint32		at = pg_atomic_fetch_add_u32(&statements_memory.shared->plan_hand,
											 LOOKS_FOR_A_SET);
	uint32		slots = statements_slots();
	uint32		number = 0;

	for (int looked = 0; looked < LOOKS_FOR_A_SET && number == 0; looked++)
	{
		uint32		slot = at++ % slots;
		PlanPlace  *place = &statements_memory.plans[slot];

		if (place == mine || pg_atomic_read_u32(&place->set) == 0 ||
			!change_trylock(&place->change))
			continue;
		if (pg_atomic_read_u64(&statements_memory.entries[slot].generation) !=
			pg_atomic_read_u64(&place->generation))
			number = pg_atomic_exchange_u32(&place->set, 0);
		place->replaced |= number != 0; /* the entry may be leaving */
		change_unlock(&place->change);
	}
	return number;
}

static uint32
set_take(const PlanPlace *place)
{
	uint32		number = pool_pop(&statements_memory.shared->plan_sets,
								  statements_memory.next_plan_set);

	return number != 0 ? number : set_reclaim(place);
}

static void
counted_init(CountedPlan *plan, int64 plan_id, TimestampTz since)
{
	memset(plan, 0, sizeof(*plan));
	plan->plan_id = plan_id;
	plan->since = since;
}

/* Starts a set for an entry that gets its second plan. Plan lock held. */
static PlanSet *
set_begin(StatementEntry *entry, PlanPlace *place)
{
	uint32		number = set_take(place);
	PlanSet    *set = set_of(number);
	Counters	counters;

	if (set == NULL)
		return NULL;
	entry_counters(entry, &counters);
	memset(set, 0, sizeof(*set));
	set->first_max = counters.max_exec_time;
	counted_init(&set->plan[0], (int64) pg_atomic_read_u64(&place->first), place->since);
	pg_atomic_write_u32(&place->set, number);
	return set;
}

/*
 * Finds a plan in the set. A new plan replaces the least recently executed
 * one.
 */
static CountedPlan *
set_plan(PlanPlace *place, PlanSet *set, int64 plan_id)
{
	CountedPlan *oldest = &set->plan[0];

	for (int i = 0; i < PLANS_AT_ONCE; i++)
	{
		CountedPlan *plan = &set->plan[i];

		if (plan->plan_id == plan_id)
			return plan;
		if (plan->latest < oldest->latest)
			oldest = plan;
	}
	for (int i = 0; i < PLANS_AT_ONCE; i++)
		if (set->plan[i].plan_id == 0)
			oldest = &set->plan[i];
	place->replaced |= oldest->plan_id != 0;
	counted_init(oldest, plan_id, GetCurrentStatementStartTimestamp());
	return oldest;
}

/* ---- counting ---- */

/*
 * Starts the plans of a new entry in the slot, with its first plan. A
 * restored entry has earlier executions. Plan lock held. Returns the set of
 * the slot's previous entry, to be freed, or 0.
 */
static uint32
place_begin(StatementEntry *entry, PlanPlace *place, uint64 generation,
			const StatementDelta *delta)
{
	uint32		old = pg_atomic_exchange_u32(&place->set, 0);

	place->replaced = false;
	place->since = GetCurrentStatementStartTimestamp();
	memset(&place->before, 0, sizeof(place->before));
	if (generation <= statements_memory.shared->restored)
	{
		PlanCounters mine = plan_counters(&delta->counters, delta->groups);
		Counters	counters;

		entry_counters(entry, &counters);
		place->before = plan_counters(&counters, GROUP_ALL);
		plan_counters_take(&place->before, &mine);
	}
	pg_atomic_write_u64(&place->first, (uint64) delta->plan_id);
	pg_write_barrier();			/* see plans_same() */
	pg_atomic_write_u64(&place->generation, generation);
	return old;
}

/*
 * Counts an execution for its plan. Plan lock held. False if no set is left
 * for a second plan.
 */
static bool
place_count(StatementEntry *entry, PlanPlace *place, const StatementDelta *delta)
{
	PlanCounters counters = plan_counters(&delta->counters, delta->groups);
	PlanSet    *set = set_of(pg_atomic_read_u32(&place->set));
	CountedPlan *plan;

	if (set == NULL && pg_atomic_read_u64(&place->first) == (uint64) delta->plan_id)
		return true;
	if (set == NULL)
		set = set_begin(entry, place);
	if (set == NULL)
		return false;
	plan = set_plan(place, set, delta->plan_id);
	plan_counters_add(&plan->counters, &counters);
	plan->max_exec_time = Max(plan->max_exec_time, counters.total_exec_time);
	plan->recent_max = Max(plan->recent_max, counters.total_exec_time);
	plan->latest = GetCurrentStatementStartTimestamp();
	return true;
}

void
plans_count(StatementEntry *entry, uint64 generation, const StatementDelta *delta)
{
	PlanPlace  *place = place_of(entry);
	bool		counted = false;
	uint32		old = 0;

	HOLD_INTERRUPTS();			/* a set must not be lost */
	if (place_lock(place))
	{
		/* an entry of a later generation may have taken the slot */
		counted = pg_atomic_read_u64(&entry->generation) != generation;
		if (!counted && pg_atomic_read_u64(&place->generation) != generation)
			old = place_begin(entry, place, generation, delta);
		if (!counted)
			counted = place_count(entry, place, delta);
		change_unlock(&place->change);
	}
	if (old != 0)
		pool_push(&statements_memory.shared->plan_sets,
				  statements_memory.next_plan_set, old);
	if (!counted)
		pg_atomic_add_fetch_u64(&statements_memory.shared->plans_missing, 1);
	RESUME_INTERRUPTS();
}

/* ---- reading ---- */

/*
 * Copies place and set consistently. If a writer was stopped in between,
 * takes them as they are.
 */
static void
place_copy(PlanPlace *place, PlanPlace *copy, PlanSet *set)
{
	for (int attempt = 0; attempt < COPY_ATTEMPTS; attempt++)
	{
		uint32		before = pg_atomic_read_u32(&place->change);
		uint32		number;

		pg_read_barrier();
		memcpy(copy, place, sizeof(*copy));
		number = pg_atomic_read_u32(&copy->set);
		if (number != 0)
			*set = *set_of(number);
		pg_read_barrier();
		if ((before & 1) == 0 && pg_atomic_read_u32(&place->change) == before)
			return;
	}
}

bool
plans_take(StatementEntry *entry, PlanPlace *place, PlanSet *set)
{
	PlanPlace  *mine = place_of(entry);
	PlanSet    *own;

	for (int attempt = 0; !change_trylock(&mine->change); attempt++)
	{
		if (attempt == 100)
			return false;
		pg_spin_delay();
	}
	memset(set, 0, sizeof(*set));
	memcpy(place, mine, sizeof(*place));
	own = set_of(pg_atomic_read_u32(&place->set));
	if (own != NULL)
	{
		memcpy(set, own, sizeof(*set));
		for (int i = 0; i < PLANS_AT_ONCE; i++)
			own->plan[i].recent_max = 0;
	}
	change_unlock(&mine->change);
	return true;
}

static PlanRow *
rows_append(PlanRows *rows, int64 plan_id, TimestampTz since, double max,
			const PlanCounters *counters)
{
	PlanRow    *row = &rows->row[rows->n++];

	*row = (PlanRow) {plan_id, since, max, *counters};
	return row;
}

/*
 * Appends the plans of a set. `rest` has the counters of the entry without
 * those in the set and in `before`. It is added to the first plan, or to
 * `unknown` if a plan was replaced.
 */
static void
rows_of_set(PlanRows *rows, const PlanPlace *place, const PlanSet *set,
			const PlanCounters *rest, PlanCounters *unknown)
{
	for (int i = 0; i < PLANS_AT_ONCE; i++)
	{
		const CountedPlan *plan = &set->plan[i];
		PlanRow    *row;

		if (plan->plan_id == 0)
			continue;
		row = rows_append(rows, plan->plan_id, plan->since, plan->max_exec_time,
						  &plan->counters);
		if (place->replaced || (uint64) plan->plan_id != pg_atomic_read_u64(
				unconstify(pg_atomic_uint64 *, &place->first)))
			continue;
		plan_counters_add(&row->counters, rest);
		row->max_exec_time = place->before.calls > 0 ? -1
			: Max(row->max_exec_time, set->first_max);
	}
	if (place->replaced)
		plan_counters_add(unknown, rest);
}

bool
statements_plans(const StatementReader *reader, const StatementCopy *copy,
				 PlanRows *rows)
{
	StatementEntry *entry = &statements_memory.entries[reader->slot - 1];
	PlanCounters rest = plan_counters(&copy->counters, GROUP_ALL);
	PlanCounters unknown;
	PlanPlace	place;
	PlanSet		set = {0};

	rows->n = 0;
	place_copy(place_of(entry), &place, &set);
	if (pg_atomic_read_u64(&entry->generation) != copy->generation)
		return false;
	if (pg_atomic_read_u64(&place.generation) != copy->generation)
		return true;
	unknown = place.before;
	plan_counters_take(&rest, &place.before);
	for (int i = 0; i < PLANS_AT_ONCE; i++)
		plan_counters_take(&rest, &set.plan[i].counters);
	if (pg_atomic_read_u32(&place.set) != 0)
		rows_of_set(rows, &place, &set, &rest, &unknown);
	else
		rows_append(rows, (int64) pg_atomic_read_u64(&place.first), place.since,
					unknown.calls > 0 ? -1 : copy->counters.max_exec_time, &rest);
	if (plan_counters_any(&unknown))
		rows_append(rows, 0, 0, -1, &unknown);
	return true;
}
