/*
 * cpu_kind.c
 *	  Divides sessions that are active without a wait event.
 *
 * /proc/PID/stat separates a sleeping process from one that wants a CPU, but
 * its state R means "on a CPU" or "in the run queue". /proc/PID/schedstat has
 * the total time of each. The queue's share of the time since the last reading
 * is the probability that this sample found the process queued. But a sample
 * has one label. So each tick adds up the shares and labels that many sessions
 * runnable. The first to be labelled are the sessions with the greatest sum of
 * shares not yet labelled. The rounding error is carried to the next tick. So
 * the sum of each tick is right, and the sum of each session too.
 *
 * Example: three sessions have shares 0.5, 0.5 and 0.2. The tick labels one of
 * them runnable and carries 0.2.
 *
 * /proc/PID/stat costs three times as much as schedstat, so it is read only
 * if necessary. If nearly all time since the last reading was CPU or queue
 * time (the rest may be the counters' lag), the process wants a CPU. If three
 * quarters were, the process keeps the state it had for STATE_READINGS
 * readings. A process that sleeps but has a wait event by now began to wait
 * after the scan, so it ran. A stopped process (state T) counts as
 * uninstrumented: it does not run and does not want to.
 *
 * Both files of a process stay open while its session is seen. When
 * descriptors run short, the least recently used files are closed. A session
 * is read at most ten times a second.
 *
 * Locking: none.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"

#include "core/clocks.h"
#include "core/settings.h"
#include "core/status.h"
#include "sampler/cpu_kind.h"

/* a session is not read again before this time */
#define REREAD_US		95000
#define BUDGET_US		1000	/* time for reading files in one tick, ... */
#define BUDGET_PART		20		/* ... but at most 1/20 of the interval */
/* files of a session that was not seen for this long are closed */
#define KEEP_US			60000000
#define BUSY_SLACK_NS	10000000	/* counters lag by a timer tick */
#define STATE_READINGS	4		/* readings a busy state is kept */
#define MAX_OPEN		400		/* sessions with open files */
#define NO_DESCRIPTOR	(-2)	/* instead of a file */

typedef enum Reading
{
	READ_NOTHING = 0,
	READ_WANTS_CPU,
	READ_SLEEPS,
	READ_FAILED
} Reading;

typedef struct CpuSlot
{
	int			pid;			/* 0 = no session */
	TimestampTz backend_start;
	bool		is_open;
	int			stat_fd;		/* < 0: could not be opened */
	int			schedstat_fd;
	int64		used_us;		/* CLOCK_BOOTTIME of last use and reading */
	int64		read_us;
	int64		cpu_ns;
	int64		queued_ns;
	Reading		reading;
	int			reading_uses;
	double		share;			/* of the queue; < 0 = unknown */
	double		owed;			/* shares minus queued labels */
} CpuSlot;

/* A row that wants a CPU. */
typedef struct Candidate
{
	int			row;
	CpuSlot    *slot;
} Candidate;

static CpuSlot *cpu_slots;
static Candidate *candidates;
static int	slot_count;
static int	open_count = 0;
static int	next_row = 0;		/* first row of the next pass */
static double carried = 0;
static int64 swept_us = 0;
static bool complained = false;
static char trouble[STATUS_TEXT_SIZE] = "";

void
cpu_kind_init(int slots)
{
	slot_count = slots;
	cpu_slots = palloc0(sizeof(CpuSlot) * slots);
	candidates = palloc(sizeof(Candidate) * slots);
}

static void
close_file(int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	ReleaseExternalFD();
	*fd = -1;
}

static void
close_slot(CpuSlot *slot)
{
	if (!slot->is_open)
		return;
	close_file(&slot->stat_fd);
	close_file(&slot->schedstat_fd);
	slot->is_open = false;
	open_count--;
}

/* Closes the least recently used files, except those used in this pass. */
static bool
close_oldest(int64 now_us)
{
	CpuSlot    *oldest = NULL;

	for (int i = 0; i < slot_count; i++)
		if (cpu_slots[i].is_open && cpu_slots[i].used_us < now_us &&
			(oldest == NULL || cpu_slots[i].used_us < oldest->used_us))
			oldest = &cpu_slots[i];
	if (oldest == NULL)
		return false;
	close_slot(oldest);
	return true;
}

/* Closes the files of sessions that have not been seen for `keep_us`. */
static void
sweep(int64 now_us, int64 keep_us)
{
	if (open_count == 0 || now_us - swept_us < keep_us / 4)
		return;
	swept_us = now_us;
	for (int i = 0; i < slot_count; i++)
		if (cpu_slots[i].is_open && now_us - cpu_slots[i].used_us >= keep_us)
			close_slot(&cpu_slots[i]);
}

