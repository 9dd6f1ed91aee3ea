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
#include "statements/comment_tags.h"

/*
 * The process in a slot of the status array; valid while pid and start agree.
 */
typedef struct SlotIdentity
{
	int			pid;			/* 0 = none */
	TimestampTz backend_start;
	BackendType type;
	SockAddr	client_addr;
	Category	category;		/* set by processes.c */
	int			procno;			/* of its PGPROC, -1 = not searched */
} SlotIdentity;

/* A process that is not idle. */
typedef struct SessionRow
{
	int			slot;
	bool		failed;			/* not consistent: use only slot and state */
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
	int			tags_length;	/* 0 = none */
	char		tags[TAGS_BYTES];
	ProgressCommandType progress_command;
	Oid			progress_relation;
	char		application[NAMEDATALEN];
	const char *activity;		/* NULL unless wanted */
	int			activity_length;

	/* set by others after the scan */
	bool		only_blocks;	/* idle, but it blocks others */
	int			blocked_by;		/* row of its blocker, or -1 */
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
	int		   *found;			/* slots that the peek did not pass by */
	SessionRow *rows;			/* room for one per slot */
	int			row_count;

	SessionIdle *idle;			/* room for one per slot */
	int			idle_count;

	/* result of the last scan */
	int			clients;		/* client backends */
	int			idle_clients;
	int			rows_failed;	/* rows that were not consistent */

	/* activity strings of this scan */
	char	   *activity;
	Size		activity_size;
	Size		activity_used;
} SessionScan;

/* Allocates a scan in the current memory context. */
extern SessionScan *session_scan_create(void);

/*
 * Reads all processes except this one. Takes no lock, allocates nothing,
 * raises no error. Copies the activity of processes that run something
 * without a query id. Copies the activity of a client backend only if it waits
 * for a lock, or with `raw_activity`.
 */
extern void session_scan_run(SessionScan *scan, bool raw_activity);

/*
 * Adds a row, marked `only_blocks`, for a process that the last scan left out
 * because it is idle. Returns the row's index, -1 if there is no such
 * process.
 */
extern int	session_scan_add(SessionScan *scan, int pid);

/* The PGPROC of a row's process; NULL if the process is gone. */
extern volatile PGPROC *session_scan_proc(SessionScan *scan,
										  const SessionRow *row);

/* Type of the process with this id in the last scan, B_INVALID if none. */
extern BackendType session_scan_type(const SessionScan *scan, int pid);

#endif							/* TACHO_SESSION_SCAN_H */
