/*
 * overhead.c
 *	  The cost of tacho itself, as rows of tacho.overhead().
 *
 * Locking: none. Memory: current context.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "core/compat.h"
#include "core/host.h"
#include "core/status.h"

#define HOUR_US		INT64CONST(3600000000)

COMPAT_SQL_FUNCTION(tacho_overhead);

static void
put_row(ReturnSetInfo *result, const char *metric, const char *value,
		const char *unit)
{
	Datum		values[3];
	bool		nulls[3] = {false, value == NULL, false};

	values[0] = CStringGetTextDatum(metric);
	values[1] = value == NULL ? (Datum) 0 :
		DirectFunctionCall3(numeric_in, CStringGetDatum(value),
							ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	values[2] = CStringGetTextDatum(unit);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Puts a number; null if it is negative, which means "not known". */
static void
put_number(ReturnSetInfo *result, const char *metric, int64 value,
		   const char *unit)
{
	put_row(result, metric,
			value < 0 ? NULL : psprintf(INT64_FORMAT, value), unit);
}

/* Extrapolates a cost during `elapsed_us` to an hour. */
static int64
per_hour(int64 value, int64 elapsed_us)
{
	return value < 0 || elapsed_us <= 0 ? HOST_NOT_KNOWN :
		(int64) ((double) value * HOUR_US / elapsed_us + 0.5);
}

/*
 * The CPU time in us that a share of the ticks, `part` (0 to 1), did not
 * exceed, rounded to the nearest power of 2^(1/4).
 */
static int64
quantile_us(const TachoStatus *status, double part)
{
	int64		total = 0;
	int64		below = 0;

	for (int step = 0; step < COST_STEPS; step++)
		total += status->tick_costs[step];
	for (int step = 0; step < COST_STEPS; step++)
	{
		below += status->tick_costs[step];
		if (total > 0 && below >= part * total)
			return (int64) rint(pow(2, step / 4.0));
	}
	return HOST_NOT_KNOWN;
}

static int64
average(int64 sum, int64 count)
{
	return count > 0 ? sum / count : HOST_NOT_KNOWN;
}

static void
put_sampler(ReturnSetInfo *result, const TachoStatus *status, int64 elapsed_us)
{
	put_number(result, "sampler_elapsed", elapsed_us, "us");
	put_number(result, "sampler_cpu", status->cpu_us, "us");
	put_number(result, "sampler_cpu_per_hour",
			   per_hour(status->cpu_us, elapsed_us), "us");
	put_number(result, "sampler_memory", status->memory_bytes, "bytes");
	put_number(result, "ticks", status->ticks_taken, "count");
	put_number(result, "ticks_cpu", status->ticks_cpu_us, "us");
	put_number(result, "tick_cpu_avg",
			   average(status->ticks_cpu_us, status->ticks_taken), "us");
	put_number(result, "tick_cpu_p50", quantile_us(status, 0.5), "us");
	put_number(result, "tick_cpu_p90", quantile_us(status, 0.9), "us");
	put_number(result, "tick_cpu_p99", quantile_us(status, 0.99), "us");
	put_number(result, "tick_cpu_max", quantile_us(status, 1), "us");
	put_number(result, "server_readings", status->server_readings, "count");
	put_number(result, "server_readings_cpu", status->server_cpu_us, "us");
}

static void
put_writer(ReturnSetInfo *result, const TachoStatus *status, int64 elapsed_us)
{
	HostProcess writer = {HOST_NOT_KNOWN, HOST_NOT_KNOWN, HOST_NOT_KNOWN};
	int64		cpu_us = status->past_writers_cpu_us;

	if (status->writer_pid != 0)
		host_read_process("", status->writer_pid, &writer);
	if (writer.cpu_us > 0)
		cpu_us += writer.cpu_us;
	put_number(result, "writer_cpu", cpu_us, "us");
	put_number(result, "writer_cpu_per_hour", per_hour(cpu_us, elapsed_us), "us");
	put_number(result, "writer_memory", writer.memory, "bytes");
	put_number(result, "bytes_sent", status->bytes_made, "bytes");
	put_number(result, "bytes_sent_per_hour",
			   per_hour(status->bytes_made, elapsed_us), "bytes");
	put_number(result, "bytes_written", writer.written, "bytes");
	put_number(result, "bytes_buffered", status->bytes_buffered, "bytes");
	put_number(result, "bytes_kept", status->tape_bytes, "bytes");
}

Datum
tacho_overhead(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	TachoStatus status;
	int64		elapsed_us;

	if (!tacho_status_available())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("overhead() needs tacho to be loaded at server start"),
				 errhint("Add tacho to shared_preload_libraries and restart the server.")));
	InitMaterializedSRF(fcinfo, 0);
	tacho_status_read(&status);
	elapsed_us = status.worker_pid == 0 ? HOST_NOT_KNOWN :
		GetCurrentTimestamp() - status.worker_started;
	put_sampler(result, &status, elapsed_us);
	put_writer(result, &status, elapsed_us);
	return (Datum) 0;
}
