/*
 * activity.h
 *	  What processes without a query identifier say they do, fit to be kept.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_ACTIVITY_H
#define TACHO_ACTIVITY_H

#include "lib/stringinfo.h"

#include "core/compat.h"

/*
 * Makes the text of a process's activity as tacho.query_text wants it. Texts
 * that the server made itself are taken as they are: those of autovacuum and
 * replication commands. Everything else may be what a client sent, with
 * passwords in it, and loses its literals. *whole_length is the length of the
 * activity when the text ends before, else 0. False when nothing is left.
 * Memory: current context. May raise an error when there is none.
 */
extern bool activity_text(StringInfo out, BackendType type,
						  const char *activity, int length, int *whole_length);

#endif							/* TACHO_ACTIVITY_H */
