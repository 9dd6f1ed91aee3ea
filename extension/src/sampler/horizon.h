/*
 * horizon.h
 *	  Finds the session, prepared transaction or slot that holds back vacuum.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_HORIZON_H
#define TACHO_HORIZON_H

#include "access/xact.h"

#include "sampler/session_scan.h"

typedef struct Horizon
{
	uint64		oldest;			/* full transaction id, 0 = none */
	XminHolder	holder;
	int			pid;			/* if a session */
	Oid			owner;			/* if a prepared transaction */
	char		name[GIDSIZE];	/* if a prepared transaction or a slot */
} Horizon;

/*
 * Finds the oldest transaction id or xmin among the rows of a scan, the
 * prepared transactions and the replication slots. `next_xid` is the next
 * full transaction id.
 */
extern void horizon_find(Horizon *horizon, const SessionScan *scan,
						 uint64 next_xid);

StaticAssertDecl(GIDSIZE >= NAMEDATALEN, "the name of a slot fits");

#endif							/* TACHO_HORIZON_H */
