/*
 * turns.c
 *	  Tests of turns: which executions count their rows (plan_measures.c), and
 *	  how many trees of plans are offered (plan_trees.c). The clocks are
 *	  variables of this program.
 *	  Prints a line a test, "ok - name" or the difference; built and run by
 *	  181_units.pl.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "statements/plan_measures.c"
#include "statements/plan_trees.c"

#undef printf

#define SECOND	INT64CONST(1000000)
#define MINUTE	(60 * SECOND)
#define NOON	(12 * 60 * MINUTE)

/* ---- what the server and the other files would provide ---- */

TachoShared *tacho_shared;
Oid			MyDatabaseId = 5;
int			ParallelWorkerNumber = -1;
volatile uint32 InterruptHoldoffCount;
MemoryContext CurrentMemoryContext;
bool		tacho_plan_actuals = true;
bool		tacho_plan_text = true;
int			tacho_plan_text_rate = 1;

static TimestampTz now;
static TimestampTz statement_start;
static int	counted;			/* trees with rows */
static int	offered;			/* trees without */

TimestampTz
GetCurrentTimestamp(void)
{
	return now;
}

TimestampTz
GetCurrentStatementStartTimestamp(void)
{
	return statement_start;
}

Oid
GetUserId(void)
{
	return 10;
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return malloc(size);
}

void
MemoryContextRegisterResetCallback(MemoryContext context, MemoryContextCallback *callback)
{
}

bool
plan_actuals_begin(const QueryDesc *query)
{
	return true;
}

bool
query_text_is_known(uint64 key)
{
	return false;
}

bool
query_text_share_is_used(TextKind kind)
{
	return false;
}

void
query_text_remember(uint64 key)
{
}

TreeLeftOut
tree_offer(const QueryDesc *query, int64 plan_id, Oid user, PlanEnd end)
{
	counted += end != PLAN_NOT_COUNTED;
	offered += end == PLAN_NOT_COUNTED;
	return TREE_KEPT;
}

/* ---- tests ---- */

static EState estate;
static PlannedStmt plan = {.queryId = 7};
static QueryDesc query = {.plannedstmt = &plan, .estate = &estate};

static void
is(int64 found, int64 expected, const char *name)
{
	if (found == expected)
		printf("ok - %s\n", name);
	else
		printf("not ok - %s: " INT64_FORMAT " instead of " INT64_FORMAT "\n", name,
			   found, expected);
}

static void
begin_anew(void)
{
	free(tacho_shared);
	tacho_shared = calloc(1, sizeof(TachoShared));
	pg_atomic_write_u32(&tacho_shared->texts_wanted, 1);
	now = statement_start = NOON;
	counted = offered = 0;
}

/* Executes the plan in `ms`; true if its rows are counted. */
static bool
executes(double ms)
{
	uint64		key = plan_tree_key(plan.queryId, 3, GetUserId());
	int			before = counted;

	if (plan_measures_may_have(key))
		plan_measures_begin(&query, 3, key, 0);
	now += (TimestampTz) (ms * 1000);
	plan_measures_end(&query, GetUserId(), 3, ms, false);
	return counted > before;
}

static void
one_statement(void)
{
	begin_anew();
	is(executes(1), false, "a fast execution is not counted");
	is(executes(6), false, "the first slow execution is not counted");
	is(executes(6), true, "the next execution is counted");
	is(executes(6), false, "the one after that is not counted");
	now += 9 * MINUTE;
	is(executes(6) || executes(6), false, "nine minutes later the statement has no turn");
	now += 2 * MINUTE;
	is(executes(6), false, "a slow execution tells a statement of hours the time");
	is(executes(6), true, "eleven minutes later the same statement has a turn");
	is(executes(6), false, "the statement has no turn after that");
	now = statement_start = now + 11 * MINUTE;
	is(executes(1), true, "another statement has a turn at its first execution");
}

static void
clock_is_set_back(void)
{
	begin_anew();
	executes(6);
	executes(6);
	now -= 5 * MINUTE;
	executes(6);
	is(executes(6), false, "a clock that is set back gives no turn");
	statement_start = now;
	is(executes(6), false, "the next statement has the clock that was set back");
}

/* Keys of one group: its number is in the upper half. */
static uint64
key_number(int number)
{
	return UINT64CONST(8) << 32 | (1000 + number);
}

static void
places(void)
{
	begin_anew();
	for (int i = 0; i < WAYS; i++)
		take_place(key_number(i));
	is(plan_measures_may_have(key_number(0)), true, "a plan with a place has a bit");
	for (int i = 0; i < WAYS; i++)
		pg_atomic_write_u64(&group_of(key_number(i))[i].due, (NOON + EACH) & ~HAD_TURN);
	take_place(key_number(8));
	is(plan_measures_may_have(key_number(8)), false, "a plan without a place has no bit");
	pg_atomic_write_u64(&group_of(key_number(3))[3].due, (NOON + EACH) | HAD_TURN);
	take_place(key_number(8));
	is(plan_measures_may_have(key_number(8)), true, "a plan gets the place and the bit of another one");
	is(plan_measures_may_have(key_number(3)), false, "the bit of a plan that lost its place is cleared");
	is(plan_measures_may_have(key_number(4)), true, "the bits of other plans stay");
	clear_bit(key_number(4));
	take_place(key_number(4));
	is(plan_measures_may_have(key_number(4)), true, "a slow execution sets a bit that was shared and cleared");
}

/* Number of trees that executions of new plans offer. */
static int
trees(int executions)
{
	static int64 plan_id = 100;
	int			before = offered;

	for (int i = 0; i < executions; i++)
		plan_trees_see(&query, plan_id++, 0, true);
	return offered - before;
}

static void
rate_of_trees(void)
{
	begin_anew();
	is(trees(60), 30, "unused turns of 30 seconds are kept");
	now += 10 * SECOND;
	is(trees(60), 10, "a statement of ten seconds has ten more turns");
	now += 3600 * SECOND;
	statement_start = now;
	is(trees(60), 30, "another statement uses up all turns");
	statement_start = NOON;
	is(trees(60), 0, "a statement of an hour ago gives no turns back");
	statement_start = now;
	is(trees(60), 0, "the next statement has no turns either");
}

static void
executions_without_an_end(void)
{
	uint64		key;

	begin_anew();
	executes(6);
	key = plan_tree_key(plan.queryId, 3, GetUserId());
	plan_trees_see(&query, 3, 0, false);
	is(pg_atomic_read_u64(&find_place(group_of(key), key)->due), 0,
	   "an execution whose end is not reported takes no turn");
	plan_trees_see(&query, 3, 0, true);
	is(pg_atomic_read_u64(&find_place(group_of(key), key)->due) != 0, true,
	   "an execution whose end is reported takes the turn");
}

int
main(void)
{
	one_statement();
	clock_is_set_back();
	places();
	rate_of_trees();
	executions_without_an_end();
	return 0;
}
