/*
 * counters.h
 *	  The counters of a statement, as catalog/counters.h declares them.
 *
 * Only this header, model.h and counters.c expand the catalog. The functions
 * that add, begin or collect counters run inside critical sections of shared
 * memory: they call nothing else.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_COUNTERS_H
#define TACHO_COUNTERS_H

/*
 * The histogram counts durations in 24 buckets. The last bucket begins at 2^23
 * us (8.4 s). It is divided into 12 buckets; the twelfth begins at 4.8 h.
 * These 12 are stored apart, because few statements run so long.
 */
#define HISTOGRAM_BUCKETS 24
#define LONG_BUCKETS 12
#define LONG_FIRST_US ((double) (1 << (HISTOGRAM_BUCKETS - 1)))
#define DURATION_CLASSES (HISTOGRAM_BUCKETS - 1 + LONG_BUCKETS)

/* Number of ids that a counter takes in table statement_stats. */
#define COUNTER_IDS_SUM			1
#define COUNTER_IDS_MIN			1
#define COUNTER_IDS_MAX			1
#define COUNTER_IDS_SQUARE		1
#define COUNTER_IDS_HISTOGRAM	HISTOGRAM_BUCKETS
#define COUNTER_IDS_LONG		LONG_BUCKETS

/*
 * Groups of counters. One execution changes all counters of a group. A new
 * group has a line here, its bit in GROUP_ALL, and a line among the parts.
 */
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
#define GROUP_faults	0x8000	/* only together with GROUP_cpu */
#define GROUP_ALL		0xffff

/*
 * The part of an entry in shared memory that keeps a group. Groups that most
 * statements change lie side by side in the hot part, the others in the rare
 * part.
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
#define PART_faults		rare
#define GROUPS_HOT \
	(GROUP_exec | GROUP_buffers | GROUP_wal | GROUP_cpu | GROUP_histogram)
#define GROUPS_RARE (GROUP_ALL & ~GROUPS_HOT)

/*
 * Expands to `code` if a group of part `of` belongs to `part`, else to
 * nothing.
 */
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
 * A minimum or maximum without a value is "unset": the minimum is infinite,
 * the maximum 0. counters_init() unsets them.
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
 * The counters in two parts, as shared memory keeps them. A set of groups
 * beside them says which groups have values; no one may read the memory of
 * another group.
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

/*
 * All groups of the catalog's counters. GROUP_ALL must have the same bits: a
 * group without its bit would lose its values.
 */
enum
{
	GROUPS_DECLARED = 0
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	| GROUP_##group
#include "../../../catalog/counters.h"
#undef COUNTER
};

StaticAssertDecl(GROUPS_DECLARED == GROUP_ALL,
				 "GROUP_ALL has the groups of the catalog");
StaticAssertDecl(HOT_BYTES == sizeof(HotCounters),
				 "GROUPS_HOT says what the parts say");

/* Merges two values of a counter, by its kind. */
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
 * Adds the values of `from` to the hot part, for the hot groups that `groups`
 * names. Ignores rare groups: rare_add() adds these.
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

/* Adds the named groups of both parts to `to`. */
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

/* Unsets all minima and maxima, and keeps the other counters. */
static inline void
counters_reset_extremes(Counters *counters)
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	RESET_EXTREME_##kind(counters->name)
#include "../../../catalog/counters.h"
#undef COUNTER
}

/* Same as counters_reset_extremes(), for counters in parts. */
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

/*
 * Sets the named groups of both parts to "no executions": sums are 0, extremes
 * are unset.
 */
extern void parts_init(HotCounters *hot, RareCounters *rare, uint32 groups);

static inline void
counters_init(Counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters_reset_extremes(counters);
}

/* Bucket of the histogram for a duration below LONG_FIRST_US. */
static inline int
histogram_bucket(double us)
{
	return us >= 2.0 ? 31 - __builtin_clz((uint32) us) : 0;
}

/*
 * Number of columns that counters_to_datums() fills. sql/expand.awk, which
 * makes the SQL declarations, computes the same number.
 */
extern const int counters_columns;

/*
 * Returns all counters as columns, in catalog order. SQUARE gives two
 * columns, mean and standard deviation. HISTOGRAM gives p50, p95, p99 and the
 * array, in which the buckets of LONG replace the last bucket. A counter that
 * this major version does not have is null. `all_extremes` says that minimum
 * and maximum cover all counted executions; percentiles are then kept between
 * them. Allocates in the current memory context.
 */
extern void counters_to_datums(const Counters *counters, bool all_extremes,
							   Datum *values, bool *nulls);

/*
 * Finds the column `name` of pg_stat_statements or of the catalog. Returns
 * false if there is none. The type of wal_bytes is numeric in
 * pg_stat_statements.
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
 * The columns that the history stores, in catalog order. Their values are
 * whole numbers that only grow while an entry lives: times in units of 10 us,
 * squares in 0.01 ms2.
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

/* Place of a counter in a row of the history: HISTORY_AT(calls). */
typedef struct HistoryPlaces
{
#define COUNTER(id, name, ctype, unit, kind, group, since, doc) \
	char		name[HISTORY_COLUMNS_##kind];
#include "../../../catalog/counters.h"
#undef COUNTER
} HistoryPlaces;

#define HISTORY_AT(name) offsetof(HistoryPlaces, name)

typedef struct HistoryColumn
{
	uint8		id;				/* in table statement_stats */
	bool		is_time;
	int			bucket;			/* of the histogram, -1 = another counter */
	const char *name;
} HistoryColumn;

/* Fills HISTORY_COLUMNS elements. */
extern void counters_history_columns(HistoryColumn *columns);

/* Computes these columns in the same order. Calls nothing that can fail. */
extern void counters_to_history(const Counters *counters, int64 *values);

/* A time in ms as the history stores it. */
extern int64 history_time(double ms);

/* Distribute all columns between the two parts, and join them again. */
extern void history_split(const int64 *values, int64 *hot, int64 *rare);
extern void history_join(int64 *values, const int64 *hot, const int64 *rare);

/* The groups in which at least one counter has a value. */
extern uint32 counters_groups(const Counters *counters);

/*
 * Fingerprint of the declarations. A saved file with another fingerprint is
 * refused.
 */
extern uint32 counters_fingerprint(void);

#endif							/* TACHO_COUNTERS_H */
