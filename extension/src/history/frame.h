/*
 * frame.h
 *	  Builds frames as docs/format.md describes them.
 *
 * A frame collects rows: each column is an array of 64-bit numbers. Encoding
 * picks the narrowest form of each column. A column that no row sets costs
 * nothing.
 *
 * Memory: everything lives in the context that was current at frame_create(),
 * and is reused for every frame. Raises an error only when memory is short.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_FRAME_H
#define TACHO_FRAME_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

#include "core/tacho.h"
#include "history/model.h"

#define FRAME_HELLO		1
#define FRAME_DATA		2

#define FRAME_MAX_PAYLOAD	(16 * 1024 * 1024)

typedef struct Section
{
	ModelTable	table;
	int			rows;
	int			capacity;		/* rows that fit into each column */
	int			last_column;	/* highest column id that was ever set */
	uint64	   *numbers[MODEL_MAX_COLUMN + 1]; /* by column id, or NULL */
	StringInfo	bytes[MODEL_MAX_COLUMN + 1];	/* BYTES columns, or NULL */
} Section;

typedef struct Frame Frame;

extern Frame *frame_create(void);

/* Empties the frame. TIME columns are stored relative to `base`. */
extern void frame_reset(Frame *frame, UnixMs base);

extern UnixMs frame_base(const Frame *frame);

/* Returns the section of a table; the first call makes it. */
extern Section *frame_section(Frame *frame, ModelTable table);

/* Number of rows that the table has so far. */
extern int	frame_rows(Frame *frame, ModelTable table);

/* True when no table has a row. */
extern bool frame_is_empty(const Frame *frame);

/* Adds a row of zeros and returns its index. */
extern int	section_add(Section *section);

/* Sets a number of a row. */
extern void section_set(Section *section, int row, int column, uint64 value);

/* The number in a row, 0 if it was never set. */
extern uint64 section_get(const Section *section, int row, int column);

/* Sets a string of the newest row, at most once per row and column. */
extern void section_set_bytes(Section *section, int column,
							  const char *bytes, int length);

/* Stored forms of signed numbers and times. A time of 0 means null. */
extern uint64 frame_int(int64 value);
extern uint64 frame_time(const Frame *frame, UnixMs time);
extern uint64 frame_time_us(UnixUs time);
extern uint64 frame_timestamp(const Frame *frame, TimestampTz time);

/*
 * Empties `out` and writes the encoded frame to it. Returns false, with `out`
 * empty, if the payload would be longer than the format allows.
 */
extern bool frame_encode(Frame *frame, uint8 kind, uint64 incarnation,
						 uint64 sequence, StringInfo out);

#endif							/* TACHO_FRAME_H */
