/*
 * server_io.h
 *	  Measurements of I/O by kind of process, object and context.
 *
 * Has no rows on PostgreSQL 15, which does not count I/O. Used by the sampler
 * only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SERVER_IO_H
#define TACHO_SERVER_IO_H

#include "sampler/measures.h"

/* Allocates the state in the current memory context. */
extern void server_io_init(void);

/* Reads the counters; takes locks and may raise an error. */
extern void server_io_read(void);

/* The counters begin again: the next reading has no increase. */
extern void server_io_forget(void);

/* Adds rows with the increase between the last two readings. */
extern void server_io_put(UnixMs now);

#endif							/* TACHO_SERVER_IO_H */
