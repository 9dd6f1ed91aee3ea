/*
 * status.h
 *	  The sampler's status, which every backend can read.
 *
 * Locking: none. The sampler publishes it once a turn; anyone may read it.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATUS_H
#define TACHO_STATUS_H

#include "datatype/timestamp.h"

#define STATUS_TEXT_SIZE	400

/*
 * Costs are counted in steps of a quarter octave: step n begins at 2^(n / 4)
 * us; the last step is open.
 */
#define COST_STEPS			96

typedef struct TachoStatus
{
	/* processes; 0 = not running */
	int			worker_pid;
	int			writer_pid;
	int64		worker_starts;	/* since the start of the server */
	int64		writer_starts;	/* of this worker */
	TimestampTz worker_started;
	TimestampTz writer_started;
	uint64		incarnation;

	/* ticks of this worker */
	TimestampTz last_tick;		/* 0 = none yet */
	int			interval_ms;	/* effective: doubled beyond tacho.max_cpu */
	int64		ticks_taken;
	int64		ticks_late;
	int64		ticks_failed;
	int64		ticks_missed;	/* slots without a tick */
	int64		rows_taken;		/* session samples */
	int64		rows_failed;	/* could not be read consistently */
	int64		tick_cost_us;	/* CPU time of the last tick, frame included */
	int64		cpu_us;			/* CPU time of the worker */
	int64		ticks_cpu_us;	/* of all its ticks */
	uint32		tick_costs[COST_STEPS]; /* ticks by cost */
	int64		memory_bytes;	/* of the worker; read now and then */
	int64		past_writers_cpu_us;	/* CPU time of writers that ended */

	/* measurements of the server as a whole */
	int64		server_readings;
	int64		server_failed;	/* without statistics, after an error */
	int64		server_cpu_us;

	char		cpu_trouble[STATUS_TEXT_SIZE];	/* why no on-CPU kinds; "" = none */

	/* statistics of statements */
	int64		statement_rows; /* recorded by this worker */
	TimestampTz statements_recorded;	/* last full pass; 0 = none yet */

	/* way to the writer */
	int64		frames_made;
	int64		frames_written; /* acknowledged */
	int64		frames_lost;	/* dropped because the buffer was full */
	int64		bytes_made;
	int64		bytes_buffered; /* not acknowledged */
	int64		tape_bytes;		/* size of the directory, as the writer says */

	/* texts */
	int64		texts_taken;
	int64		texts_dropped;	/* ring full or busy; tried again later */
	int64		texts_over_limit;	/* beyond tacho.text_limit */
	int64		names_over_limit;	/* of clients, beyond tacho.name_limit */
	int64		names_pending;	/* databases, roles, waits without a name */

	/* "" when history is being written */
	char		reason[STATUS_TEXT_SIZE];	/* why it is not */
	char		writer_error[STATUS_TEXT_SIZE]; /* last trouble, kept */
	TimestampTz writer_error_time;	/* 0 = there was none */
} TachoStatus;

/* True when the library was preloaded, so that there is a status to read. */
extern bool tacho_status_available(void);

/*
 * Copies the status. Before the first start of the worker, all fields but the
 * reason are zero. Only if tacho_status_available().
 */
extern void tacho_status_read(TachoStatus *copy);

/* Publishes a new status; only the sampler may call it. */
extern void status_publish(const TachoStatus *status);

#endif							/* TACHO_STATUS_H */
