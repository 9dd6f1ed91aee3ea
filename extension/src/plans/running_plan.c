/*
 * running_plan.c
 *	  The plan that each session executes, for the sampler.
 *
 * Each process has a place that only this process writes, without a lock. A
 * plan stays there after its execution, so that the wait of a commit also
 * belongs to the plan. Beside it are the query id and the start of its
 * statement; readers use the plan only for this statement. So the place is
 * never cleared, neither after an error nor at the end of a session.
 *
 * Example: the status of a session shows FETCH with query id 7, begun at
 * 12:00. Its place has query id 7, 12:00, and the plan of the cursor's query.
 * The next FETCH begins later, so readers ignore the place until that FETCH
 * has published.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "utils/backend_status.h"

#include "core/compat.h"
#include "core/slot_area.h"
#include "plans/plan_ids.h"
#include "plans/running_plan.h"

#define AREA "tacho running plans"

typedef struct Place
{
	pg_atomic_uint64 start;		/* begin of the statement; 0 while the others
								 * change */
	pg_atomic_uint64 reported;	/* query id in the backend status */
	pg_atomic_uint64 plan_id;
	pg_atomic_uint64 counted;	/* see running_plan_enter() */
} Place;

HOT_DATA int running_plan_depth = 0;

static HOT_DATA Place *places = NULL;	/* by slot; NULL = not set up */

void
running_plan_shmem_request(void)
{
	slot_area_request(sizeof(Place));
}

static void
init_place(void *memory)
{
	Place	   *place = memory;

	pg_atomic_init_u64(&place->start, 0);
	pg_atomic_init_u64(&place->reported, 0);
	pg_atomic_init_u64(&place->plan_id, 0);
	pg_atomic_init_u64(&place->counted, 0);
}

void
running_plan_shmem_startup(void)
{
	places = slot_area_startup(AREA, sizeof(Place), init_place);
}

static inline Place *
place_of(int slot)
{
	return places != NULL && slot_area_has(slot) ? &places[slot] : NULL;
}

static inline void
publish(int64 plan_id, uint64 counted)
{
	Place	   *place = place_of(compat_my_slot());

	if (place == NULL)
		return;
	pg_atomic_write_u64(&place->start, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&place->reported, pgstat_get_my_query_id());
	pg_atomic_write_u64(&place->plan_id, plan_id);
	pg_atomic_write_u64(&place->counted, counted);
	pg_write_barrier();
	pg_atomic_write_u64(&place->start, GetCurrentStatementStartTimestamp());
}

pg_attribute_hot void
running_plan_publish(const PlannedStmt *stmt, uint64 counted)
{
	publish(plan_id_of(stmt), counted);
}

/* Reads the plan of a statement, and the statement that counts it; 0 = none. */
static int64
plan_in(int slot, uint64 reported, TimestampTz start, uint64 *counted)
{
	Place	   *place = place_of(slot);
	bool		same;
	int64		plan_id;

	if (place == NULL || pg_atomic_read_u64(&place->start) != (uint64) start)
		return 0;
	pg_read_barrier();
	same = pg_atomic_read_u64(&place->reported) == reported;
	plan_id = (int64) pg_atomic_read_u64(&place->plan_id);
	*counted = pg_atomic_read_u64(&place->counted);
	pg_read_barrier();
	return same && pg_atomic_read_u64(&place->start) == (uint64) start ? plan_id : 0;
}

int64
running_plan_in(int slot, uint64 reported, TimestampTz start)
{
	uint64		counted;

	return plan_in(slot, reported, start, &counted);
}

/* A parallel worker reports the query id and start of its leader. */
int64
running_plan_of_leader(uint64 query_id)
{
	PGPROC	   *leader = MyProc->lockGroupLeader;
	uint64		counted = 0;
	int64		plan_id;

	if (leader == NULL)
		return 0;
	plan_id = plan_in(compat_proc_slot(leader), pgstat_get_my_query_id(),
					  GetCurrentStatementStartTimestamp(), &counted);
	publish(plan_id, 0);
	return counted == query_id ? plan_id : 0;
}

bool
running_plan_known(void)
{
	return places != NULL;
}
