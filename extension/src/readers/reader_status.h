/*
 * reader_status.h
 *	  What the server itself knows about the recording, as rows.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_READER_STATUS_H
#define TACHO_READER_STATUS_H

/* Takes one row; value NULL = not known. Both are copied if kept. */
typedef void (*PutMetric) (void *arg, const char *metric, const char *value);

/*
 * Calls `put` for each metric, in a fixed order. Only where
 * tacho_status_available().
 */
extern void reader_status_rows(PutMetric put, void *arg);

/* Why history is not being recorded, NULL when it is. */
extern const char *reader_status_reason(void);

#endif							/* TACHO_READER_STATUS_H */
