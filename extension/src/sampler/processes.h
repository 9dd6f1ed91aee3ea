/*
 * processes.h
 *	  The session entry (dictionary.h) and the category of each process that a
 *	  scan has seen.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PROCESSES_H
#define TACHO_PROCESSES_H

#include "history/dictionary.h"
#include "sampler/session_scan.h"

/* Allocates room for `slots` slots in the current memory context. */
extern void processes_init(int slots);

/*
 * Id of a row's session entry, which is defined in the open frame if
 * necessary. 0 if the row could not be read and its process is not known.
 */
extern uint64 processes_session(SessionScan *scan, const SessionRow *row);

/* Category of the process in a slot. */
extern Category processes_category(const SessionScan *scan, int slot);

/* Entries of names; NULL while a name is not known. */
extern NameEntry *processes_database_name(Oid database);
extern NameEntry *processes_role_name(Oid role);

#endif							/* TACHO_PROCESSES_H */
