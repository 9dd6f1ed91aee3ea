/*
 * activity.h
 *	  Texts for processes without a query id: their activity without secrets.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ACTIVITY_H
#define TACHO_ACTIVITY_H

#include "lib/stringinfo.h"

#include "core/compat.h"

/*
 * Makes the text to record from a process's activity string, as
 * tacho.query_text says. Texts of autovacuum and replication commands are
 * kept as they are, because the server made or parsed them. Every other text
 * may have come from a client and hold passwords, so its literals are
 * removed. If the text was cut, *whole_length is the length of the activity,
 * else 0. Returns false if nothing is left. Memory: current context; may
 * raise an error when there is none.
 */
extern bool activity_text(StringInfo out, BackendType type,
						  const char *activity, int length, int *whole_length);

#endif							/* TACHO_ACTIVITY_H */
