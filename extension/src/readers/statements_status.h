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
 * Puts the row "pg_stat_statements" of tacho.status(): whether tacho has
 * replaced that extension, and if not, why. Raises a warning if tacho should
 * have replaced it, but the extension's functions still call the library
 * pg_stat_statements, which counts nothing then.
 */
extern void statements_status_row(PutMetric put, void *arg);

#endif							/* TACHO_STATEMENTS_STATUS_H */
