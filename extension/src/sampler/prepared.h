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
 * Copies the identifier of a prepared transaction, and who owns it. Returns
 * false, with `gid` empty, when the transaction is not there or cannot be told
 * from what the server shares. Takes TwoPhaseStateLock, shared, if it is free.
 */
extern bool prepared_gid(TransactionId xid, char gid[GIDSIZE], Oid *owner);

#endif							/* TACHO_PREPARED_H */
