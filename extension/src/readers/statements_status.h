/*
 * statements_status.h
 *	  Whose functions the extension pg_stat_statements has here, for status().
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_STATEMENTS_STATUS_H
#define TACHO_STATEMENTS_STATUS_H

#include "readers/reader_status.h"

/*
 * Calls `put` for the metric "pg_stat_statements". Raises a warning when tacho
 * is to take that extension's place and its functions call their own library.
 */
extern void statements_status_row(PutMetric put, void *arg);

#endif							/* TACHO_STATEMENTS_STATUS_H */
