/*
 * counters.c
 *	  Counters of a statement as values of SQL.
 *
 * Works on private copies only. See counters.h.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "port/pg_crc32c.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "core/compat.h"
#include "core/counters.h"

typedef enum
{
	KIND_SUM, KIND_MIN, KIND_MAX, KIND_SQUARE, KIND_HISTOGRAM, KIND_LONG
} CounterKind;

typedef struct CounterDescriptor
{
	const char *name;
	uint16		id;
	uint16		offset;
	CounterKind kind;
	bool		is_double;
	int			group;
	int			since;
} CounterDescriptor;

#define IS_DOUBLE_int64		false
#define IS_DOUBLE_double	true

static const CounterDescriptor descriptors[] = {
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	{#name, id, offsetof(Counters, name), KIND_##kind, \
	 IS_DOUBLE_##ctype, GROUP_##group, since},
#include "../../../catalog/counters.h"
#undef COUNTER
};

/*
 * Number of columns that a counter gives. SUM, MIN, MAX: the value. SQUARE:
 * mean and deviation. HISTOGRAM: three percentiles and the array, which
 * includes the buckets of LONG.
 */
#define COLUMNS_SUM			1
#define COLUMNS_MIN			1
#define COLUMNS_MAX			1
#define COLUMNS_SQUARE		2
#define COLUMNS_HISTOGRAM	4
#define COLUMNS_LONG		0

const int	counters_columns = 0
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	+ COLUMNS_##kind
#include "../../../catalog/counters.h"
#undef COUNTER
;

static double
member_double(const Counters *counters, int offset)
{
	double		value = *(const double *) ((const char *) counters + offset);

	return isinf(value) ? 0 : value;	/* an unset minimum shows as 0 */
}

static int64
member_int64(const Counters *counters, int offset)
{
	return *(const int64 *) ((const char *) counters + offset);
}

static double
mean(int64 n, double sum)
{
	return n > 0 ? sum / n : 0;
}

/* Standard deviation of the whole population (divided by n). */
static double
deviation(int64 n, double sum, double squares)
{
	double		variance;

	if (n <= 1)
		return 0;
	variance = (squares - sum * sum / n) / n;
	return variance > 0 ? sqrt(variance) : 0;
}

/*
 * Offsets of two counters in Counters: the number and the sum of the values
 * whose squares a SQUARE adds up.
 */
static void
values_of_squares(const CounterDescriptor *descriptor, uint16 *calls,
				  uint16 *total)
{
	bool		plan = descriptor->group == GROUP_plan;

	*calls = plan ? offsetof(Counters, plans) : offsetof(Counters, calls);
	*total = plan ? offsetof(Counters, total_plan_time)
		: offsetof(Counters, total_exec_time);
}

/*
 * Fills `classes` with the number of executions in each class of durations.
 * The classes are the buckets of the histogram; the buckets of LONG replace
 * its last one.
 */
static void
duration_classes(const Counters *counters, int64 *classes)
{
	memcpy(classes, counters->histogram,
		   (HISTOGRAM_BUCKETS - 1) * sizeof(int64));
	memcpy(classes + HISTOGRAM_BUCKETS - 1, counters->histogram_long,
		   LONG_BUCKETS * sizeof(int64));
}

/* Lower limit of class `c`, in us. */
static double
class_begin(int c)
{
	return c == 0 ? 0 : ldexp(1, c);
}

/*
 * From this class on (1024 us), the total time can narrow the bounds of a
 * class.
 */
#define EXACT_CLASS			10

/*
 * Bounds in us of the durations in the last class, which has no upper limit.
 * All other executions are assumed in the middle of their classes; the
 * executions of this class take the rest of the total time. One execution
 * takes all of it. The bounds for several are the begin of the class, and an
 * end at which their mean is the middle.
 */
static void
open_class_bounds(const int64 *classes, double total_us, double *begin, double *end)
{
	int			c = DURATION_CLASSES - 1;

	for (int other = 0; other < c; other++)
		total_us -= classes[other] * (class_begin(other) + class_begin(other + 1)) / 2;
	*begin = classes[c] == 1 ? Max(total_us, class_begin(c)) : class_begin(c);
	*end = Max(2 * total_us / classes[c] - *begin, *begin);
}

/*
 * Bounds in us of the durations in a class. The total time of all executions
 * often gives closer bounds than the class; example: a single execution of
 * 294 ms has both bounds at 294 ms, not 262 and 524 ms.
 *
 * Upper bound: suppose that all executions are as short as their classes
 * allow. The rest of the total time then belongs to executions above the
 * begin of this class. One execution may have all of the rest. Several have
 * it in equal shares on average, and an even spread ends at twice that share.
 * The lower bound follows in the same way from the ends of the classes. A
 * total time that contradicts the classes gives no bound. Classes below
 * EXACT_CLASS keep their own bounds, because the history has times in units
 * of 10 us only.
 */
