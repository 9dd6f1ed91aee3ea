/*
 * durations.c
 *	  Counts executions of made-up durations as hooks do, and returns the
 *	  percentiles that the view shows for them. For
 *	  116_statements_percentiles.pl, which builds it; not part of the
 *	  extension.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "fmgr.h"

#include "core/counters.c"
#include "statements/usage.c"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(duration_percentiles);

bool		tacho_statements_histogram = true;
int			tacho_statements_cpu = STATEMENTS_CPU_OFF;

int
statements_one_of(uint64 query_id, bool toplevel)
{
	return 1;
}

/* Adds an execution of `ms`. */
static void
count(HotCounters *hot, RareCounters *rare, double ms)
{
	StatementDelta delta;

	usage_clear(&delta);
	usage_executed(&delta, ms, 0, (UsageDraw) {0, 0});
	hot_add(hot, &delta.counters, delta.groups);
	rare_add(rare, &delta.counters, delta.groups);
	hot->histogram[delta.histogram_bucket]++;
}

/* Three percentiles, then the number of executions in each class. */
Datum
duration_percentiles(PG_FUNCTION_ARGS)
{
	ArrayType  *durations = PG_GETARG_ARRAYTYPE_P(0);
	bool		all_extremes = PG_GETARG_BOOL(1);
	const double *ms = (const double *) ARR_DATA_PTR(durations);
	HotCounters hot = {0};
	RareCounters rare = {0};
	Counters	counters;
	Datum		values[COLUMNS_HISTOGRAM];
	bool		nulls[COLUMNS_HISTOGRAM];
	float8		shown[COLUMNS_HISTOGRAM + DURATION_CLASSES - 1];
	const int64 *classes;
	Datum		elements[lengthof(shown)];

	parts_reset_extremes(&hot, &rare, GROUP_ALL);
	for (int i = 0; i < ARR_DIMS(durations)[0]; i++)
		count(&hot, &rare, ms[i]);
	counters_init(&counters);
	counters_add(&counters, &hot, &rare, GROUP_ALL);
	histogram_to_datums(&counters, all_extremes, values, nulls);
	classes = (const int64 *) ARR_DATA_PTR(DatumGetArrayTypeP(values[3]));
	for (int i = 0; i < 3; i++)
		elements[i] = values[i];
	for (int c = 0; c < DURATION_CLASSES; c++)
		elements[3 + c] = Float8GetDatum((double) classes[c]);
	PG_RETURN_ARRAYTYPE_P(construct_array(elements, lengthof(elements), FLOAT8OID,
										  sizeof(float8), true, TYPALIGN_DOUBLE));
}
