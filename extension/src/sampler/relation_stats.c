/*
 * relation_stats.c
 *	  The server's statistics of tables and indexes, in all databases.
 *
 * pgstat_fetch_entry() would keep a reference to each entry, and a DROP would
 * then make all backends look for references to give back. So the entries are
 * read in the server's hash table, under its locks.
 *
 * Locking: the hash table has 128 partitions. Their locks are shared, and the
 * server's functions wait for them. They are held to find one entry, or, for
 * the keys, from one partition to the next. The lock of an entry is only
 * tried, and held for a copy. Our code allocates nothing and raises nothing
 * under these locks. The server's functions may raise an error when they map
 * a new segment of shared memory.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "lib/dshash.h"
#include "storage/lwlock.h"

#include "core/compat.h"
#include "sampler/relation_stats.h"

int
relation_stats_keys(RelationKey *keys, int room)
{
	dshash_seq_status scan;
	PgStatShared_HashEntry *entry;
	int			found = 0;

	dshash_seq_init(&scan, pgStatLocal.shared_hash, false);
	while ((entry = dshash_seq_next(&scan)) != NULL)
	{
		if (entry->key.kind != PGSTAT_KIND_RELATION || entry->dropped)
			continue;
		if (found < room)
			keys[found] = RELATION_KEY(entry->key.dboid,
									   compat_relation_oid(&entry->key));
		found++;
	}
	dshash_seq_term(&scan);
	return found;
}

/* Copies an entry whose partition is locked. */
static RelationRead
copy_entry(const PgStatShared_HashEntry *entry, PgStat_StatTabEntry *copy)
{
	PgStatShared_Relation *shared;

	if (entry->dropped)
		return RELATION_GONE;
	shared = dsa_get_address(pgStatLocal.dsa, entry->body);
	if (!LWLockConditionalAcquire(&shared->header.lock, LW_SHARED))
		return RELATION_BUSY;
	*copy = shared->stats;
	LWLockRelease(&shared->header.lock);
	return RELATION_READ;
}

static void
take_counts(const PgStat_StatTabEntry *stats, RelationCounts counts)
{
#define TAKE(name, value) counts[RELATION_COUNTER(name)] = (value)
	TAKE(scans, stats->numscans);
	TAKE(tuples_returned, stats->tuples_returned);
	TAKE(tuples_fetched, stats->tuples_fetched);
	TAKE(tuples_inserted, stats->tuples_inserted);
	TAKE(tuples_updated, stats->tuples_updated);
	TAKE(tuples_deleted, stats->tuples_deleted);
	TAKE(tuples_hot_updated, stats->tuples_hot_updated);
	TAKE(tuples_newpage_updated, compat_newpage_updated(stats));
	TAKE(blks_read, Max(0, stats->blocks_fetched - stats->blocks_hit));
	TAKE(blks_hit, stats->blocks_hit);
	TAKE(vacuum_count, stats->vacuum_count);
	TAKE(autovacuum_count, stats->COMPAT_AUTOVACUUM_COUNT);
	TAKE(analyze_count, stats->analyze_count);
	TAKE(autoanalyze_count, stats->COMPAT_AUTOANALYZE_COUNT);
#undef TAKE
}

static void
take_state(const PgStat_StatTabEntry *stats, RelationState *state)
{
	*state = (RelationState) {
		.live_tuples = stats->COMPAT_LIVE_TUPLES,
		.dead_tuples = stats->COMPAT_DEAD_TUPLES,
		.mod_since_analyze = stats->COMPAT_MOD_SINCE_ANALYZE,
		.ins_since_vacuum = stats->COMPAT_INS_SINCE_VACUUM,
		.last_vacuum = stats->COMPAT_LAST_VACUUM,
		.last_autovacuum = stats->COMPAT_LAST_AUTOVACUUM,
		.last_analyze = stats->COMPAT_LAST_ANALYZE,
		.last_autoanalyze = stats->COMPAT_LAST_AUTOANALYZE,
		.last_scan = compat_last_scan(stats),
	};
}

RelationRead
relation_stats_read(RelationKey key, RelationCounts counts,
					RelationState *state)
{
	PgStat_HashKey shared_key = compat_relation_key(RELATION_DATABASE(key),
													RELATION_OID(key));
	PgStat_StatTabEntry stats;
	PgStatShared_HashEntry *entry = dshash_find(pgStatLocal.shared_hash,
												&shared_key, false);
	RelationRead result;

	if (entry == NULL)
		return RELATION_GONE;
	result = copy_entry(entry, &stats);
	dshash_release_lock(pgStatLocal.shared_hash, entry);
	if (result != RELATION_READ)
		return result;
	take_counts(&stats, counts);
	take_state(&stats, state);
	return RELATION_READ;
}
