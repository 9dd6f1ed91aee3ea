/*
 * relation_shape.h
 *	  Relations and indexes as numbers that plan ids are made of.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RELATION_SHAPE_H
#define TACHO_RELATION_SHAPE_H

#include "common/hashfn.h"

/* Mixes a value into a sum; the order of the values matters. */
static inline uint64
shape_mix(uint64 sum, uint64 value)
{
	return hash_combine64(sum, value * UINT64CONST(0x9e3779b97f4a7c15));
}

static inline uint64
shape_mix_bytes(uint64 sum, const void *bytes, Size length)
{
	return hash_combine64(sum, hash_bytes_extended(bytes, (int) length, 0));
}

static inline uint64
shape_mix_name(uint64 sum, const char *name)
{
	return shape_mix_bytes(sum, name, strlen(name));
}

/*
 * Number of a table or view that this process has locked: its OID. For a
 * temporary table it is a hash of its name, because each session makes its
 * own table. May raise an error when memory is short.
 */
extern uint64 relation_shape(Oid relation);

/*
 * Number of an index whose table this process has locked: a hash of method,
 * columns, operator families, directions, and the condition of a partial
 * index. It ignores OID and name: REINDEX CONCURRENTLY changes the OID, and
 * each partition has its own index. May raise an error when memory is short.
 */
extern uint64 index_shape(Oid index);

#endif							/* TACHO_RELATION_SHAPE_H */