/* Reports once why kinds are missing. */
static void
complain(const char *path)
{
	int			save_errno = errno;

	if (complained || errno == ENOENT || errno == ESRCH)
	{
		/* if that process has ended, our own file can still be read */
		if (complained || access("/proc/self/schedstat", R_OK) == 0)
			return;
	}
	complained = true;
	snprintf(trouble, sizeof(trouble), "could not open file \"%s\": %s", path,
			 strerror(save_errno));
	errno = save_errno;
	HOLD_INTERRUPTS();
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not open file \"%s\": %m", path),
			 errdetail("Sessions that are active without a wait event are recorded as \"CPU*\".")));
	RESUME_INTERRUPTS();
}

/*
 * Reserves a descriptor. Closing a slot may free none: its files may have
 * been refused when it was opened.
 */
static bool
reserve_descriptor(int64 now_us)
{
	while (!AcquireExternalFD())
		if (!close_oldest(now_us))
			return false;
	return true;
}

/* Opens a file of a process; NO_DESCRIPTOR if descriptors have run out. */
static int
open_file(int pid, const char *name, int64 now_us)
{
	char		path[64];
	int			fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (!reserve_descriptor(now_us))
		return NO_DESCRIPTOR;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
	{
		complain(path);
		ReleaseExternalFD();
	}
	return fd;
}

static void
open_slot(CpuSlot *slot, int64 now_us)
{
	if (open_count >= MAX_OPEN && !close_oldest(now_us))
		return;
	slot->schedstat_fd = open_file(slot->pid, "schedstat", now_us);
	slot->stat_fd = open_file(slot->pid, "stat", now_us);
	slot->is_open = true;
	open_count++;
	/* the next reading tries again */
	if (slot->schedstat_fd == NO_DESCRIPTOR || slot->stat_fd == NO_DESCRIPTOR)
		close_slot(slot);
}

/* The slot of a row; emptied if it has a new session. */
static CpuSlot *
find_slot(const SessionScan *scan, const SessionRow *row, int64 now_us)
{
	CpuSlot    *slot = &cpu_slots[row->slot];
	const SlotIdentity *identity = &scan->identities[row->slot];

	if (slot->pid != identity->pid ||
		slot->backend_start != identity->backend_start)
	{
		close_slot(slot);
		memset(slot, 0, sizeof(CpuSlot));
		slot->pid = identity->pid;
		slot->backend_start = identity->backend_start;
		slot->stat_fd = slot->schedstat_fd = -1;
		slot->share = -1;
	}
	slot->used_us = now_us;
	return slot;
}

static bool
read_file(int fd, char *buffer, Size size)
{
	ssize_t		length = fd < 0 ? -1 : pread(fd, buffer, size - 1, 0);

	buffer[Max(length, 0)] = '\0';
	return length > 0;
}

/*
 * Reads the time on a CPU and in the queue. Returns false if the process may
 * have slept since the last reading: the caller must read its state.
 */
static bool
read_times(CpuSlot *slot, int64 now_us)
{
	char		buffer[100];
	int64		cpu_ns;
	int64		queued_ns;
	int64		ran;
	int64		queued;
	int64		idle;
	int64		elapsed_us = slot->read_us == 0 ? 0 : now_us - slot->read_us;

	slot->read_us = now_us;
	if (!read_file(slot->schedstat_fd, buffer, sizeof(buffer)) ||
		sscanf(buffer, INT64_FORMAT " " INT64_FORMAT, &cpu_ns, &queued_ns) != 2 ||
		cpu_ns == 0)
	{
		slot->share = -1;
		return false;
	}
	trouble[0] = '\0';
	ran = cpu_ns - slot->cpu_ns;
	queued = queued_ns - slot->queued_ns;
	slot->cpu_ns = cpu_ns;
	slot->queued_ns = queued_ns;
	if (ran + queued > 0)
		slot->share = (double) queued / (double) (ran + queued);
	else if (elapsed_us * 1000 > BUSY_SLACK_NS)
		slot->share = 1;		/* queued: counted when it gets a CPU */
	if (elapsed_us == 0)
		return false;
	idle = elapsed_us * 1000 - ran - queued;
	if (idle < BUSY_SLACK_NS)
	{
		slot->reading = READ_WANTS_CPU;
		return true;
	}
	return idle < elapsed_us * 1000 / 4 &&
		(slot->reading == READ_WANTS_CPU || slot->reading == READ_SLEEPS) &&
		++slot->reading_uses < STATE_READINGS;
}

