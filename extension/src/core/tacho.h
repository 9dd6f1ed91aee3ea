/*
 * tacho.h
 *	  Names and types that every file of the extension uses.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_H
#define TACHO_H

#define TACHO_PREFIX		"tacho"
#define TACHO_VERSION		"0.2"

/* type and name of the background worker, as pg_stat_activity shows it */
#define TACHO_WORKER_TYPE	"tacho sampler"

/* milliseconds and microseconds since 1970 UTC, as files and frames use them */
typedef int64 UnixMs;
typedef int64 UnixUs;

#define TACHO_EPOCH_OFFSET_US \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

#endif							/* TACHO_H */
