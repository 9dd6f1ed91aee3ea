/*
 * server_io.c
 *	  Measurements of I/O by kind of process, object and context.
 *
 * The server keeps these counters in one array, with as many combinations as
 * pg_stat_io has rows, whatever the load is. Those that have counted are
 * recorded.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "core/compat.h"
#include "sampler/server_io.h"

#ifdef COMPAT_HAS_IO

/* Columns of an operation; 0 = the server does not count this. */
static const struct
{
	IOOp		op;
	int			count;
	int			bytes;
	int			time;
}			operations[] = {
	{IOOP_READ, COL_server_io_io_reads, COL_server_io_io_read_bytes,
	COL_server_io_io_read_time},
	{IOOP_WRITE, COL_server_io_io_writes, COL_server_io_io_write_bytes,
	COL_server_io_io_write_time},
	{IOOP_WRITEBACK, COL_server_io_io_writebacks, 0,
	COL_server_io_io_writeback_time},
	{IOOP_EXTEND, COL_server_io_io_extends, COL_server_io_io_extend_bytes,
	COL_server_io_io_extend_time},
	{IOOP_HIT, COL_server_io_io_hits},
	{IOOP_EVICT, COL_server_io_io_evictions},
	{IOOP_REUSE, COL_server_io_io_reuses},
	{IOOP_FSYNC, COL_server_io_io_fsyncs, 0, COL_server_io_io_fsync_time},
};

static PgStat_IO *counted;		/* counters at the last reading */
/* counters at the last reading that was recorded */
static PgStat_IO *recorded;
static bool is_read = false;	/* `counted` is to be recorded */
static bool is_known = false;	/* `recorded` was read */

void
server_io_init(void)
{
	counted = palloc0(sizeof(PgStat_IO));
	recorded = palloc0(sizeof(PgStat_IO));
}

/*
 * A reset sets the server's counters to 0. Then the recorded ones become 0,
 * too: the new counters have counted everything since the reset.
 */
void
server_io_read(void)
{
	*counted = *pgstat_fetch_stat_io();
	is_read = true;
	if (!is_known ||
		counted->stat_reset_timestamp == recorded->stat_reset_timestamp)
		return;
	memset(recorded, 0, sizeof(PgStat_IO));
	recorded->stat_reset_timestamp = counted->stat_reset_timestamp;
	mark_reset("I/O", counted->stat_reset_timestamp);
}

void
server_io_forget(void)
{
	is_read = is_known = false;
}

/*
 * Sets the values of one row. An operation that this kind of process never
 * does stays unknown.
 */
static void
set_values(Values values, const PgStat_IO *io, BackendType process,
		   IOObject object, IOContext context)
{
	const PgStat_BktypeIO *stats = &io->stats[process];

	forget(values);
	for (int i = 0; i < lengthof(operations); i++)
	{
		IOOp		op = operations[i].op;

		if (!pgstat_tracks_io_op(process, object, context, op))
			continue;
		values[operations[i].count] = stats->counts[object][context][op];
		if (operations[i].bytes)
			values[operations[i].bytes] =
				COMPAT_IO_BYTES(stats, object, context, op);
		if (operations[i].time)
			values[operations[i].time] = stats->times[object][context][op];
	}
}

static void
put_row(BackendType process, IOObject object, IOContext context, UnixMs at)
{
	Values		now;
	Values		before;
	char		name[NAMEDATALEN * 2];
	Section    *section;
	int			row;

	set_values(now, counted, process, object, context);
	set_values(before, recorded, process, object, context);
	if (!has_counted(TABLE_server_io, now, before))
		return;
	snprintf(name, sizeof(name), "%s/%s/%s", GetBackendTypeDesc(process),
			 pgstat_get_io_object_name(object),
			 pgstat_get_io_context_name(context));
	section = add_row(TABLE_server_io, at, &row);
	section_set(section, row, COL_server_io_object, object_name(name));
	set_measures(section, row, now, before);
}

void
server_io_put(UnixMs now)
{
	if (!is_read)
		return;
	for (int process = 0; is_known && process < BACKEND_NUM_TYPES; process++)
		for (int object = 0; object < IOOBJECT_NUM_TYPES; object++)
			for (int context = 0; context < IOCONTEXT_NUM_TYPES; context++)
				if (pgstat_tracks_io_bktype(process) &&
					pgstat_tracks_io_object(process, object, context))
					put_row(process, object, context, now);
	*recorded = *counted;
	is_known = true;
	is_read = false;
}

#else							/* before 16 */

void
server_io_init(void)
{
}

void
server_io_read(void)
{
}

void
server_io_forget(void)
{
}

void
server_io_put(UnixMs now)
{
}

#endif
