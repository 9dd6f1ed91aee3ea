/*
 * recorder.h
 *	  Turns scans, markers and texts into frames for the writer.
 *
 * One frame is open at a time. With an interval of one second or more it
 * holds one tick. With a shorter interval it holds the ticks of one second,
 * and samples are coded as changes. Used by the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_H
#define TACHO_RECORDER_H

#include "core/status.h"
#include "history/frame.h"
#include "sampler/session_scan.h"
#include "sampler/slot_clock.h"

/* Allocates the state in the current memory context. */
extern void recorder_init(uint64 incarnation, bool first_life);

/* Makes the hello frame for a new writer; a WriterHello. */
extern void recorder_hello(StringInfo out, uint64 sequence, bool restart);

/*
 * Adds a tick with the rows of its scan to the open frame. `wall_us` and
 * `boot_us` are the time of the scan, `cpu_before` the worker's CPU time
 * before it.
 */
extern void recorder_tick(const SlotTick *due, int interval_ms, int64 wall_us,
						  int64 boot_us, int64 cpu_before, SessionScan *scan,
						  TachoStatus *status);

/* The open frame; opens one if there is none. For rows outside of ticks. */
extern Frame *recorder_frame(UnixMs now);

/* Step of a cost, in quarter octaves: microseconds = 2^(step / 4). */
extern int	recorder_cost_step(int64 cost_us);

/*
 * A marker as columns. Texts are ids of dictionary.h, 0 = none; see
 * catalog/samples.h.
 */
typedef struct MarkerRow
{
	MarkerKind	kind;
	UnixMs		time;
	UnixMs		since;
	UnixMs		until;
	uint64		detail;
	uint64		command;
	uint64		object_class;
	uint64		object_oid;
	uint64		object_name;
	uint64		database;
	uint64		username;
	uint64		application;
	uint64		client_addr;
	uint64		old_value;
	uint64		new_value;
	uint64		outcome;
	uint64		left_out;
} MarkerRow;

/*
 * Adds the marker to the open frame, which must define its ids: see
 * recorder_frame().
 */
extern void recorder_marker_row(const MarkerRow *marker);

/* Adds a marker to the open frame. Times of 0 are unknown. */
extern void recorder_marker(MarkerKind kind, UnixMs time, UnixMs since,
							UnixMs until, const char *detail);

/* Adds the settings that the writer obeys to the open frame. */
extern void recorder_settings(void);

/* The open frame; opens one if there is none. Valid until it is closed. */
extern Frame *recorder_frame(UnixMs now);

/* Adds the texts in the ring to the open frame. */
extern void recorder_texts(UnixMs now, TachoStatus *status);

/*
 * recorder_close_before() closes the open frame and gives it to the writer if
 * a tick of the slot `next_slot` belongs to another frame. recorder_close()
 * does so in any case.
 */
extern void recorder_close_before(UnixMs next_slot, TachoStatus *status);
extern void recorder_close(TachoStatus *status);

#endif							/* TACHO_RECORDER_H */
