/*
 * reader_status.c
 *	  The sampler's status as rows.
 *
 * Locking: none; tacho_status_read() copies the status. Memory: current
 * context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "core/library.h"
#include "core/settings.h"
#include "core/status.h"
#include "core/tacho.h"
#include "readers/reader_status.h"

typedef struct StatusRows
{
	PutMetric	put;
	void	   *arg;
} StatusRows;

static void
put_text(const StatusRows *rows, const char *metric, const char *value)
{
	rows->put(rows->arg, metric, value);
}

static void
put_number(const StatusRows *rows, const char *metric, int64 value)
{
	put_text(rows, metric, psprintf(INT64_FORMAT, value));
}

/* Puts a process id; null if the process does not run. */
static void
put_pid(const StatusRows *rows, const char *metric, int pid)
{
	put_text(rows, metric, pid != 0 ? psprintf("%d", pid) : NULL);
}

/*
 * Puts a time in UTC with milliseconds, whatever the session's settings; 0 =
 * null.
 */
static void
put_time(const StatusRows *rows, const char *metric, TimestampTz value)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (value == 0 ||
		timestamp2tm(value, NULL, &tm, &fsec, NULL, NULL) != 0)
		put_text(rows, metric, NULL);
	else
		put_text(rows, metric,
				 psprintf("%04d-%02d-%02d %02d:%02d:%02d.%03d+00",
						  tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour,
						  tm.tm_min, tm.tm_sec, (int) (fsec / 1000)));
}

static const char *
reason_off(const TachoStatus *status)
{
	if (status->reason[0] != '\0')
		return status->reason;
	return status->worker_pid == 0 ? "the sampler is not running" : NULL;
}

const char *
reader_status_reason(void)
{
	TachoStatus status;
	const char *reason;

	tacho_status_read(&status);
	reason = reason_off(&status);
	return reason ? pstrdup(reason) : NULL;
}

static void
put_recording(const StatusRows *rows, const TachoStatus *status)
{
	const char *reason = reason_off(status);

	put_text(rows, "version", TACHO_VERSION);
	put_text(rows, "restart_pending", library_was_replaced() ?
			 "the library on disk differs from the loaded one" : NULL);
	put_text(rows, "recording", reason == NULL ? "on" : "off");
	put_text(rows, "reason", reason);
	put_text(rows, "directory", tacho_directory_path());
	put_text(rows, "program", tacho_program_path());
}

/*
 * Puts whether sessions on CPU are divided into running, runnable,
 * uninstrumented.
 */
static void
put_cpu_kind(const StatusRows *rows, const TachoStatus *status)
{
	const char *trouble = status->cpu_trouble;

	if (!tacho_cpu_kind)
		put_text(rows, "cpu_kind", "off");
	else
		put_text(rows, "cpu_kind",
				 trouble[0] == '\0' ? "on" : psprintf("off: %s", trouble));
}

static void
put_sampler(const StatusRows *rows, const TachoStatus *status)
{
	put_pid(rows, "sampler_pid", status->worker_pid);
	put_time(rows, "sampler_started", status->worker_started);
	put_number(rows, "sampler_starts", status->worker_starts);
	put_number(rows, "sampler_cpu_ms", status->cpu_us / 1000);
	put_time(rows, "sampler_last_tick", status->last_tick);
	put_number(rows, "tick_interval_ms", status->interval_ms);
	put_number(rows, "tick_cost_us", status->tick_cost_us);
	put_number(rows, "ticks_taken", status->ticks_taken);
	put_number(rows, "ticks_late", status->ticks_late);
	put_number(rows, "ticks_failed", status->ticks_failed);
	put_number(rows, "ticks_missed", status->ticks_missed);
	put_number(rows, "rows_taken", status->rows_taken);
	put_number(rows, "rows_failed", status->rows_failed);
	put_cpu_kind(rows, status);
	put_number(rows, "server_readings", status->server_readings);
	put_number(rows, "server_failed", status->server_failed);
	put_number(rows, "texts_taken", status->texts_taken);
	put_number(rows, "texts_dropped", status->texts_dropped);
	put_number(rows, "texts_over_limit", status->texts_over_limit);
	put_number(rows, "names_over_limit", status->names_over_limit);
	put_number(rows, "names_pending", status->names_pending);
	put_number(rows, "statement_rows", status->statement_rows);
	put_time(rows, "statements_recorded", status->statements_recorded);
}

static void
put_writer(const StatusRows *rows, const TachoStatus *status)
{
	const char *error = status->writer_error;

	put_pid(rows, "writer_pid", status->writer_pid);
	put_time(rows, "writer_started", status->writer_started);
	put_number(rows, "writer_starts", status->writer_starts);
	put_text(rows, "writer_error", error[0] == '\0' ? NULL : error);
	put_time(rows, "writer_error_time", status->writer_error_time);
	put_number(rows, "frames_made", status->frames_made);
	put_number(rows, "frames_written", status->frames_written);
	put_number(rows, "frames_lost", status->frames_lost);
	put_number(rows, "bytes_made", status->bytes_made);
	put_number(rows, "bytes_buffered", status->bytes_buffered);
	put_number(rows, "directory_bytes", status->tape_bytes);
}

void
reader_status_rows(PutMetric put, void *arg)
{
	StatusRows	rows = {put, arg};
	TachoStatus status;

	tacho_status_read(&status);
	put_recording(&rows, &status);
	put_sampler(&rows, &status);
	put_writer(&rows, &status);
}
