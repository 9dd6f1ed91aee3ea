/*
 * tree_analyzed.h
 *	  When the relations in the tree of a plan were analyzed last.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_TREE_ANALYZED_H
#define TACHO_TREE_ANALYZED_H

#include "statements/text_ring.h"

/*
 * Copies a tree, and replaces the time of each relation by the time of its
 * last ANALYZE, by hand or by autovacuum. If that is not known, or is after
 * the tree was written, it becomes zeros. Returns the copy, which the next call
 * overwrites. Raises no error.
 */
extern const char *tree_analyzed(const QueryText *tree);

#endif							/* TACHO_TREE_ANALYZED_H */
