/*
 * reader_status.h
 *	  The sampler's status as rows.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_READER_STATUS_H
#define TACHO_READER_STATUS_H

/*
 * Takes one row; a NULL value means "not known". The function copies strings.
 */
typedef void (*PutMetric) (void *arg, const char *metric, const char *value);

/*
 * Calls `put` for each metric, in a fixed order. Only if
 * tacho_status_available().
 */
extern void reader_status_rows(PutMetric put, void *arg);

/* The reason why no history is being recorded, NULL if it is. */
extern const char *reader_status_reason(void);

#endif							/* TACHO_READER_STATUS_H */
