/*
 * prepared.h
 *	  Global identifiers of prepared transactions.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PREPARED_H
#define TACHO_PREPARED_H

#include "access/xact.h"

/*
 * Copies the identifier and the owner of a prepared transaction. Returns
 * false, with `gid` empty, if there is no such transaction or if the server's
 * shared memory does not give a certain answer. Takes TwoPhaseStateLock,
 * shared, only if it is free.
 */
extern bool prepared_gid(TransactionId xid, char gid[GIDSIZE], Oid *owner);

#endif							/* TACHO_PREPARED_H */
