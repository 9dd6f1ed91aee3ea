/*
 * executed.c
 *	  The statement that a top-level EXECUTE executes.
 *
 * Each process has a place in shared memory that only this process writes,
 * without a lock. `reported` is 0 while query_id changes. A reader uses a
 * place only if the process reports the same query id to the server. A
 * process that ends during an EXECUTE leaves its place filled. This misleads
 * readers only if the next session in the slot reports the same EXECUTE, and
 * only until it has started its statement.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "commands/prepare.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"

#include "core/compat.h"
#include "core/hot.h"
#include "core/slot_area.h"
#include "statements/executed.h"

#define AREA "tacho executed"

typedef struct Place
{
	pg_atomic_uint64 reported;	/* 0 = empty */
	pg_atomic_uint64 query_id;
} Place;

HOT_DATA const CachedPlanSource *executed_pending = NULL;

static Place *places = NULL;	/* by slot; NULL = not set up */
static bool is_set = false;		/* this process has set its place */

void
executed_shmem_request(void)
{
	slot_area_request(sizeof(Place));
}

static void
init_place(void *memory)
{
	Place	   *place = memory;

	pg_atomic_init_u64(&place->reported, 0);
	pg_atomic_init_u64(&place->query_id, 0);
}

void
executed_shmem_startup(void)
{
	places = slot_area_startup(AREA, sizeof(Place), init_place);
}

static Place *
place_of(int slot)
{
	return places != NULL && slot_area_has(slot) ? &places[slot] : NULL;
}

void
executed_set(uint64 reported, uint64 query_id)
{
	Place	   *place = place_of(compat_my_slot());

	if (place == NULL || reported == 0)
		return;
	pg_atomic_write_u64(&place->reported, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&place->query_id, query_id);
	pg_write_barrier();
	pg_atomic_write_u64(&place->reported, reported);
	is_set = true;
}

void
executed_clear(void)
{
	if (is_set)
		pg_atomic_write_u64(&place_of(compat_my_slot())->reported, 0);
	is_set = false;
}

void
executed_expect(const ExecuteStmt *statement)
{
	PreparedStatement *prepared = FetchPreparedStatement(statement->name, false);

	/* if there is none, the server raises an error */
	executed_pending = prepared == NULL ? NULL : prepared->plansource;
}

void
executed_start(uint64 query_id)
{
	ListCell   *cell;

	foreach(cell, executed_pending->query_list)
	{
		if (lfirst_node(Query, cell)->queryId != query_id)
			continue;
		executed_pending = NULL;
		executed_set(pgstat_get_my_query_id(), query_id);
		return;
	}
}

uint64
executed_in(int slot, uint64 reported)
{
	Place	   *place = place_of(slot);
	uint64		query_id;

	if (place == NULL || reported == 0 ||
		pg_atomic_read_u64(&place->reported) != reported)
		return reported;
	pg_read_barrier();
	query_id = pg_atomic_read_u64(&place->query_id);
	pg_read_barrier();
	return pg_atomic_read_u64(&place->reported) == reported ? query_id : reported;
}

uint64
executed_in_leader(uint64 reported)
{
	PGPROC	   *leader = MyProc->lockGroupLeader;

	return leader == NULL ? reported
		: executed_in(compat_proc_slot(leader), reported);
}
