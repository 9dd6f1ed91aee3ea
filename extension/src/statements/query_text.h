/*
 * query_text.h
 *	  Texts of queries on their way from backends to the sampler.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_QUERY_TEXT_H
#define TACHO_QUERY_TEXT_H

#include "statements/text_ring.h"

/* longer texts are cut */
#define QUERY_TEXT_LIMIT	8192

/* Installs the hook that collects texts. */
extern void query_text_init(void);

/* Key of a text: a hash of its bytes, never 0. */
extern uint64 query_text_key(const char *bytes, int length);

#endif							/* TACHO_QUERY_TEXT_H */