static Reading
read_state(const CpuSlot *slot)
{
	char		buffer[200];
	const char *end;

	if (!read_file(slot->stat_fd, buffer, sizeof(buffer)))
		return READ_FAILED;
	end = strrchr(buffer, ')');
	if (end == NULL || end[1] != ' ')
		return READ_FAILED;
	switch (end[2])
	{
		case 'R':
			return READ_WANTS_CPU;
		case 'S':
		case 'D':
		case 'T':
		case 't':
		case 'I':
		case 'P':
			return READ_SLEEPS;
		default:
			return READ_FAILED;
	}
}

static void
read_slot(SessionScan *scan, const SessionRow *row, CpuSlot *slot, int64 now_us)
{
	volatile PGPROC *proc;

	if (!slot->is_open)
		open_slot(slot, now_us);
	if (read_times(slot, now_us))
		return;
	slot->reading = read_state(slot);
	slot->reading_uses = 0;
	if (slot->reading != READ_SLEEPS)
		return;
	proc = session_scan_proc(scan, row);
	if (proc == NULL)
		slot->reading = READ_FAILED;
	else if (proc->wait_event_info != 0)
		slot->reading = READ_WANTS_CPU;
}

static bool
is_on_cpu(const SessionRow *row)
{
	return !row->failed && row->wait == 0 &&
		(row->state == SESSION_ACTIVE || row->state == SESSION_FASTPATH ||
		 row->state == SESSION_STATE_NONE);
}

/* Reads one row, if time is left. */
static void
look_at(SessionScan *scan, int index, int64 now_us, int64 until_us,
		int *candidate_count)
{
	SessionRow *row = &scan->rows[index];
	CpuSlot    *slot = find_slot(scan, row, now_us);

	row->cpu = CPU_NOT_KNOWN;
	if (slot->read_us == 0 || now_us - slot->read_us >= REREAD_US)
	{
		if (clock_boot_us() >= until_us)
		{
			if (next_row < 0)
				next_row = index;
			return;
		}
		read_slot(scan, row, slot, now_us);
	}
	if (slot->reading == READ_SLEEPS)
		row->cpu = CPU_UNINSTRUMENTED;
	else if (slot->reading == READ_WANTS_CPU && slot->share >= 0)
		candidates[(*candidate_count)++] = (Candidate)
	{
		index, slot
	};
}

static int
compare_owed(const void *left, const void *right)
{
	const Candidate *a = left;
	const Candidate *b = right;

	if (a->slot->owed != b->slot->owed)
		return a->slot->owed > b->slot->owed ? -1 : 1;
	return a->row - b->row;
}

/*
 * Labels the sum of all shares, rounded, as runnable; the others are running.
 */
static void
label(SessionScan *scan, int count)
{
	double		sum = carried;
	int			queued;

	for (int i = 0; i < count; i++)
	{
		candidates[i].slot->owed += candidates[i].slot->share;
		sum += candidates[i].slot->share;
	}
	queued = Min(Max((int) (sum + 0.5), 0), count);
	carried = Min(Max(sum - queued, -1), 1);
	qsort(candidates, count, sizeof(Candidate), compare_owed);
	for (int i = 0; i < count; i++)
	{
		scan->rows[candidates[i].row].cpu =
			i < queued ? CPU_RUNNABLE : CPU_RUNNING;
		if (i < queued)
			candidates[i].slot->owed -= 1;
	}
}

const char *
cpu_kind_trouble(void)
{
	return tacho_cpu_kind ? trouble : "";
}

void
cpu_kind_read(SessionScan *scan, int interval_ms)
{
	int64		now_us = clock_boot_us();
	int64		until_us = now_us +
		Min(BUDGET_US, (int64) interval_ms * 1000 / BUDGET_PART);
	int			first = next_row < 0 || next_row >= scan->row_count ? 0 :
		next_row;
	int			count = 0;

	sweep(now_us, tacho_cpu_kind ? KEEP_US : 0);
	if (!tacho_cpu_kind)
		return;
	next_row = -1;
	for (int i = 0; i < scan->row_count; i++)
	{
		int			index = (first + i) % scan->row_count;

		if (is_on_cpu(&scan->rows[index]))
			look_at(scan, index, now_us, until_us, &count);
	}
	if (count > 0)
		label(scan, count);
}
