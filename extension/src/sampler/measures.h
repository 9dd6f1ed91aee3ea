/*
 * measures.h
 *	  Rows of measurements: what is read, and what of it is recorded.
 *
 * Used by the sampler only. What is recorded goes to the open frame.
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

/* Values of one row by column id. */
typedef int64 Values[MEASURE_COLUMNS];

extern void measures_init(void);

/* Counters that began at 0 since the reading before, or nobody knows when. */
extern void begin_counting(Values before, bool at_zero);

/* Nothing is known of a row. */
extern void forget(Values values);

/* True when some counter that was known before has another value. */
extern bool has_counted(ModelTable table, const Values now, const Values before);

/* Adds a row to a table at a time; its number is returned in *row. */
extern Section *add_row(ModelTable table, UnixMs now, int *row);

/* Id of the name of what a row measures. */
extern uint64 object_name(const char *name);

/*
 * Sets the measurements of a row: a state as it is, a counter's increase when
 * the reading before knew it. `before` becomes `now`.
 */
extern void set_measures(Section *section, int row, const Values now,
						 Values before);

/* Marks that the statistics of something were reset at a moment. */
extern void mark_reset(const char *what, TimestampTz reset);

#endif							/* TACHO_MEASURES_H */
