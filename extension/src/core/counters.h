/*
 * counters.h
 *	  The counters of a statement, as catalog/counters.h declares them.
 *
 * Only this header, model.h and counters.c expand the catalog. The functions
 * that add, begin or collect are used inside critical sections of shared memory:
 * they call nothing else.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_COUNTERS_H
#define TACHO_COUNTERS_H

/*
 * Durations are counted in 24 buckets. The last one begins at 2^23 us, 8.4 s,
 * and is divided into 12, of which few statements have any: to 4.8 h, and beyond.
 */
#define HISTOGRAM_BUCKETS 24
#define LONG_BUCKETS 12
#define LONG_FIRST_US ((double) (1 << (HISTOGRAM_BUCKETS - 1)))
#define DURATION_CLASSES (HISTOGRAM_BUCKETS - 1 + LONG_BUCKETS)

/* Ids that a counter takes in table statement_stats. */
#define COUNTER_IDS_SUM			1
#define COUNTER_IDS_MIN			1
#define COUNTER_IDS_MAX			1
#define COUNTER_IDS_SQUARE		1
#define COUNTER_IDS_HISTOGRAM	HISTOGRAM_BUCKETS
#define COUNTER_IDS_LONG		LONG_BUCKETS

/* Groups of counters that an execution changes together. */
#define GROUP_plan		0x0001
#define GROUP_exec		0x0002
#define GROUP_buffers	0x0004
#define GROUP_io_time	0x0008
#define GROUP_wal		0x0010
#define GROUP_jit		0x0020
#define GROUP_workers	0x0040
#define GROUP_origin	0x0080
#define GROUP_cpu		0x0100
#define GROUP_error		0x0200
#define GROUP_histogram	0x0400
#define GROUP_other_blocks 0x0800
#define GROUP_long		0x1000
#define GROUP_wal_full	0x2000
#define GROUP_failed	0x4000
#define GROUP_ALL		0x7fff

/*
 * Where shared memory keeps a group: beside each other what most statements
 * change, apart what few do.
 */
#define PART_plan		rare
#define PART_exec		hot
#define PART_buffers	hot
#define PART_io_time	rare
#define PART_wal		hot
#define PART_jit		rare
#define PART_workers	rare
#define PART_origin		rare
#define PART_cpu		hot
#define PART_error		rare
#define PART_histogram	hot
#define PART_other_blocks rare
#define PART_long		rare
#define PART_wal_full	rare
#define PART_failed		rare
#define GROUPS_HOT \
	(GROUP_exec | GROUP_buffers | GROUP_wal | GROUP_cpu | GROUP_histogram)
#define GROUPS_RARE (GROUP_ALL & ~GROUPS_HOT)

/* `code` if a group of the part `of` belongs to `part`, else nothing. */
#define IN(part, of, code) IN_EXPANDED(part, of, code)
#define IN_EXPANDED(part, of, code) IN_##part##_##of(code)
#define IN_hot_hot(code) code
#define IN_hot_rare(code)
#define IN_rare_hot(code)
#define IN_rare_rare(code) code

#define MEMBER_SUM(ctype, name)			ctype name;
#define MEMBER_MIN(ctype, name)			ctype name;
#define MEMBER_MAX(ctype, name)			ctype name;
#define MEMBER_SQUARE(ctype, name)		ctype name;
#define MEMBER_HISTOGRAM(ctype, name)	ctype name[HISTOGRAM_BUCKETS];
#define MEMBER_LONG(ctype, name)		ctype name[LONG_BUCKETS];

/*
 * Extremes that nothing has been added to are "unset": the minimum is
 * infinite, the maximum 0. counters_init() makes them so.
 */
typedef struct Counters
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	MEMBER_##kind(ctype, name)
#include "../../../catalog/counters.h"
#undef COUNTER
} Counters;

StaticAssertDecl(sizeof(Counters) % sizeof(uint64) == 0,
				 "counters are whole words");

/*
 * The same in two parts, as shared memory keeps them with the set of groups
 * that anything was added to. The other groups hold nothing that may be read.
 */
typedef struct HotCounters
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	IN(hot, PART_##group, MEMBER_##kind(ctype, name))
#include "../../../catalog/counters.h"
#undef COUNTER
} HotCounters;

typedef struct RareCounters
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	IN(rare, PART_##group, MEMBER_##kind(ctype, name))
#include "../../../catalog/counters.h"
#undef COUNTER
} RareCounters;

