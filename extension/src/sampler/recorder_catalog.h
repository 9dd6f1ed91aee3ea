/*
 * recorder_catalog.h
 *	  Records names, kinds, sizes and use of tables and indexes; see the .c
 *	  file.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_CATALOG_H
#define TACHO_RECORDER_CATALOG_H

#include "core/tacho.h"
#include "sampler/relation_stats.h"

/* Says that a table or index has done something. */
extern void catalog_want(RelationKey key);

/* Does a part of the pending work, in a fraction of a millisecond. */
extern void catalog_turn(int64 wall_us, int64 boot_us);

/* True if the last turn left work to do. */
extern bool catalog_turn_again(void);

/* Records everything again: a frame was lost. */
extern void catalog_record_again(void);

#endif							/* TACHO_RECORDER_CATALOG_H */
