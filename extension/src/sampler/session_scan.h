/*
 * session_scan.h
 *	  One pass over the backend status array.
 *
 * Copyright (c) 2026, tacho contributors
 */
#ifndef TACHO_SESSION_SCAN_H
#define TACHO_SESSION_SCAN_H

#include "core/compat.h"
#include "core/tacho.h"
#include "history/model.h"

/* Who sits in a slot of the status array; kept while pid and start agree. */
typedef struct SlotIdentity
{
	int			pid;			/* 0 = nobody known */
	TimestampTz backend_start;
	BackendType type;
	SockAddr	client_addr;
	Category	category;		/* set by who resolves fresh identities */
	int			procno;			/* of its PGPROC, -1 = not searched yet */
} SlotIdentity;

/* A process that is not idle. */
typedef struct SessionRow
{
	int			slot;
	bool		failed;			/* not consistent: only slot and state count */
	SessionState state;
	BackendState server_state;
	TimestampTz xact_start;
	TimestampTz query_start;
	TimestampTz state_change;
	Oid			database;
	Oid			user;
	uint32		wait;			/* wait_event_info */
	TransactionId xid;
	TransactionId xmin;
	bool		xmin_ignored;	/* vacuum: its xmin holds nothing back */
	int			leader;			/* pid of the lock group leader, 0 = none */
	int64		query_id;
	int64		plan_id;
	ProgressCommandType progress_command;
	Oid			progress_relation;
	char		application[NAMEDATALEN];
	const char *activity;		/* NULL unless asked for */
	int			activity_length;

	/* set by others after the scan */
	bool		only_blocks;	/* idle, recorded because it blocks others */
	int			blocked_by;		/* index of the row that blocks it, or -1 */
	CpuKind		cpu;
} SessionRow;

/* An idle process other than a client backend. */
typedef struct SessionIdle
{
	int			slot;
	SessionState state;
} SessionIdle;

typedef struct SessionScan
{
	int			slots;
	SlotIdentity *identities;	/* by slot */
	int		   *idle_at;		/* by slot: st_changecount of an idle client,
								 * 0 = none */
	int		   *found;			/* slots that the peek could not pass by */
	SessionRow *rows;			/* room for one per slot */
	int			row_count;

	SessionIdle *idle;			/* room for one per slot */
	int			idle_count;

	/* result of the last scan */
	int			clients;		/* client backends */
	int			idle_clients;
	int			rows_failed;	/* rows that could not be read consistently */

	/* activity strings of this scan */
	char	   *activity;
	Size		activity_size;
	Size		activity_used;
} SessionScan;

/* Allocates a scan in the current memory context. */
extern SessionScan *session_scan_create(void);

/*
 * Reads all processes but this one. Takes no lock, allocates nothing, raises
 * no error. Copies the activity of whoever runs something without a query id;
 * of client backends only of those that wait for a lock, or with
 * `raw_activity`.
 */
extern void session_scan_run(SessionScan *scan, bool raw_activity);

/*
 * Adds a row for a process that the last scan left out because it is idle,
 * marked `only_blocks`. Returns its index, -1 when no such process is there.
 */
extern int	session_scan_add(SessionScan *scan, int pid);

/* The PGPROC of a row's process; NULL when it is not there any more. */
extern volatile PGPROC *session_scan_proc(SessionScan *scan,
										  const SessionRow *row);

/* Type of the process with this id as of the last scan, B_INVALID if none. */
extern BackendType session_scan_type(const SessionScan *scan, int pid);

#endif							/* TACHO_SESSION_SCAN_H */
