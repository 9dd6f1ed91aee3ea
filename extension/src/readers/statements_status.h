/*
 * statements_status.h
 *	  Tells whether tacho or contrib answers for pg_stat_statements.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_STATUS_H
#define TACHO_STATEMENTS_STATUS_H

#include "readers/reader_status.h"

/*
 * Calls `put` for the metric "pg_stat_statements". Raises a warning if tacho
 * should replace that extension but the extension's functions call their own
 * library.
 */
extern void statements_status_row(PutMetric put, void *arg);

#endif							/* TACHO_STATEMENTS_STATUS_H */
