/*
 * measures.h
 *	  Rows of measurements: readings of the server as columns of the history.
 *
 * Used by the sampler only. Rows go to the open frame.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_MEASURES_H
#define TACHO_MEASURES_H

#include "datatype/timestamp.h"

#include "core/host.h"
#include "history/frame.h"
#include "history/meta.h"
#include "history/schema.h"

#define MEASURE_COLUMNS	(MODEL_MAX_COLUMN + 1)
#define NOT_KNOWN		HOST_NOT_KNOWN

/* The values of one row, by column id. */
typedef int64 Values[MEASURE_COLUMNS];

extern void measures_init(void);

/*
 * Sets the previous reading of all counters of a row. With `at_zero` it is 0:
 * the counters began after the last reading, so they have their whole value
 * as increase. Otherwise it is unknown.
 */
extern void begin_counting(Values before, bool at_zero);

/* Sets all values of a row to "not known". */
extern void forget(Values values);

/*
 * True if a counter in `now` differs from the reading `before`, if that had
 * it.
 */
extern bool has_counted(ModelTable table, const Values now, const Values before);

/*
 * Adds a row with the time `now` to a table of the open frame; *row is the
 * row's index.
 */
extern Section *add_row(ModelTable table, UnixMs now, int *row);

/* Id of the name of a measured object, such as a database. */
extern uint64 object_name(const char *name);

/*
 * Sets the measurements of a row. A gauge is stored as read, a counter as its
 * increase, if the last reading knew it. Then copies `now` to `before`.
 */
extern void set_measures(Section *section, int row, const Values now,
						 Values before);

/*
 * Puts a marker: the statistics of `what` (such as "I/O") were reset at the
 * time `reset`.
 */
extern void mark_reset(const char *what, TimestampTz reset);

#endif							/* TACHO_MEASURES_H */
