/*
 * processes.h
 *	  Which session entry and which category a process of a scan belongs to.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_PROCESSES_H
#define TACHO_PROCESSES_H

#include "history/dictionary.h"
#include "sampler/session_scan.h"

/* Allocates room for so many slots in the current memory context. */
extern void processes_init(int slots);

/*
 * Id of the session entry of a row, defined in the open frame if need be. 0
 * for a row that could not be read and whose process is not known.
 */
extern uint64 processes_session(SessionScan *scan, const SessionRow *row);

/* Category of the process in a slot. */
extern Category processes_category(const SessionScan *scan, int slot);

/* Entries of names; NULL while the name is not known. */
extern NameEntry *processes_database_name(Oid database);
extern NameEntry *processes_role_name(Oid role);

#endif							/* TACHO_PROCESSES_H */
