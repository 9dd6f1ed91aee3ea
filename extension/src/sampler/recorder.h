/*
 * recorder.h
 *	  Turns scans, markers and texts into frames for the writer.
 *
 * One frame is open at a time. From an interval of one second on it holds one
 * tick; below, the ticks of a second, of which samples are coded as changes.
 * Used by the sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_H
#define TACHO_RECORDER_H

#include "core/status.h"
#include "history/frame.h"
#include "sampler/session_scan.h"
#include "sampler/slot_clock.h"

/* Sets up in the current memory context. */
extern void recorder_init(uint64 incarnation, bool first_life);

/* Hello frame for a new writer; a WriterHello. */
extern void recorder_hello(StringInfo out, uint64 sequence, bool restart);

/*
 * Adds a tick to the open frame, with the scan's rows. `wall_us` is when the
 * scan was made; `started` the worker's CPU time before it.
 */
extern void recorder_tick(const SlotTick *due, int interval_ms, int64 wall_us,
						  int64 boot_us, int64 cpu_before, SessionScan *scan,
						  TachoStatus *status);

/* The open frame, opened if need be; for rows that belong to no tick. */
extern Frame *recorder_frame(UnixMs now);

/* A cost in steps of a quarter octave: microseconds = 2^(step / 4). */
extern int	recorder_cost_step(int64 cost_us);

/* A marker in columns. Texts are ids of dictionary.h, 0 = none; see catalog/samples.h. */
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

/* Adds it to the open frame, in which its ids are defined: see recorder_frame(). */
extern void recorder_marker_row(const MarkerRow *marker);

/* Adds a marker to the open frame. Times of 0 are unknown. */
extern void recorder_marker(MarkerKind kind, UnixMs time, UnixMs since,
							UnixMs until, const char *detail);

/* Adds the settings the writer obeys to the open frame. */
extern void recorder_settings(void);

/* The open frame, opened if need be. Valid until it is closed. */
extern Frame *recorder_frame(UnixMs now);

/* Adds the texts that backends have offered to the open frame. */
extern void recorder_texts(UnixMs now, TachoStatus *status);

/*
 * Closes the open frame when a tick in the slot after `slot_time` would belong
 * into another, or in any case, and gives it to the writer.
 */
extern void recorder_close_before(UnixMs next_slot, TachoStatus *status);
extern void recorder_close(TachoStatus *status);

#endif							/* TACHO_RECORDER_H */
