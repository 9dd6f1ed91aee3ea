/*
 * catalog_worker.h
 *	  The worker that reads names, kinds and sizes of tables and indexes.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_CATALOG_WORKER_H
#define TACHO_CATALOG_WORKER_H

extern PGDLLEXPORT void tacho_catalog_main(Datum argument);

/*
 * Starts a worker for the request with this number. Returns false if the
 * server has no free slot for a worker (max_worker_processes). The sampler's
 * latch is set when the worker has ended.
 */
extern bool catalog_worker_start(uint32 number);

#endif							/* TACHO_CATALOG_WORKER_H */
