/*
 * recorder_relations.h
 *	  Records the names of relations that trees of plans have.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RECORDER_RELATIONS_H
#define TACHO_RECORDER_RELATIONS_H

#include "core/tacho.h"
#include "history/frame.h"
#include "statements/text_ring.h"

/* Forgets what was recorded: a new day begins, or a frame was lost. */
extern void recorder_relations_forget(void);

/* Adds the names in a tree to the frame, unless the history has them. */
extern void recorder_put_relations(Frame *frame, const QueryText *tree, UnixMs now);

#endif							/* TACHO_RECORDER_RELATIONS_H */
