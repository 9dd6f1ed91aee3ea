/*
 * recorder_trees.h
 *	  Records the trees of plans that backends have put into the ring.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_TREES_H
#define TACHO_RECORDER_TREES_H

#include "core/tacho.h"
#include "history/frame.h"
#include "statements/query_text.h"

/*
 * Adds a tree to the frame, unless its role's share of the day is used up.
 * The names of its database and role have been looked up before.
 */
extern void recorder_put_tree(Frame *frame, const QueryText *tree, UnixMs now);

/* Must be called first. Allocates in the current memory context. */
extern void recorder_trees_init(void);

/* Begins a new day: reasons are recorded again. */
extern void recorder_trees_day(void);

/* True if this sampler has left out a tree because its role's share was used up. */
extern bool recorder_trees_over_limit(void);

/* Adds the plans without a tree to the frame, at most once a second. */
extern void recorder_trees_left_out(Frame *frame, UnixMs now);

#endif							/* TACHO_RECORDER_TREES_H */