enum
{
	HOT_BYTES = 0
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	+ ((GROUPS_HOT & GROUP_##group) ? sizeof(((Counters *) NULL)->name) : 0)
#include "../../../catalog/counters.h"
#undef COUNTER
};

StaticAssertDecl(HOT_BYTES == sizeof(HotCounters),
				 "GROUPS_HOT says what the parts say");

/* How two values of a counter become one. */
#define MERGE_SUM(to, from)		((to) += (from))
#define MERGE_SQUARE(to, from)	((to) += (from))
#define MERGE_MIN(to, from)		((to) = (from) < (to) ? (from) : (to))
#define MERGE_MAX(to, from)		((to) = (from) > (to) ? (from) : (to))
#define MERGE_HISTOGRAM(to, from) \
	do { \
		for (int b = 0; b < lengthof(to); b++) \
			(to)[b] += (from)[b]; \
	} while (0)
#define MERGE_LONG(to, from)	MERGE_HISTOGRAM(to, from)

/*
 * Adds the groups named by `groups` of `from` to a part, where they are there;
 * those of the other part are not looked at.
 */
static pg_attribute_always_inline void
hot_add(HotCounters *to, const Counters *from, uint32 groups)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	IN(hot, PART_##group, \
	   if (groups & GROUP_##group) \
		MERGE_##kind(to->name, from->name);)
#include "../../../catalog/counters.h"
#undef COUNTER
}

extern void rare_add(RareCounters *to, const Counters *from, uint32 groups);

/* Adds groups of the parts to `to`. */
static inline void
counters_add(Counters *to, const HotCounters *hot,
			 const RareCounters *rare, uint32 groups)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	if (groups & GROUP_##group) \
		MERGE_##kind(to->name, PART_##group->name);
#include "../../../catalog/counters.h"
#undef COUNTER
}

#define RESET_EXTREME_SUM(member)
#define RESET_EXTREME_SQUARE(member)
#define RESET_EXTREME_HISTOGRAM(member)
#define RESET_EXTREME_LONG(member)
#define RESET_EXTREME_MIN(member) ((member) = __builtin_inf());
#define RESET_EXTREME_MAX(member) ((member) = 0);

/* Unsets minima and maxima and leaves the rest. */
static inline void
counters_reset_extremes(Counters *counters)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	RESET_EXTREME_##kind(counters->name)
#include "../../../catalog/counters.h"
#undef COUNTER
}

/* The same in parts. */
static inline void
parts_reset_extremes(HotCounters *hot, RareCounters *rare, uint32 groups)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	if (groups & GROUP_##group) \
	{ \
		RESET_EXTREME_##kind(PART_##group->name) \
	}
#include "../../../catalog/counters.h"
#undef COUNTER
}

/* Makes groups of the parts that hold nothing hold no executions. */
extern void parts_init(HotCounters *hot, RareCounters *rare, uint32 groups);

/* No executions yet. */
static inline void
counters_init(Counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters_reset_extremes(counters);
}

/* Bucket of the histogram for an execution of less than LONG_FIRST_US. */
static inline int
histogram_bucket(double us)
{
	return us >= 2.0 ? 31 - __builtin_clz((uint32) us) : 0;
}

/*
 * Number of columns that counters_to_datums() fills; the awk program that
 * makes the SQL declarations counts alike.
 */
extern const int counters_columns;

/*
 * All columns of the counters, in catalog order. SQUARE gives two columns,
 * mean and standard deviation; HISTOGRAM gives p50, p95, p99 and the array,
 * with the buckets of LONG in the place of its last one. What this major version
 * cannot know is null. `all_extremes`: minimum and maximum are those of all
 * executions that are counted. Allocates in the current context.
 */
extern void counters_to_datums(const Counters *counters, bool all_extremes,
							   Datum *values, bool *nulls);

/*
 * The column called `name` of pg_stat_statements (or of the catalog), false
 * if there is none. wal_bytes is numeric there.
 */
typedef struct CounterColumn
{
	const char *name;
	uint16		offset;			/* of the member in Counters */
	bool		is_double;
	char		part;			/* 0 value, 'm' mean, 'd' deviation */
	uint16		calls;			/* offset of the number of values */
	uint16		total;			/* offset of the sum of values */
} CounterColumn;

extern bool counters_column(const char *name, CounterColumn *column);
extern Datum counters_column_datum(const Counters *counters,
								   const CounterColumn *column);

/*
 * What of the counters the history stores: whole numbers that only grow while
 * an entry lives, in catalog order. Times are in 10 us, squares in 0.01 ms2.
 */
#define HISTORY_COLUMNS_SUM			1
#define HISTORY_COLUMNS_MIN			0
#define HISTORY_COLUMNS_MAX			0
#define HISTORY_COLUMNS_SQUARE		1
#define HISTORY_COLUMNS_HISTOGRAM	HISTOGRAM_BUCKETS
#define HISTORY_COLUMNS_LONG		LONG_BUCKETS

enum
{
	HISTORY_COLUMNS = 0
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	+ HISTORY_COLUMNS_##kind
#include "../../../catalog/counters.h"
#undef COUNTER
	,
	HISTORY_HOT = 0
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	+ (IN(hot, PART_##group, HISTORY_COLUMNS_##kind) + 0)
#include "../../../catalog/counters.h"
#undef COUNTER
	,
	HISTORY_RARE = HISTORY_COLUMNS - HISTORY_HOT
};

typedef struct HistoryColumn
{
	uint8		id;				/* in table statement_stats */
	bool		is_time;
	int			bucket;			/* of the histogram, -1 = another counter */
	const char *name;
} HistoryColumn;

/* Fills HISTORY_COLUMNS elements. */
extern void counters_history_columns(HistoryColumn *columns);

/* The values, in the same order. Calls nothing that can fail. */
extern void counters_to_history(const Counters *counters, int64 *values);

/* Divides the values of all columns into those of the parts, and joins them. */
extern void history_split(const int64 *values, int64 *hot, int64 *rare);
extern void history_join(int64 *values, const int64 *hot, const int64 *rare);

/* The groups in which anything was counted. */
extern uint32 counters_groups(const Counters *counters);

/* Fingerprint of the declarations: saved files of another one are refused. */
extern uint32 counters_fingerprint(void);

#endif							/* TACHO_COUNTERS_H */
