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

#endif							/* TACHO_RECORDER_TREES_H */