static void
class_bounds(const int64 *classes, int c, double total_us, double *begin, double *end)
{
	double		above = total_us;
	double		below = -total_us;
	double		of = Max(classes[c], 2) / 2.0;

	if (c == DURATION_CLASSES - 1)
	{
		open_class_bounds(classes, total_us, begin, end);
		return;
	}
	for (int each = 0; each < DURATION_CLASSES; each++)
	{
		above -= classes[each] * class_begin(each);
		below += classes[each] * class_begin(each + 1);
	}
	if (classes[DURATION_CLASSES - 1] > 0)
		below = -1;
	*begin = class_begin(c);
	*end = class_begin(c + 1);
	if (c < EXACT_CLASS)
		return;
	if (below >= 0)
		*begin = Max(*begin, *end - below / of);
	if (above >= 0)
		*end = Min(*end, class_begin(c) + above / of);
}

/*
 * Duration, in ms, that `share` of all `n` executions did not exceed.
 * Interpolates linearly between the bounds of a class, so the result is off
 * by less than a factor of two. tape/src/query/sums/executions.rs has the
 * same rule.
 */
static double
percentile(const int64 *classes, int64 n, double share, double total_ms)
{
	double		rank = share * n;
	int			c = 0;
	double		begin,
				end;

	while (c < DURATION_CLASSES - 1 && (classes[c] == 0 || rank > classes[c]))
		rank -= classes[c++];
	class_bounds(classes, c, total_ms * 1000.0, &begin, &end);
	return (begin + (end - begin) * rank / classes[c]) / 1000.0;
}

/*
 * The buckets as an SQL array. construct_array() makes the same array with
 * one call per number: that was a tenth of the cost of reading the view.
 */
static Datum
buckets_datum(const int64 *buckets)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + DURATION_CLASSES * sizeof(int64);
	ArrayType  *array = palloc0(size);

	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->elemtype = INT8OID;
	ARR_DIMS(array)[0] = DURATION_CLASSES;
	ARR_LBOUND(array)[0] = 1;
	memcpy(ARR_DATA_PTR(array), buckets, DURATION_CLASSES * sizeof(int64));
	return PointerGetDatum(array);
}

static int
histogram_to_datums(const Counters *counters, bool all_extremes,
					Datum *values, bool *nulls)
{
	static const double shares[] = {0.50, 0.95, 0.99};
	int64		classes[DURATION_CLASSES];
	int64		n = 0;
	int			column = 0;

	duration_classes(counters, classes);
	for (int c = 0; c < DURATION_CLASSES; c++)
		n += classes[c];
	for (; column < lengthof(shares); column++)
	{
		double		ms;

		nulls[column] = n == 0;
		if (n == 0)
			continue;
		ms = percentile(classes, n, shares[column], counters->total_exec_time);
		if (all_extremes)
			ms = Min(Max(ms, counters->min_exec_time), counters->max_exec_time);
		values[column] = Float8GetDatum(ms);
	}
	nulls[column] = false;
	values[column++] = buckets_datum(classes);
	return column;
}

static int
counter_to_datums(const Counters *counters, const CounterDescriptor *d,
				  bool all_extremes, Datum *values, bool *nulls)
{
	uint16		calls,
				total;

	switch (d->kind)
	{
		case KIND_HISTOGRAM:
			return histogram_to_datums(counters, all_extremes, values, nulls);
		case KIND_LONG:
			return 0;
		case KIND_SQUARE:
			values_of_squares(d, &calls, &total);
			values[0] = Float8GetDatum(mean(member_int64(counters, calls),
											member_double(counters, total)));
			values[1] = Float8GetDatum(deviation(member_int64(counters, calls),
												 member_double(counters, total),
												 member_double(counters, d->offset)));
			nulls[0] = nulls[1] = false;
			return 2;
		default:
			nulls[0] = d->since > COMPAT_MAJOR;
			values[0] = d->is_double
				? Float8GetDatum(member_double(counters, d->offset))
				: Int64GetDatum(member_int64(counters, d->offset));
			return 1;
	}
}

void
counters_to_datums(const Counters *counters, bool all_extremes,
				   Datum *values, bool *nulls)
{
	int			column = 0;

	for (int i = 0; i < lengthof(descriptors); i++)
		column += counter_to_datums(counters, &descriptors[i], all_extremes,
									values + column, nulls + column);
	Assert(column == counters_columns);
}

bool
counters_column(const char *name, CounterColumn *column)
{
	bool		is_mean = strncmp(name, "mean_", 5) == 0;
	bool		is_deviation = strncmp(name, "stddev_", 7) == 0;

	memset(column, 0, sizeof(*column));
	column->name = name;
	for (int i = 0; i < lengthof(descriptors); i++)
	{
		const CounterDescriptor *d = &descriptors[i];

		if (d->kind == KIND_SQUARE && (is_mean || is_deviation) &&
			strcmp(d->name + strlen("square_"),
				   name + strlen(is_mean ? "mean_" : "stddev_")) == 0)
		{
			column->part = is_mean ? 'm' : 'd';
			values_of_squares(d, &column->calls, &column->total);
		}
		else if (strcmp(d->name, name) != 0)
			continue;
		column->offset = d->offset;
		column->is_double = d->is_double;
		return true;
	}
	return false;
}

