/*
 * relation_stats.h
 *	  The server's statistics of tables and indexes, in all databases.
 *
 * Read from shared memory, without a connection to a database. Used by the
 * sampler only.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_RELATION_STATS_H
#define TACHO_RELATION_STATS_H

#include "common/hashfn.h"
#include "datatype/timestamp.h"

#include "history/model.h"

/* A table or index: OID of its database (0 = shared), then its own OID. */
typedef uint64 RelationKey;

#define RELATION_KEY(database, oid) ((RelationKey) (database) << 32 | (oid))
#define RELATION_DATABASE(key)	((Oid) ((key) >> 32))
#define RELATION_OID(key)		((Oid) (key))

static inline uint32
relation_hash(RelationKey key)
{
	return hash_combine(murmurhash32(RELATION_DATABASE(key)),
						murmurhash32(RELATION_OID(key)));
}

/* Counters are in the order of their columns in table_stats. */
#define RELATION_FIRST_COUNTER	COL_table_stats_scans
#define RELATION_COUNTERS \
	(COL_table_stats_autoanalyze_count - RELATION_FIRST_COUNTER + 1)
#define RELATION_COUNTER(name)	(COL_table_stats_##name - RELATION_FIRST_COUNTER)

typedef int64 RelationCounts[RELATION_COUNTERS];

/* The state of a table or index now. */
typedef struct RelationState
{
	int64		live_tuples;
	int64		dead_tuples;
	int64		mod_since_analyze;
	int64		ins_since_vacuum;
	TimestampTz last_vacuum;	/* 0 = never */
	TimestampTz last_autovacuum;
	TimestampTz last_analyze;
	TimestampTz last_autoanalyze;
	TimestampTz last_scan;
} RelationState;

typedef enum RelationRead
{
	RELATION_READ,
	RELATION_GONE,				/* dropped, or its statistics were */
	RELATION_BUSY				/* somebody holds its lock */
} RelationRead;

/*
 * Writes the keys of all tables and indexes that have statistics to `keys`.
 * Returns their number; if it exceeds `room`, the first ones were written.
 */
extern int	relation_stats_keys(RelationKey *keys, int room);

/* Copies the statistics of a table or index to `counts` and `state`. */
extern RelationRead relation_stats_read(RelationKey key, RelationCounts counts,
										RelationState *state);

#endif							/* TACHO_RELATION_STATS_H */