Datum
counters_column_datum(const Counters *counters, const CounterColumn *column)
{
	int64		n;
	double		sum;

	if (column->part == 0)
		return column->is_double
			? Float8GetDatum(member_double(counters, column->offset))
			: Int64GetDatum(member_int64(counters, column->offset));

	n = member_int64(counters, column->calls);
	sum = member_double(counters, column->total);
	if (column->part == 'm')
		return Float8GetDatum(mean(n, sum));
	return Float8GetDatum(deviation(n, sum,
									member_double(counters, column->offset)));
}

#define IS_TIME_one		false
#define IS_TIME_ms		true
#define IS_TIME_bytes	false
#define IS_TIME_blocks	false
#define IS_TIME_us		true

void
counters_history_columns(HistoryColumn *columns)
{
	int			n = 0;

#define PUT_MIN(id, name, time)
#define PUT_MAX(id, name, time)
#define PUT_SUM(id, name, time) \
	columns[n++] = (HistoryColumn) {id, time, -1, #name};
#define PUT_SQUARE(id, name, time) \
	columns[n++] = (HistoryColumn) {id, false, -1, #name};
#define PUT_BUCKETS(id, name, buckets) \
	for (int b = 0; b < (buckets); b++) \
		columns[n++] = (HistoryColumn) {id + b, false, b, #name};
#define PUT_HISTOGRAM(id, name, time) PUT_BUCKETS(id, name, HISTOGRAM_BUCKETS)
#define PUT_LONG(id, name, time) PUT_BUCKETS(id, name, LONG_BUCKETS)
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	PUT_##kind(id, name, IS_TIME_##unit)
#include "../../../catalog/counters.h"
#undef COUNTER
	Assert(n == HISTORY_COLUMNS);
}

/*
 * Values as the history stores them: counts unchanged, times (in ms) in units
 * of 10 us. A negative value becomes 0, a value beyond the range of int64 the
 * greatest int64.
 */
static inline int64
history_int64(int64 value)
{
	return Max(value, 0);
}

static inline int64
history_double(double value)
{
	double		units = value * 100.0;

	if (!(units > 0))
		return 0;
	return units < 9.2e18 ? (int64) (units + 0.5) : PG_INT64_MAX;
}

int64
history_time(double ms)
{
	return history_double(ms);
}

void
counters_to_history(const Counters *counters, int64 *values)
{
	int			n = 0;

#define VALUE_MIN(ctype, name)
#define VALUE_MAX(ctype, name)
#define VALUE_SUM(ctype, name) values[n++] = history_##ctype(counters->name);
#define VALUE_SQUARE(ctype, name) VALUE_SUM(ctype, name)
#define VALUE_HISTOGRAM(ctype, name) \
	for (int b = 0; b < lengthof(counters->name); b++) \
		values[n++] = history_##ctype(counters->name[b]);
#define VALUE_LONG(ctype, name) VALUE_HISTOGRAM(ctype, name)
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	VALUE_##kind(ctype, name)
#include "../../../catalog/counters.h"
#undef COUNTER
}

void
rare_add(RareCounters *to, const Counters *from, uint32 groups)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	IN(rare, PART_##group, \
	   if (groups & GROUP_##group) \
		MERGE_##kind(to->name, from->name);)
#include "../../../catalog/counters.h"
#undef COUNTER
}

void
parts_init(HotCounters *hot, RareCounters *rare, uint32 groups)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	if (groups & GROUP_##group) \
		memset(&PART_##group->name, 0, sizeof(PART_##group->name));
#include "../../../catalog/counters.h"
#undef COUNTER
	parts_reset_extremes(hot, rare, groups);
}

void
history_split(const int64 *values, int64 *hot, int64 *rare)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	for (int i = 0; i < HISTORY_COLUMNS_##kind; i++) \
		*PART_##group++ = *values++;
#include "../../../catalog/counters.h"
#undef COUNTER
}

void
history_join(int64 *values, const int64 *hot, const int64 *rare)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	for (int i = 0; i < HISTORY_COLUMNS_##kind; i++) \
		*values++ = *PART_##group++;
#include "../../../catalog/counters.h"
#undef COUNTER
}

uint32
counters_groups(const Counters *counters)
{
	Counters	none;
	uint32		groups = 0;

	counters_init(&none);
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	if (memcmp(&counters->name, &none.name, sizeof(none.name)) != 0) \
		groups |= GROUP_##group;
#include "../../../catalog/counters.h"
#undef COUNTER
	return groups;
}

uint32
counters_fingerprint(void)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	for (int i = 0; i < lengthof(descriptors); i++)
	{
		const CounterDescriptor *d = &descriptors[i];

		COMP_CRC32C(crc, d->name, strlen(d->name));
		COMP_CRC32C(crc, &d->id, sizeof(d->id));
		COMP_CRC32C(crc, &d->offset, sizeof(d->offset));
	}
	FIN_CRC32C(crc);
	return crc;
}
